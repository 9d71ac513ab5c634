#!/usr/bin/env bash
# A librhizome_gnn or librhizome_mpi from another build is refused by name before any of its
# functions is called.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
cp "$RHIZOME" "$work/bin/rhizome"
version=$(sed -n 's/^project(rhizome VERSION \([0-9]*\.[0-9]*\)\..*/\1/p' "$RHIZOME_SOURCE/CMakeLists.txt")
printf '0\t1\n1\t2\n' >"$work/edges.tsv"
"$RHIZOME" ingest "$work/g.rz" --edges "$work/edges.tsv" >/dev/null

# refused LIBRARY SOURCE TEXT VERB...: with a library made of SOURCE beside the binary, the verb exits with 6 and says
# TEXT.
refused() {
  local library=$1 text=$3 status=0
  echo "$2" >"$work/other.c"
  cc -shared -fPIC "$work/other.c" -o "$work/bin/$library"
  shift 3
  LD_LIBRARY_PATH="$RHIZOME_BUILD/lib" "$work/bin/rhizome" "$@" >"$work/said" 2>&1 || status=$?
  if [ $status -ne 6 ] || ! grep -qF "$text" "$work/said"; then
    echo "exit $status, expected 6 and '$text':" >&2
    cat "$work/said" >&2
    exit 1
  fi
}
gnn=librhizome_gnn.so.$version
refused "$gnn" 'const char* rhizome_gnn_build_v1(void) { return "0.0.9, gcc 4"; }
const void* rhizome_gnn_entry_v1(void) { __builtin_trap(); }' 'librhizome_gnn: 0.0.9, gcc 4' train "$work/g.rz"
refused "$gnn" 'const void* rhizome_gnn_entry_v1(void) { __builtin_trap(); }' 'librhizome_gnn: another version' \
  train "$work/g.rz"
export OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2
refused librhizome_mpi.so 'const char* rhizome_mpi_build_v1(void) { return "0.0.9, gcc 4"; }
const void* rhizome_mpi_entry_v1(void) { __builtin_trap(); }' 'librhizome_mpi: 0.0.9, gcc 4' doctor --ranks
refused librhizome_mpi.so 'const void* rhizome_mpi_entry_v1(void) { __builtin_trap(); }' \
  'librhizome_mpi: another version' doctor --ranks
