#!/usr/bin/env bash
# A separate project builds against the installed tree, by find_package and by pkg-config, and opens a
# store; what it links contains neither libtorch nor CUDA.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

printf '0\t1\n0\t2\n2\t1\n' >"$work/edges.tsv"
"$RHIZOME" ingest "$work/g.rz" --edges "$work/edges.tsv" --partitions 2 >/dev/null

cmake --install "$RHIZOME_BUILD" --prefix "$work/installed" >/dev/null
# No public header names RocksDB but in comments: neither a type nor an option of it is in the API.
names_rocksdb() { sed 's,//.*,,' "$@" | grep -i rocksdb; }
mapfile -t headers < <(find "$work/installed/include" -name '*.h')
[ "${#headers[@]}" -ge 40 ]
echo 'rocksdb::DB* db;  // found' | names_rocksdb >/dev/null
if names_rocksdb "${headers[@]}"; then
  echo "a public header names RocksDB" >&2
  exit 1
fi

cmake -G Ninja -S "$RHIZOME_SOURCE/tests/consumer" -B "$work/build" \
  -DCMAKE_PREFIX_PATH="$work/installed" >/dev/null
cmake --build "$work/build" >/dev/null
[ "$("$work/build/consumer" "$work/g.rz" 0)" = "3 2" ]

config=$(find "$work/installed" -name rhizome.pc)
# shellcheck disable=SC2046
g++ -std=c++20 "$RHIZOME_SOURCE/tests/consumer/main.cc" -o "$work/by-pkg-config" \
  $(PKG_CONFIG_PATH=$(dirname "$config") pkg-config --cflags --libs rhizome)
[ "$("$work/by-pkg-config" "$work/g.rz" 2)" = "3 1" ]

# The README's example is real code.
sed -n '/^```cpp$/,/^```$/p' "$RHIZOME_SOURCE/README.md" | grep -v '^```' >"$work/readme.cc"
[ -s "$work/readme.cc" ]
# shellcheck disable=SC2046
g++ -std=c++20 -fsyntax-only "$work/readme.cc" \
  $(PKG_CONFIG_PATH=$(dirname "$config") pkg-config --cflags rhizome)

if ldd "$work/by-pkg-config" | grep -E 'torch|libcu'; then
  echo "librhizome drags in libtorch or CUDA" >&2
  exit 1
fi
"$work/installed/bin/rhizome" info "$work/g.rz" --json >/dev/null
