#include "actors/thrown.h"

#include <cxxabi.h>

#include <exception>
#include <optional>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "actors/causes.h"
#include "runtime/base/demangled.h"
#include "runtime/base/readable.h"

namespace paceline::actors {
namespace {

/// It may be anything, and long.
std::string shown(std::string_view text) {
  const auto first = first_of(text, kThrownMax);
  return readable(first) + (first.size() < text.size() ? "..." : "");
}

/// That the exception in hand is nested around.
std::optional<Error> nested() {
  try {
    throw;
  } catch (const std::nested_exception& outer) {
    try {
      if (outer.nested_ptr()) outer.rethrow_nested();
    } catch (const TaskError& inner) {
      return carried(inner);
    } catch (abi::__forced_unwind&) {
      throw;
    } catch (...) {
      return nested();
    }
  } catch (...) {
  }
  return std::nullopt;
}

}  // namespace

std::string thrown() {
  const auto* const of = abi::__cxa_current_exception_type();
  const auto type = of == nullptr ? "an unknown exception" : demangled(of->name());
  try {
    throw;
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (const std::exception& error) {
    return type + ": " + shown(error.what());
  } catch (const std::string& text) {
    return "std::string: " + shown(text);
  } catch (const char* text) {
    return text == nullptr ? type : type + ": " + shown(text);
  } catch (...) {
    return type;
  }
}

Error error_thrown() {
  try {
    throw;
  } catch (const TaskError& error) {
    return carried(error);
  } catch (...) {
    auto text = thrown();
    if (const auto inner = nested()) return thrown_over(*inner, text);
    return {ErrorKind::invalid, std::move(text)};
  }
}

}  // namespace paceline::actors
