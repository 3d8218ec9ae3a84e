#include "cli/native/stack.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <utility>

#include "cli/native/dwfl.h"
#include "runtime/base/readable.h"

namespace paceline::cli {
namespace {

std::string of_process(pid_t process) { return "/proc/" + std::to_string(process); }

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// 0: nobody.
int tracer_of(pid_t process) {
  std::ifstream file(of_process(process) + "/status");
  for (std::string word; file >> word;)
    if (int tracer = 0; word == "TracerPid:" && file >> tracer) return tracer;
  return 0;
}

/// What stands in the way of looking into a process that may not be.
std::string why_refused(pid_t process) {
  struct stat owner {};
  if (::stat(of_process(process).c_str(), &owner) == 0 && owner.st_uid != ::geteuid() && ::geteuid() != 0)
    return "it is user " + std::to_string(owner.st_uid) + "'s: run this as that user, or as root";
  const auto scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  if (scope == "3") return "kernel.yama.ptrace_scope is 3, which lets nobody until this machine starts again";
  if (!scope.empty() && scope != "0")
    return "kernel.yama.ptrace_scope is " + scope +
           ": `sysctl kernel.yama.ptrace_scope=0` lets you, or run this as root";
  return "a sandbox forbids ptrace: in a container, start it with the capability SYS_PTRACE";
}

/// The rights that attaching needs, without attaching: reads what no process has.
Result<void> check_rights(pid_t process) {
  char byte = 0;
  const iovec here{&byte, 1};
  const iovec there{nullptr, 1};
  const auto read = ::process_vm_readv(process, &here, 1, &there, 1, 0);
  const int error = read < 0 ? errno : 0;
  const std::string who = "process " + std::to_string(process);
  if (error == ESRCH) return fail(ErrorKind::not_found, who + " has ended");
  if (error == EPERM || error == EACCES || error == ENOSYS)
    return fail(ErrorKind::invalid, who + " may not be looked into: " + why_refused(process));
  if (const int tracer = tracer_of(process); tracer != 0)
    return fail(ErrorKind::invalid,
                who + " may not be looked into: process " + std::to_string(tracer) + ", a debugger, does so already");
  return {};
}

std::string dwfl_error() {
  const char* const text = dwfl_errmsg(-1);
  return text == nullptr ? "unknown" : text;
}

/// Frames are named when the threads go on.
int add_frame(Dwfl_Frame* frame, void* stack) {
  auto& frames = static_cast<ThreadStack*>(stack)->frames;
  Dwarf_Addr address = 0;
  bool is_interrupted = false;
  if (!dwfl_frame_pc(frame, &address, &is_interrupted)) return DWARF_CB_ABORT;
  // Behind a call: what is called last may never return, and its address be another function's.
  frames.push_back({is_interrupted || address == 0 ? address : address - 1});
  return frames.size() < kFramesMax ? DWARF_CB_OK : DWARF_CB_ABORT;
}

int add_thread(Dwfl_Thread* thread, void* stacks) {
  ThreadStack stack{dwfl_thread_tid(thread)};
  const int read = dwfl_thread_getframes(thread, add_frame, &stack);
  if (stack.frames.size() >= kFramesMax) {
    stack.cut = "only the innermost " + std::to_string(kFramesMax) + " are shown";
  } else if (read < 0) {
    stack.cut = dwfl_error();
  }
  static_cast<std::vector<ThreadStack>*>(stacks)->push_back(std::move(stack));
  return DWARF_CB_OK;
}

std::string source_text(const char* file) { return file == nullptr ? std::string() : readable(file); }

std::string name_of(Dwarf_Die* function) {
  Dwarf_Attribute attribute;
  const char* linkage = dwarf_formstring(dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));
  if (linkage == nullptr) linkage = dwarf_diename(function);
  return linkage == nullptr ? std::string() : readable(shown_symbol(linkage));
}

int number_of(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  return dwarf_formudata(dwarf_attr(die, name, &attribute), &number) == 0 ? static_cast<int>(number) : 0;
}

/// DIEs that libdw gives with malloc.
class Scopes {
 public:
  template <class Get>
  explicit Scopes(Get get) : count_(get(&dies_)) {}
  ~Scopes() { std::free(dies_); }
  Scopes(const Scopes&) = delete;
  Scopes& operator=(const Scopes&) = delete;
  std::span<Dwarf_Die> dies() const { return {dies_, static_cast<std::size_t>(std::max(count_, 0))}; }

