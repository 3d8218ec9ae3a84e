#include "actors/thrown.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <typeinfo>

#include "actors/task_error.h"
#include "runtime/base/readable.h"

namespace paceline::actors {
namespace {

std::string demangled(const std::type_info* type) {
  if (type == nullptr) return "an unknown exception";
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type->name(), nullptr, nullptr, &status),
                                                   &std::free);
  return status == 0 && name ? name.get() : type->name();
}

}  // namespace

std::string thrown() {
  auto type = demangled(abi::__cxa_current_exception_type());
  try {
    throw;
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (const std::exception& error) {
    return type + ": " + readable(error.what());
  } catch (const std::string& text) {
    return "std::string: " + readable(text);
  } catch (const char* text) {
    return text == nullptr ? type : type + ": " + readable(text);
  } catch (...) {
    return type;
  }
}

Error error_thrown(const std::string& where) {
  try {
    throw;
  } catch (const TaskError& error) {
    return {error.kind(), error.what()};
  } catch (...) {
    return {ErrorKind::invalid, thrown() + where};
  }
}

}  // namespace paceline::actors
