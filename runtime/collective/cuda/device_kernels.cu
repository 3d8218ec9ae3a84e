#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "runtime/collective/cuda/device_kernels.h"

namespace paceline::collective {
namespace {

constexpr int kThreads = 256;
constexpr std::size_t kBlocksMax = 4096;

struct Inputs {
  const void* data[kDeviceInputsMax];
  int count;
};

// A stored type and the type that sums of it are made in.
template <class T>
struct As {
  using Sum = T;
  static __device__ T load(T value) { return value; }
  static __device__ T store(T value) { return value; }
};
template <>
struct As<__half> {
  using Sum = float;
  static __device__ float load(__half value) { return __half2float(value); }
  static __device__ __half store(float value) { return __float2half_rn(value); }
};
template <>
struct As<__nv_bfloat16> {
  using Sum = float;
  static __device__ float load(__nv_bfloat16 value) { return __bfloat162float(value); }
  static __device__ __nv_bfloat16 store(float value) { return __float2bfloat16_rn(value); }
};

template <class T>
__global__ void sum(T* out, typename As<T>::Sum scale, Inputs inputs, std::size_t elements) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += step) {
    typename As<T>::Sum total = 0;
    for (int k = 0; k < inputs.count; ++k) {
      const auto value = As<T>::load(static_cast<const T*>(inputs.data[k])[i]);
      total = k == 0 ? value : total + value;
    }
    out[i] = As<T>::store(total * scale);
  }
}

template <class T>
void launch(void* out, double scale, const Inputs& inputs, std::size_t elements, cudaStream_t stream) {
  const std::size_t blocks = std::min(kBlocksMax, (elements + kThreads - 1) / kThreads);
  sum<T><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      static_cast<T*>(out), static_cast<typename As<T>::Sum>(scale), inputs, elements);
}

}  // namespace

Result<void> sum_into_on_device(void* out, double scale, std::span<const void* const> inputs, std::size_t elements,
                                memory::Dtype dtype, cudaStream_t stream) {
  if (inputs.size() > kDeviceInputsMax) {
    return fail(ErrorKind::invalid, "a sum of " + std::to_string(inputs.size()) + " on the device: at most " +
                                        std::to_string(kDeviceInputsMax) + " are possible");
  }
  if (elements == 0) return {};
  Inputs list{{}, static_cast<int>(inputs.size())};
  std::copy(inputs.begin(), inputs.end(), list.data);
  switch (dtype) {
    case memory::Dtype::f32: launch<float>(out, scale, list, elements, stream); break;
    case memory::Dtype::f64: launch<double>(out, scale, list, elements, stream); break;
    case memory::Dtype::bf16: launch<__nv_bfloat16>(out, scale, list, elements, stream); break;
    case memory::Dtype::f16: launch<__half>(out, scale, list, elements, stream); break;
  }
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess)
    return fail(ErrorKind::internal, std::string("a sum on the device: ") + cudaGetErrorString(error));
  return {};
}

}  // namespace paceline::collective
