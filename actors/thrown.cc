#include "actors/thrown.h"

#include <cxxabi.h>

#include <exception>
#include <typeinfo>

#include "actors/task_error.h"
#include "runtime/base/demangled.h"
#include "runtime/base/readable.h"

namespace paceline::actors {
std::string thrown() {
  const auto* const of = abi::__cxa_current_exception_type();
  const auto type = of == nullptr ? "an unknown exception" : demangled(of->name());
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
