#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace paceline::cli {

// Fields of what a cluster answers, for tables; what is not as it should be is as if it were not there.

/// As text; "-" where there is none.
std::string cell(const nlohmann::json& object, const char* name);
/// "21 MB"; "-".
std::string megabytes(const nlohmann::json& object, const char* name);
/// "0:12", of a number of seconds; "-".
std::string duration(const nlohmann::json& object, const char* name);
/// Empty where there is none.
const nlohmann::json& list(const nlohmann::json& object, const char* name);
/// 0 where there is none.
double number(const nlohmann::json& object, const char* name);
/// "2 cpus", "1 cpu and 2 GiB of memory", of what is `cpus` and `memory` there.
std::string capacity_text(const nlohmann::json& object);
/// "2 GiB" of a number of bytes; "-" where there are none.
std::string memory_cell(const nlohmann::json& object, const char* name);
/// "2", "0.5".
std::string number_text(double number);

}  // namespace paceline::cli
