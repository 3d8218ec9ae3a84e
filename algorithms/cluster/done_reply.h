#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "runtime/base/json.h"
#include "runtime/wire/codec.h"

namespace paceline::cluster {

/// What an agent that has done what request `id` asks for answers, to be sent the way that the request came.
inline void write_done_reply(wire::Message& message, std::uint64_t id, const nlohmann::json& answer) {
  auto body = message.root().initReply();
  body.setId(id);
  body.setOk(true);
  body.setJson(json_text(answer));
}

}  // namespace paceline::cluster
