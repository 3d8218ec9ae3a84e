#pragma once

#include <elfutils/libdwfl.h>

#include <memory>
#include <string>

namespace paceline::cli {

struct EndDwfl {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};
using OwnedDwfl = std::unique_ptr<Dwfl, EndDwfl>;

/// Of files that are named to it, and of living processes. What is not on this machine is not looked for elsewhere.
OwnedDwfl files_dwfl();
OwnedDwfl processes_dwfl();

/// As C++ writes it.
std::string shown_symbol(const char* symbol);

}  // namespace paceline::cli
