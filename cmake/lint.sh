#!/bin/sh
# lint.sh format: every file of ours is as clang-format leaves it.
# lint.sh tidy:   clang-tidy on the units that differ from the last commit but one (ALL=1: on all), for at most TIDY_SECONDS (240), the
#                 smallest first; says which ones it had no time for. Reads the compilation database of the `dev` build, which has no
#                 unit that includes torch: clang 14 cannot read torch 1.13's headers.
set -eu
cd "$(dirname "$0")/.."

sources() {
  find runtime scheduler actors algorithms cli examples tests -name '*.h' -o -name '*.cc' -o -name '*.cpp'
}

changed() {
  if [ "${ALL:-0}" = 1 ] || ! git rev-parse -q --verify HEAD~1 >/dev/null 2>&1; then
    sources
  else
    git diff --name-only --diff-filter=d HEAD~1
    git ls-files --others --exclude-standard
  fi
}

case "${1:-}" in
  format)
    sources | xargs clang-format --dry-run -Werror || {
      echo "lint: formatting differs; mend it with: clang-format -i FILE" >&2
      exit 1
    } ;;
  tidy)
    units=$(changed | grep '\.cc$' | sort -u | while read -r file; do
      if grep -q "\"file\": \"$PWD/$file\"" build/dev/compile_commands.json; then echo "$file"; fi
    done | xargs -r ls -Sr)
    [ -n "$units" ] || exit 0
    export TIDY_UNTIL=$(($(date +%s) + ${TIDY_SECONDS:-240}))
    # shellcheck disable=SC2016
    printf '%s\n' "$units" | xargs -P "$(nproc)" -n 1 sh -c '
      if [ "$(date +%s)" -ge "$TIDY_UNTIL" ]; then echo "lint: no time left for $1"; exit 0; fi
      clang-tidy -p build/dev --quiet "$1" 2>/dev/null' tidy ;;
  *)
    echo "usage: lint.sh format|tidy" >&2
    exit 2 ;;
esac
