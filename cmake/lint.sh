#!/bin/sh
# lint.sh format: every file of ours is as clang-format leaves it.
# lint.sh tidy:   clang-tidy on what changed (cmake/tidy.py says what that is, and what ALL=1 and TIDY_SECONDS do).
set -eu
cd "$(dirname "$0")/.."

sources() {
  find runtime scheduler actors algorithms cli examples tests -name '*.h' -o -name '*.cc' -o -name '*.cpp'
}

case "${1:-}" in
  format)
    sources | xargs clang-format --dry-run -Werror || {
      echo "lint: formatting differs; mend it with: clang-format -i FILE" >&2
      exit 1
    } ;;
  tidy)
    mkdir -p build/tidy
    cmake --preset dev -B build/tidy/units -DPACELINE_TRAIN=OFF -DPACELINE_UNITY=OFF >build/tidy/configure.log 2>&1 || {
      cat build/tidy/configure.log >&2
      exit 1
    }
    exec python3 cmake/tidy.py ;;
  *)
    echo "usage: lint.sh format|tidy" >&2
    exit 2 ;;
esac
