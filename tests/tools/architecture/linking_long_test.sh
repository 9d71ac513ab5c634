#!/usr/bin/env bash
# Compiles Rhizome as a part of another project (FetchContent): first as a static library with the command line, which
# is installed and linked by a second project; then as a shared library, from the same object files.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
parts=$work/build/_deps/rhizome-build
fail() {
  printf '%s\n' "$@" >&2
  exit 1
}
logged() {
  "$@" >"$work/log" 2>&1 || fail "failed: $*" "$(tail -n 40 "$work/log")"
}
# build SOURCE FOLDER OPTION...: without a build type, and therefore not optimised: that compiles faster.
build() {
  logged cmake -G Ninja -S "$1" -B "$2" "${@:3}"
  logged cmake --build "$2" -j "${RHIZOME_JOBS:-$(nproc)}"
}
needs_librhizome() { readelf -d "$1" | grep -F 'NEEDED' | grep -qF 'librhizome'; }

build "$RHIZOME_SOURCE/tests/consumer/subproject" "$work/build" -DRHIZOME_SOURCE="$RHIZOME_SOURCE" \
  -DBUILD_SHARED_LIBS=OFF -DRHIZOME_BATCHES=ON -DRHIZOME_CLI=ON -DRHIZOME_INSTALL=ON
echo "static: built in $SECONDS s"
printf '0\t1\n0\t2\n2\t1\n' >"$work/edges.tsv"
"$parts/bin/rhizome" ingest "$work/g.rz" --edges "$work/edges.tsv" --partitions 2 >/dev/null
[ "$("$work/build/consumer" "$work/g.rz" 0)" = "3 2" ]
logged cmake --install "$work/build" --prefix "$work/installed"
for program in "$work/build/consumer" "$work/installed/bin/rhizome"; do
  if needs_librhizome "$program"; then
    fail "$program is linked statically, and needs a librhizome"
  fi
done

# A librhizome_gnn would bring an engine of its own: it is not even looked for.
status=0
"$work/installed/bin/rhizome" train "$work/g.rz" --features feat --labels label --split split >"$work/train" 2>&1 ||
  status=$?
if [ $status != 6 ] || ! grep -qF 'linked statically, and librhizome_gnn needs the shared' "$work/train"; then
  fail "train ends with $status:" "$(cat "$work/train")"
fi

build "$RHIZOME_SOURCE/tests/consumer" "$work/found" -DCMAKE_PREFIX_PATH="$work/installed"
[ "$("$work/found/consumer" "$work/g.rz" 2)" = "3 1" ]
mkdir "$work/feed"
"$work/found/feed_consumer" "$work/feed"
if needs_librhizome "$work/found/feed_consumer"; then
  fail "find_package does not find the static library"
fi

SECONDS=0
build "$RHIZOME_SOURCE/tests/consumer/subproject" "$work/build" -DBUILD_SHARED_LIBS=ON -DRHIZOME_CLI=OFF
echo "shared: built in $SECONDS s, from the same object files"
[ "$("$work/build/consumer" "$work/g.rz" 0)" = "3 2" ]
needs_librhizome "$work/build/consumer" || fail "consumer does not link the shared library"
[ -e "$parts/lib/librhizome.so" ]
