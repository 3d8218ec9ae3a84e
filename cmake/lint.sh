#!/bin/sh
# lint.sh format: every file of ours is as clang-format leaves it.
# lint.sh tidy:   clang-tidy on the files that differ from the last commit but one (ALL=1: on all), with the compilation database of
#                 the `dev` build, which must have been built. It has no unit that includes torch: clang 14 cannot read torch 1.13's headers.
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
    units=""
    for file in $(changed | grep '\.cc$' | sort -u); do
      if grep -q "\"file\": \"$PWD/$file\"" build/dev/compile_commands.json; then units="$units $file"; fi
    done
    [ -n "$units" ] || exit 0
    # shellcheck disable=SC2086
    printf '%s\n' $units | xargs -P "$(nproc)" -n 2 clang-tidy -p build/dev --quiet ;;
  *)
    echo "usage: lint.sh format|tidy" >&2
    exit 2 ;;
esac
