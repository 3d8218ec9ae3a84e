#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace paceline::report {

/// The page that shows `data` (report_data()): page.html with its scripts, its style and the data inside, so that it
/// opens anywhere. No text of a run can become markup: the scripts set text only, and the data hold no '<'.
std::string page(const nlohmann::json& data);

}  // namespace paceline::report
