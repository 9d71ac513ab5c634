#!/usr/bin/env bash
# A librhizome_gnn of another build is refused by name, before anything is asked of it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
cp "$RHIZOME" "$work/bin/rhizome"
version=$(sed -n 's/^project(rhizome VERSION \([0-9]*\.[0-9]*\)\..*/\1/p' "$RHIZOME_SOURCE/CMakeLists.txt")
printf '0\t1\n1\t2\n' >"$work/edges.tsv"
"$RHIZOME" ingest "$work/g.rz" --edges "$work/edges.tsv" >/dev/null

# refused SOURCE TEXT: with a library made of SOURCE beside the binary, `train` exits with 6 and says TEXT.
refused() {
  echo "$1" >"$work/other.c"
  cc -shared -fPIC "$work/other.c" -o "$work/bin/librhizome_gnn.so.$version"
  local status=0
  LD_LIBRARY_PATH="$RHIZOME_BUILD/lib" "$work/bin/rhizome" train "$work/g.rz" >"$work/said" 2>&1 || status=$?
  if [ $status -ne 6 ] || ! grep -qF "$2" "$work/said"; then
    echo "exit $status, expected 6 and '$2':" >&2
    cat "$work/said" >&2
    exit 1
  fi
}
refused 'const char* rhizome_gnn_build_v1(void) { return "0.0.9, gcc 4"; }
const void* rhizome_gnn_entry_v1(void) { __builtin_trap(); }' 'librhizome_gnn: 0.0.9, gcc 4'
refused 'const void* rhizome_gnn_entry_v1(void) { __builtin_trap(); }' 'librhizome_gnn: another version'
