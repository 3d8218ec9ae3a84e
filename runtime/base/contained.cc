#include "runtime/base/contained.h"

#include <exception>
#include <new>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/readable.h"

namespace paceline {

Error thrown_error() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {ErrorKind::overloaded, "there is not enough memory for it"};
  } catch (const nlohmann::json::exception& error) {
    const std::string_view what = error.what();  // "[json.exception.type_error.302] type must be ..."
    const auto end = what.find("] ");
    return {ErrorKind::invalid,
            "a field of another kind than it has to be: " + readable(end == what.npos ? what : what.substr(end + 2))};
  } catch (const std::exception& error) {
    return {ErrorKind::invalid, readable(error.what())};
  } catch (...) {
    return {ErrorKind::invalid, "an unknown exception"};
  }
}

}  // namespace paceline
