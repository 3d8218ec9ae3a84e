#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "runtime/base/result.h"
#include "runtime/memory/window.h"

namespace paceline::collective {

inline constexpr std::size_t kDeviceInputsMax = 64;

/// The device's twin of `sum_into` (runtime/collective/kernels.h), with the same bits: out[i] = (in[0][i] + ... +
/// in[K-1][i]) * scale, added in this order. Device pointers; `out` may be one of the inputs. Queued on `stream`, the
/// caller waits. `invalid` for more than kDeviceInputsMax inputs; `internal` with CUDA's text. One read an input and
/// one write.
Result<void> sum_into_on_device(void* out, double scale, std::span<const void* const> inputs, std::size_t elements,
                                memory::Dtype dtype, cudaStream_t stream);

}  // namespace paceline::collective
