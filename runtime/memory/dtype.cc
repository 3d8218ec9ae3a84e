#include "runtime/base/check.h"
#include "runtime/memory/window.h"

namespace paceline::memory {

std::size_t size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return 4;
    case Dtype::f64: return 8;
    case Dtype::bf16:
    case Dtype::f16: return 2;
  }
  check_failed(__FILE__, __LINE__, "dtype", "no such element type");
}

}  // namespace paceline::memory
