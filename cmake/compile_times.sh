#!/bin/sh
# What compiling costs: builds targets anew in a tree of its own, without ccache, and prints processor seconds: of all units, of the ten
# dearest, and of the ten headers whose parsing costs most over all units.
# Usage: cmake/compile_times.sh [TARGET...]        without one: the product
set -eu

if [ "${1:-}" = --unit ]; then  # As launcher of the compiler: --unit LOG COMPILER ARGUMENT...
  log=$2
  shift 2
  "$@"
  for unit in "$@"; do :; done  # The last word of a compilation is its source.
  times >"$log.$$"  # Not in a pipe: a subshell has times of its own.
  echo "$unit $(tail -1 "$log.$$")" >>"$log"
  rm "$log.$$"
  exit 0
fi

cd "$(dirname "$0")/.."
. cmake/common.sh
tree=build/compile-times
rm -rf "$tree"
mkdir -p "$tree"
here=$(pwd)
cmake --preset release -B "$tree" "-DCMAKE_CXX_COMPILER_LAUNCHER=$here/cmake/compile_times.sh;--unit;$here/$tree/units.log" >"$tree/configure.log" ||
  fail "configuring failed: $tree/configure.log"
[ $# -gt 0 ] || set -- product
cmake --build "$tree" --target "$@"
exec python3 cmake/compile_times.py "$tree"
