#!/usr/bin/env bash
# Builds the documentation site, with search and API reference: pages from docs/ and those that they link to.
# usage: tools/docs.sh [--check] [OUT]     OUT: a folder, default build/site, which is replaced
# --check: only checks the links of the site in OUT. A build checks them, too: if one is broken, it fails, names page
# and link, and leaves OUT as it was.
# tools/install_deps.sh --docs installs what it needs. `python3 -m http.server -d build/site` shows the site.
set -euo pipefail
check=no
if [ "${1:-}" = --check ]; then
  check=yes
  shift
fi
if [ $# -gt 1 ] || [[ ${1:-} == -* ]]; then
  echo "usage: tools/docs.sh [--check] [OUT]" >&2
  exit 1
fi
root=$(cd "$(dirname "$0")/.." && pwd)
out=$(realpath -m "${1:-$root/build/site}")
cd "$root"
if [ $check = yes ]; then
  exec python3 tools/docs/links.py "$out"
fi

python=$root/build/docs-venv/bin/python
if [ ! -x "$python" ] || ! command -v doxygen >/dev/null; then
  echo "tools/docs.sh: the tools are not installed: tools/install_deps.sh --docs" >&2
  exit 2
fi
if [ -n "$(ls -A "$out" 2>/dev/null)" ] && [ ! -e "$out/search/search_index.json" ]; then
  echo "tools/docs.sh: $out is not an earlier site, and is not replaced" >&2
  exit 1
fi
mkdir -p build "$(dirname "$out")"
stage=$(mktemp -d "$root/build/docs.XXXXXX")
trap 'rm -rf "$stage"' EXIT

"$python" -B tools/docs/stage.py "$stage"
export RHIZOME_DOCS_PYTHON=$root/python RHIZOME_DOCS_EXTENSION=$root/tools/docs/docstrings.py
export NO_MKDOCS_2_WARNING=1 PYTHONDONTWRITEBYTECODE=1
"$python" -m mkdocs build --quiet --config-file "$stage/mkdocs.yml" --site-dir "$stage/site"
python3 tools/docs/links.py "$stage/site"
rm -rf "$out"
mv "$stage/site" "$out"
echo "$out: $(find "$out" -name '*.html' | wc -l) pages"
