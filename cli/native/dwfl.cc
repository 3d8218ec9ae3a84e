#include "cli/native/dwfl.h"

#include <cstdlib>
#include <string_view>

#include "actors/callee_name.h"
#include "runtime/base/demangled.h"

namespace paceline::cli {
namespace {

OwnedDwfl begin(const Dwfl_Callbacks& callbacks) {
  ::unsetenv("DEBUGINFOD_URLS");  // What libdw cannot find it would ask servers for, while a worker stands still.
  return OwnedDwfl(dwfl_begin(&callbacks));
}

}  // namespace

OwnedDwfl files_dwfl() {
  static const Dwfl_Callbacks kCallbacks{.find_elf = dwfl_build_id_find_elf,
                                         .find_debuginfo = dwfl_standard_find_debuginfo,
                                         .section_address = dwfl_offline_section_address,
                                         .debuginfo_path = nullptr};
  return begin(kCallbacks);
}

OwnedDwfl processes_dwfl() {
  static const Dwfl_Callbacks kCallbacks{.find_elf = dwfl_linux_proc_find_elf,
                                         .find_debuginfo = dwfl_standard_find_debuginfo,
                                         .section_address = nullptr,
                                         .debuginfo_path = nullptr};
  return begin(kCallbacks);
}

std::string shown_symbol(const char* symbol) {
  return actors::plain_name(std::string_view(symbol).starts_with("_Z") ? demangled(symbol) : symbol);
}

}  // namespace paceline::cli
