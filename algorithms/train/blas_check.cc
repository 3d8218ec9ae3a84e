#include "algorithms/train/blas_check.h"

#include <cstdio>
#include <fstream>
#include <sstream>

namespace paceline::train {

std::optional<std::string> slow_blas_in(std::string_view maps) {
  const auto has = [maps](std::string_view part) { return maps.find(part) != std::string_view::npos; };
  // Alternatives of Debian keep the name libblas.so.3; the folder tells. Wheels carry MKL or OpenBLAS inside
  // libtorch_cpu.
  if (!has("libblas.so") || has("openblas") || has("libmkl") || has("/blis") || has("/atlas/")) return std::nullopt;
  return "the reference BLAS is loaded: matrix products are 30 times slower than they could be; apt install "
         "libopenblas0-pthread";
}

void warn_if_blas_is_slow() {
  std::ifstream file("/proc/self/maps");
  std::ostringstream text;
  text << file.rdbuf();
  if (const auto warning = slow_blas_in(std::move(text).str()))
    std::fprintf(stderr, "paceline: %s\n", warning->c_str());
}

}  // namespace paceline::train
