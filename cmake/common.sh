#!/bin/sh
# shellcheck disable=SC2034
# Sourced by ./quickstart and ./check: packages, stages, the build.

packages="cmake ninja-build g++ ccache pkg-config python3 capnproto libcapnp-dev libzmq3-dev cppzmq-dev libsodium-dev
  libspdlog-dev libcli11-dev libcpp-httplib-dev nlohmann-json3-dev libutfcpp-dev libcereal-dev libeigen3-dev libexpected-dev libsqlite3-dev zlib1g-dev libpng-dev libturbojpeg0-dev libhwloc-dev libdw-dev
  libgtest-dev libgmock-dev libbenchmark-dev dataset-fashion-mnist libjs-chart.js"
check_packages="clang clang-format clang-tidy lld doxygen python3-numpy python3-venv libopenmpi-dev chromium iproute2"
torch_packages="libtorch-dev libopenblas0-pthread"

fail() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# A libtorch of the user's own is preferred to the system's (cmake/PacelineTorch.cmake chooses).
has_own_torch() (  # A shell of its own: its variables are nobody else's.
  [ -z "${Torch_DIR:-}" ] || exit 0
  for prefix in $(echo "${CMAKE_PREFIX_PATH:-}" | tr : ' '); do
    [ ! -e "$prefix/lib/libtorch_cpu.so" ] || exit 0
  done
  wheel=$(python3 -c 'import importlib.util as u; s = u.find_spec("torch"); print(s.submodule_search_locations[0] if s else "")')
  # One without the C++11 string ABI is of no use.
  [ -n "$wheel" ] && [ -e "$wheel/lib/libtorch_cpu.so" ] && grep -q __cxx11 "$wheel/lib/libc10.so"
)

# install PACKAGE...: installs what is missing and says so before.
install() {
  missing=""
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  command -v apt-get >/dev/null || fail "there is no apt-get: install yourself what Debian 12 calls$missing"
  sudo=""
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "run me as root, or install sudo, or install$missing"
    sudo="sudo"
  fi
  echo "== installing:$missing"
  $sudo apt-get update -qq || fail "apt-get update failed: is the network up?"
  # shellcheck disable=SC2086
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
    fail "apt-get install failed for:$missing"
}

# stage NAME COMMAND...: runs it, then prints how long it took; stops at the first failure.
stage() {
  name=$1
  shift
  echo "== $name"
  began=$(date +%s)
  "$@" || fail "$name failed (above)"
  took=$(($(date +%s) - began))
  times="${times:-}$(printf '\n  %5d s  %s' "$took" "$name")"
}

# configure PRESET [OPTION...]: says nothing unless it fails.
configure() {
  mkdir -p build
  cmake --preset "$@" >"build/configure-$1.log" 2>&1 || { cat "build/configure-$1.log" >&2; return 1; }
}

# build PRESET [TARGET...]: builds what is not up to date; everything where no target is named.
build() {
  preset=$1
  shift
  cmake --build --preset "$preset" ${1:+--target "$@"}
}
