#pragma once

#include <map>
#include <string>

#include "actors/spans/span_reader.h"

namespace paceline::cli {

/// What that which workers write down is called in C++. Reads the programs that it is of, each once.
class CalleeNames {
 public:
  CalleeNames();
  ~CalleeNames();
  CalleeNames(const CalleeNames&) = delete;
  CalleeNames& operator=(const CalleeNames&) = delete;

  /// "square(int)", as it can be shown; empty: unknown.
  std::string name_of(const actors::SpanName& name);

 private:
  class Program;
  std::string function_at(const std::string& where);

  std::map<actors::SpanName, std::string> known_;
  std::map<std::string, Program> programs_;
};

}  // namespace paceline::cli
