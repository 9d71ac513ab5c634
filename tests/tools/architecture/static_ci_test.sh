#!/usr/bin/env bash
# A static librhizome is installed, and programs find and link it with find_package and with pkg-config. It excludes
# what needs the shared one. To save time, the archive that the tests link is installed instead of compiling the engine
# again; it has the same object files. linking_long_test.sh builds everything.
set -euo pipefail
setting() { sed -n "s/^$1:[A-Z]*=//p" "$RHIZOME_BUILD/CMakeCache.txt"; }
if [ "$(setting RHIZOME_COVERAGE)" = ON ] || [ "$(setting RHIZOME_FUZZ)" = ON ]; then
  echo "skipped: instrumented libraries do not fit programs that are compiled without these options"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  printf '%s\n' "$@" >&2
  exit 1
}
printf '0\t1\n0\t2\n2\t1\n' >"$work/edges.tsv"
"$RHIZOME" ingest "$work/g.rz" --edges "$work/edges.tsv" --partitions 2 >/dev/null
configure() {
  cmake -G Ninja -S "$RHIZOME_SOURCE" -B "$work/static" -DBUILD_SHARED_LIBS=OFF \
    -DRHIZOME_BATCHES="$(setting RHIZOME_BATCHES)" "$@" >"$work/log" 2>&1
}

for part in GNN CUDA MPI PYTHON TESTS; do
  if configure -DRHIZOME_$part=ON || ! grep -qF "RHIZOME_$part needs the shared librhizome" "$work/log"; then
    fail "a static build accepts RHIZOME_$part, or does not say why it refuses:" "$(cat "$work/log")"
  fi
  rm "$work/static/CMakeCache.txt"
done

configure -DRHIZOME_CLI=OFF || fail "$(cat "$work/log")"
ninja -C "$work/static" -t query lib/librhizome.a | sed -n 's,^    .*/\([^/]*\.o\)$,\1,p' | sort >"$work/wanted"
ar t "$RHIZOME_BUILD/librhizome_engine.a" | sort >"$work/found"
[ "$(wc -l <"$work/wanted")" -ge 10 ]
diff "$work/wanted" "$work/found" || fail "the archive of the tests is not what a static build makes"
mkdir -p "$work/static/lib"
cp "$RHIZOME_BUILD/librhizome_engine.a" "$work/static/lib/librhizome.a"
cmake --install "$work/static" --prefix "$work/installed" >/dev/null
if find "$work/installed" -name '*.so*' | grep .; then
  fail "a static build installs shared libraries"
fi
if grep -rF -e "$RHIZOME_SOURCE" -e "$work/static" "$work/installed" --include='*.cmake' --include='*.pc'; then
  fail "what is installed for CMake or pkg-config names the checkout"
fi

cmake -G Ninja -S "$RHIZOME_SOURCE/tests/consumer" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
  -DRHIZOME_EXAMPLES="$RHIZOME_SOURCE/docs/examples" \
  -DCMAKE_PREFIX_PATH="$work/installed" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
cmake --build "$work/build" -j 1 >"$work/log" 2>&1 || fail "$(cat "$work/log")"
[ "$("$work/build/consumer" "$work/g.rz" 0)" = "3 2" ]
mkdir "$work/feed"
"$work/build/feed_consumer" "$work/feed"

folder=$(dirname "$(find "$work/installed" -name rhizome.pc)")
read -ra flags < <(PKG_CONFIG_PATH=$folder pkg-config --cflags --libs rhizome)
g++ -std=c++20 "$RHIZOME_SOURCE/tests/consumer/main.cc" -o "$work/by-pkg-config" "${flags[@]}"
[ "$("$work/by-pkg-config" "$work/g.rz" 2)" = "3 1" ]

for program in "$work/build/consumer" "$work/build/feed_consumer" "$work/by-pkg-config"; do
  if readelf -d "$program" | grep -F 'librhizome'; then
    fail "$program is linked statically, and needs a librhizome"
  fi
done

# The engine runs code at the end of the process: a plugin that contains it stays loaded.
g++ -std=c++20 -shared -fPIC "$RHIZOME_SOURCE/tests/consumer/main.cc" -o "$work/plugin.so" "${flags[@]}"
readelf -d "$work/plugin.so" | grep -q 'FLAGS_1.*NODELETE' || fail "a plugin that contains the engine can be unloaded"
grep -q 'LINK_FLAGS = .*-z,nodelete' "$work/build/build.ninja" || fail "rhizome::rhizome does not bring -z nodelete"
