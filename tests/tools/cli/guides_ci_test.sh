#!/usr/bin/env bash
# Every command of docs/GUIDE.md, docs/TYPED.md and docs/OPERATIONS.md works, from the top of the page to its end,
# in one folder: blocks marked sh run in bash, blocks marked python in Python.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash

# pieces PAGE FOLDER: writes the blocks of a page to FOLDER/NN.sh and FOLDER/NN.py, in order.
pieces() {
  python3 - "$1" "$2" <<'PY'
import pathlib, re, sys
page, folder = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", page, re.M | re.S)
assert blocks, "the page has no command"
assert len(blocks) == len(re.findall(r"^ *```(?:sh|python)", page, re.M)), "a block is not closed, or indented"
for number, (kind, text) in enumerate(blocks):
    (folder / f"{number:02}.{'py' if kind == 'python' else 'sh'}").write_text(text)
PY
}

has_gnn || skip "this build has no training, which the pages use"
mkdir -p "$work/bin"
ln -s "$(readlink -f "$RHIZOME")" "$work/bin/rhizome"
export PATH="$work/bin:$PATH"
PATH="$RHIZOME_SOURCE/build/venv/bin:$PATH"
export PYTHONPATH="$RHIZOME_BUILD/python"

for page in GUIDE TYPED OPERATIONS; do
  [ -e "$RHIZOME_SOURCE/docs/$page.md" ] || fail "docs/$page.md is missing"
  mkdir -p "$work/$page.blocks" "$work/$page"
  pieces "$RHIZOME_SOURCE/docs/$page.md" "$work/$page.blocks" || fail "$page: its blocks cannot be read"
  cd "$work/$page" || exit 1
  for block in "$work/$page.blocks"/*; do
    case $block in
      *.sh) bash -euo pipefail "$block" >"$work/out" 2>"$work/err" ;;
      *.py) python "$block" >"$work/out" 2>"$work/err" ;;
    esac || fail "$page: $(cat "$block") says: $(tail -n 5 "$work/err")"
  done
done

finish