 private:
  Dwarf_Die* dies_ = nullptr;
  int count_ = 0;
};

bool is_function(Dwarf_Die& die) {
  const int tag = dwarf_tag(&die);
  return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram;
}

/// In `outer`, all that was inlined there: the innermost first, `outer` last, which then has the place of a call.
std::vector<StackFrame> with_inlined(Dwfl_Module* module, StackFrame outer) {
  std::vector<StackFrame> frames;
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = dwfl_module_addrdie(module, outer.address, &bias);
  if (unit == nullptr) return {std::move(outer)};
  const Scopes found([&](Dwarf_Die** dies) { return dwarf_getscopes(unit, outer.address - bias, dies); });
  const auto innermost = std::find_if(found.dies().begin(), found.dies().end(), is_function);
  if (innermost == found.dies().end()) return {std::move(outer)};
  const Scopes around([&](Dwarf_Die** dies) { return dwarf_getscopes_die(&*innermost, dies); });
  for (Dwarf_Die& scope : around.dies()) {
    if (dwarf_tag(&scope) == DW_TAG_subprogram) break;
    if (dwarf_tag(&scope) != DW_TAG_inlined_subroutine) continue;
    StackFrame inlined = outer;
    inlined.function = name_of(&scope);
    inlined.inlined = true;
    frames.push_back(std::move(inlined));
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrcfiles(unit, &files, &count) != 0) files = nullptr;
    const auto file = static_cast<std::size_t>(number_of(&scope, DW_AT_call_file));
    outer.file = source_text(files == nullptr ? nullptr : dwarf_filesrc(files, file, nullptr, nullptr));
    outer.line = number_of(&scope, DW_AT_call_line);
  }
  frames.push_back(std::move(outer));
  return frames;
}

std::vector<StackFrame> named(Dwfl* dwfl, StackFrame frame) {
  Dwfl_Module* const module = dwfl_addrmodule(dwfl, frame.address);
  if (module == nullptr) return {std::move(frame)};
  const char* file = nullptr;
  const char* const object = dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, &file, nullptr);
  frame.object = source_text(file != nullptr ? file : object);
  if (const char* const symbol = dwfl_module_addrname(module, frame.address))
    frame.function = readable(shown_symbol(symbol));
  if (Dwfl_Line* const line = dwfl_module_getsrc(module, frame.address))
    frame.file = source_text(dwfl_lineinfo(line, nullptr, &frame.line, nullptr, nullptr, nullptr));
  return with_inlined(module, std::move(frame));
}

}  // namespace

Result<std::vector<ThreadStack>> stacks_of(pid_t process) {
  PACELINE_TRY(check_rights(process));
  const std::string who = "process " + std::to_string(process);
  const auto refused = [&](const std::string& why) {
    std::error_code failed;
    return std::filesystem::exists(of_process(process), failed)
               ? fail(ErrorKind::internal, who + " cannot be looked into: " + why)
               : fail(ErrorKind::not_found, who + " has ended");
  };
  const OwnedDwfl dwfl = processes_dwfl();
  dwfl_report_begin(dwfl.get());
  const bool reported = dwfl_linux_proc_report(dwfl.get(), process) == 0;
  if (dwfl_report_end(dwfl.get(), nullptr, nullptr) != 0 || !reported ||
      dwfl_linux_proc_attach(dwfl.get(), process, false) != 0)
    return refused(dwfl_error());
  std::vector<ThreadStack> stacks;
  if (dwfl_getthreads(dwfl.get(), add_thread, &stacks) != 0) return refused(dwfl_error());
  bool any = false;
  for (ThreadStack& stack : stacks) {
    any = any || !stack.frames.empty();
    stack.name = readable(first_line(of_process(process) + "/task/" + std::to_string(stack.thread) + "/comm"));
    for (StackFrame& frame : std::exchange(stack.frames, {}))
      for (StackFrame& one : named(dwfl.get(), std::move(frame))) stack.frames.push_back(std::move(one));
  }
  if (!any) return refused(stacks.empty() ? "it has no threads" : stacks.front().cut);
  return stacks;
}

}  // namespace paceline::cli
