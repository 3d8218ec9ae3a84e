#pragma once

#include <string>
#include <vector>

namespace paceline {

/// The program's own arguments (what follows `--` of `paceline run`), without its name: those that `main` got, also in
/// workers, where `main` does not run.
std::vector<std::string> arguments();

}  // namespace paceline
