#!/usr/bin/env bash
# The diagrams of layers in README.md and docs/DESIGN.md agree with the files modules.cmake. A stale one is found.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$RHIZOME_SOURCE"
tools/layers_page.py --check

for file in README.md docs/DESIGN.md tools/layers_page.py */modules.cmake; do
  mkdir -p "$work/$(dirname "$file")"
  cp "$file" "$work/$file"
done
sed -i 's/MODULES base options /MODULES base disk options /' "$work/storage/modules.cmake"
if "$work/tools/layers_page.py" --check 2>"$work/err"; then
  echo "a module that the diagrams lack is not found" >&2
  exit 1
fi
grep -q 'README.md and docs/DESIGN.md: the diagram of layers is out of date' "$work/err"
"$work/tools/layers_page.py"
grep -q 'base › disk › options' "$work/README.md"
