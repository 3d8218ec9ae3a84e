#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/run_options.h"
#include "runtime/base/json.h"

namespace paceline::cli {

Action add_options(Flags app) {
  auto words = std::make_shared<std::vector<std::string>>();
  app.command("options", "Say what the flags among the arguments of a program override").hidden().rest(words.get());
  return [words] {
    const auto options = options_among(*words);
    const auto answer = options ? *options : nlohmann::json{{"error", options.error().text}};
    std::printf("%s\n", json_text(answer).c_str());
    return kDone;
  };
}

}  // namespace paceline::cli
