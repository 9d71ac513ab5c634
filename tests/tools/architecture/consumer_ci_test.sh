#!/usr/bin/env bash
# A separate project builds against the installed tree, with find_package and with pkg-config, opens
# a store, and trains its own model on the public loader; it links neither libtorch nor CUDA. If
# there is a GNN library, another program links it. No installed file names a folder of the
# checkout.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

printf '0\t1\n0\t2\n2\t1\n' >"$work/edges.tsv"
"$RHIZOME" ingest "$work/g.rz" --edges "$work/edges.tsv" --partitions 2 >/dev/null

cmake --install "$RHIZOME_BUILD" --prefix "$work/installed" >/dev/null
# No public header names RocksDB but in comments: neither a type nor an option of it is in the API.
names_rocksdb() { sed 's,//.*,,' "$@" | grep -i rocksdb; }
mapfile -t headers < <(find "$work/installed/include" -name '*.h')
[ "${#headers[@]}" -ge 30 ]
echo 'rocksdb::DB* db;  // found' | names_rocksdb >/dev/null
if names_rocksdb "${headers[@]}"; then
  echo "a public header names RocksDB" >&2
  exit 1
fi

# Neither where libraries are looked for nor what CMake is told.
libraries=("$work"/installed/bin/rhizome* "$work"/installed/lib*/librhizome*.so "$work"/installed/lib*/*/librhizome*.so)
for file in "${libraries[@]}"; do
  [ -e "$file" ] || continue
  if readelf -d "$file" | grep -E 'R(UN)?PATH' | grep -F -e "$RHIZOME_SOURCE/" -e "$RHIZOME_BUILD"; then
    echo "$file looks for libraries in the checkout" >&2
    exit 1
  fi
done
# Benches are in executables of their own.
for file in "${libraries[@]}"; do
  [[ -e $file && $file == *.so ]] || continue
  if nm -C "$file" | grep 'rhizome::.*Bench'; then
    echo "$file has a bench in it" >&2
    exit 1
  fi
done
if grep -rF -e "$RHIZOME_SOURCE/" -e "$RHIZOME_BUILD" "$work"/installed/lib*/ --include='*.cmake' --include='*.pc'; then
  echo "what is installed for CMake or pkg-config names the checkout" >&2
  exit 1
fi
version=$(sed -n 's/^project(rhizome VERSION \([0-9]*\.[0-9]*\)\..*/\1/p' "$RHIZOME_SOURCE/CMakeLists.txt")
soname=$(find "$work/installed" -name "librhizome.so.$version")
[ -n "$soname" ]
readelf -d "$soname" | grep -qF "Library soname: [librhizome.so.$version]"

cmake -G Ninja -S "$RHIZOME_SOURCE/tests/consumer" -B "$work/build" \
  -DCMAKE_PREFIX_PATH="$work/installed" -DRHIZOME_EXAMPLES="$RHIZOME_SOURCE/docs/examples" >/dev/null
cmake --build "$work/build" >/dev/null
[ "$("$work/build/consumer" "$work/g.rz" 0)" = "3 2" ]
mkdir "$work/feed"
"$work/build/feed_consumer" "$work/feed"

# The programs of docs/examples/.
printf '0\t1\t2\n0\t2\t3\n' >"$work/three.tsv"
"$RHIZOME" ingest "$work/s.rz" --edges "$work/three.tsv" --columns src,dst,- --vertices 3 >/dev/null
python3 - "$work/rows.npy" <<'PY'
import struct, sys
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"
body = head.ljust(117) + "\n"
open(sys.argv[1], "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body.encode()
                             + struct.pack("<6f", 0, .5, 1, 1.5, 2, 2.5))
PY
"$RHIZOME" array add "$work/s.rz" "feat=$work/rows.npy" >/dev/null
said=$(printf 'near 0\nlink 2 1\nnear 2\nnear 9\n' | "$work/build/service" "$work/s.rz" 2>"$work/service.log")
[ "$(head -3 <<<"$said")" = $'0: 1 2 | 0 0.5\nok\n2: 1 | 2 2.5' ]
grep -q 'error: .*"9"' <<<"$said"
grep -q 'opened' "$work/service.log"
rounds() {
  for edges in $'1\t2' $'0\t2\n2\t2'; do
    printf '%s\n' "$edges" | "$RHIZOME" put "$work/s.rz" - >/dev/null
    echo go
  done
  "$RHIZOME" compact "$work/s.rz" >/dev/null
  printf '0\t1\n0\t2\n' | "$RHIZOME" delete "$work/s.rz" - >/dev/null
  echo go
}
[ "$(rounds | "$work/build/follower" "$work/s.rz" 4 | tail -n 1)" = '2 has 2 in-edges' ]

if [ -e "$work/build/gnn_consumer" ]; then
  # libtorch is where the build tree's library finds it, as an environment would say.
  torch=$(ldd "$RHIZOME_BUILD/lib/librhizome_gnn.so" | sed -n 's,.*=> \(.*\)/lib\(torch_cpu\|c10\|cudart\|cupti\)\.so.*,\1,p' | sort -u | tr '\n' ':')
  LD_LIBRARY_PATH=$torch "$work/build/gnn_consumer" "$work/g.rz" | grep -F 'no such array'
  # Ranks that a transport of the program's own carries learn what those of Rhizome's threads do.
  "$RHIZOME" generate planted --out "$work/planted" --scale 9 --dim 8 >/dev/null
  "$RHIZOME" ingest "$work/p.rz" --edges "$work/planted/edges.npy" --nodes "$work/planted/nodes.tsv" \
    --node-columns id,label,split --array "feat=$work/planted/features.npy" --partitions 2 --homes edgecut >/dev/null
  mkdir "$work/ranks"
  [ "$(LD_LIBRARY_PATH=$torch "$work/build/ranks_consumer" "$work/p.rz" "$work/ranks")" = "the same model" ]
elif [ -e "$RHIZOME_BUILD/lib/librhizome_gnn.so" ]; then
  echo "find_package did not find the component gnn" >&2
  exit 1
fi
# Without a libtorch that the loader finds, a verb says what to do.
if ! "$work/installed/bin/rhizome" train "$work/g.rz" >"$work/train.txt" 2>&1; then
  grep -qE 'LD_LIBRARY_PATH|feat' "$work/train.txt"
fi

config=$(find "$work/installed" -name rhizome.pc)
# shellcheck disable=SC2046
g++ -std=c++20 "$RHIZOME_SOURCE/tests/consumer/main.cc" -o "$work/by-pkg-config" \
  $(PKG_CONFIG_PATH=$(dirname "$config") pkg-config --cflags --libs rhizome)
[ "$("$work/by-pkg-config" "$work/g.rz" 2)" = "3 1" ]

# The examples of README.md and docs/LIBRARY.md are real code, each by itself.
for page in README.md docs/LIBRARY.md; do
  awk -v out="$work/example_$(basename "$page" .md)_" \
    '/^```cpp$/ { n++; inside = 1; next } /^```$/ { inside = 0 } inside { print > (out n ".cc") }' \
    "$RHIZOME_SOURCE/$page"
done
gnn_headers=$(cd "$RHIZOME_SOURCE/gnn/api/rhizome" && printf '%s\n' *.h | paste -sd'|')
examples=("$work"/example_*.cc)
[ "${#examples[@]}" -ge 11 ]
for example in "${examples[@]}"; do
  if grep -qE "<rhizome/($gnn_headers)>" "$example" && [ ! -e "$work/build/gnn_consumer" ]; then
    echo "skipped: $(basename "$example"), this build has no librhizome_gnn"
    continue
  fi
  # shellcheck disable=SC2046
  g++ -std=c++20 -Wall -Wextra -Werror -fsyntax-only "$example" \
    $(PKG_CONFIG_PATH=$(dirname "$config") pkg-config --cflags rhizome)
done

for program in "$work/by-pkg-config" "$work/build/feed_consumer"; do
  if ldd "$program" | grep -E 'torch|libcu'; then
    echo "librhizome drags in libtorch or CUDA" >&2
    exit 1
  fi
done
"$work/installed/bin/rhizome" info "$work/g.rz" --json >/dev/null
