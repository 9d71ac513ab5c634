#!/usr/bin/env bash
# A stranger adds a cache policy, a partitioner, a codec, a verb and a bench by the steps that the pages of the halls give,
# three files each, or two, on a copy. What comes of it is compiled, linked and used.
set -euo pipefail
here=$(cd "$(dirname "$0")/stranger" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# The files that the steps of a section name: "1. `folder/file`: ...".
steps() {  # page heading
  sed -n "/^## $2\$/,/^## /s/^[0-9]\. \`\([^\`]*\)\`.*/\1/p" "$RHIZOME_SOURCE/$1" | tr '\n' ' '
}
expect() {  # what found wanted
  [ "$2" = "$3" ] && return
  printf '%s: found "%s", wanted "%s"\n' "$1" "$2" "$3" >&2
  exit 1
}
expect "steps to add a cache policy" "$(steps cache/README.md 'To add a cache policy')" \
  'policy/NAME_policy.cc policy/policy.h policy/policies.cc '
expect "steps to add a verb" "$(steps tools/README.md 'To add a verb')" \
  'verbs/verb_NAME.cc verbs/verbs.h verbs/main.cc '
expect "steps to add a bench" "$(steps tools/README.md 'To add a bench')" \
  'bench/ROOM/verb_bench_NAME.cc bench/benches.cc '
expect "steps to add a partitioner" "$(steps index/README.md 'To add a partitioner')" \
  'partition/NAME_partitioner.cc partition/partition_options.h partition/partitioner.cc '
expect "steps to add a codec" "$(steps storage/README.md 'To add a codec')" 'array/codec.h array/codec.cc '

# insert FILE PATTERN LINE: puts a line before the first one that has the pattern.
insert() {
  grep -q "$2" "$1" || { echo "$1 has no line with '$2'" >&2; exit 1; }
  sed -i "0,/$2/s//\n$3\n&/" "$1"
}
# grow FILE ENTRY: the table of such entries has one more.
grow() {
  local size
  size=$(sed -n "s/.*std::array<$2, \([0-9]*\)>.*/\1/p" "$1")
  sed -i "s/std::array<$2, $size>/std::array<$2, $((size + 1))>/" "$1"
}
# The flags of the compiler for a file of the tree, its own folder replaced by the copy.
flags() {  # file folder copy
  python3 - "$RHIZOME_BUILD/compile_commands.json" "$1" "$RHIZOME_BUILD/include/$2" "$RHIZOME_SOURCE/$2" "$3" <<'PY'
import json, shlex, sys
database, file, root, folder, copy = sys.argv[1:]
def compiles(entry):  # the file, alone or in a batch
    name = entry["file"]
    return name.endswith("/" + file) or "/batches/" in name and f'/{file}"' in open(name).read()
command = next(e["command"] for e in json.load(open(database)) if compiles(e))
words, kept = shlex.split(command), []
for i, word in enumerate(words):
    if word in ("-I" + root, "-I" + folder):
        word = "-I" + copy
    if word.startswith(("-I", "-D", "-std=")):
        kept.append(word)
    elif word == "-isystem":
        kept += [word, words[i + 1]]
print(shlex.join(kept))
PY
}
objects() { find "$@" -name '*.o'; }

# --- The policy: its file, its kind and declaration, its row.
mkdir -p policy/rhizome
cp -r "$RHIZOME_SOURCE/cache/policy" policy/rhizome/cache
cp "$here/mru_policy.cc" policy/rhizome/cache/
insert policy/rhizome/cache/policy.h '  kMatch, ' '  kMru,'
insert policy/rhizome/cache/policy.h '^\/\/\/ Keeps a fixed set' \
  'std::unique_ptr<Policy> MakeMruPolicy(std::uint32_t frame_count, std::uint64_t key_count);\n'
policies=policy/rhizome/cache/policies.cc
grow "$policies" PolicyEntry
insert "$policies" '    {PolicyKind::kNone, ' \
  '    {PolicyKind::kMru, "mru", false, kFrameTableBytes, MakeOnline<MakeMruPolicy>},'
eval "set -- $(flags cache/policy/policies.cc cache/policy "$work/policy")"
for file in "$policies" policy/rhizome/cache/mru_policy.cc "$here/try_policy.cc"; do
  g++ -O0 -Wall -Wextra -Werror "$@" -c "$file" -o "$(basename "$file" .cc).o"
done
# An archive, from which the linker takes what is asked for.
mapfile -t engine < <(objects "$RHIZOME_BUILD"/CMakeFiles/rhizome_{storage,index,cache}_*.dir |
  grep -vE '_mutated\.dir|_tests\.dir|_verify_interface|/cache/policy/policies\.cc\.o$')
ar rcsT engine.a "${engine[@]}"
# The new file comes first, and so takes precedence over the one in its batch.
libraries=(-Wl,-z,muldefs -lrocksdb -luring -lzstd -lblosc -lxxhash -lisal -ltbb -lz -lfmt -lpthread)
g++ try_policy.o policies.o mru_policy.o engine.a -o try_policy "${libraries[@]}"
expect "the new policy" "$(./try_policy)" "2 hits, 4 misses"

# --- The partitioner: its file, its kind, its declaration and its row.
mkdir -p partition/rhizome
cp -r "$RHIZOME_SOURCE/index/partition" partition/rhizome/index
cp "$here/stripe_partitioner.cc" partition/rhizome/index/
insert partition/rhizome/index/partition_options.h '^  kRange,' '  kStripe,'
partitioners=partition/rhizome/index/partitioner.cc
grow "$partitioners" PartitionerEntry
insert "$partitioners" '^MakeStreaming MakeRangePartitioner;' 'MakeStreaming MakeStripePartitioner;'
insert "$partitioners" '    {PartitionerKind::kRange, ' \
  '    {PartitionerKind::kStripe, "stripe", PartitionStream, MakeStripePartitioner, 0},'
eval "set -- $(flags index/partition/partitioner.cc index/partition "$work/partition")"
for file in "$partitioners" partition/rhizome/index/stripe_partitioner.cc "$here/try_partitioner.cc"; do
  g++ -O0 -Wall -Wextra -Werror "$@" -c "$file" -o "$(basename "$file" .cc).o"
done
g++ try_partitioner.o partitioner.o stripe_partitioner.o engine.a -o try_partitioner "${libraries[@]}"
expect "the new partitioner" "$(./try_partitioner)" "0 1 2 0 1"

# --- The codec: its kind, its functions and its row.
mkdir -p array/rhizome
cp -r "$RHIZOME_SOURCE/storage/array" array/rhizome/storage
insert array/rhizome/storage/codec.h '  kNonzero = 5,' '  kFlip = 6,'
codecs=array/rhizome/storage/codec.cc
grow "$codecs" CodecEntry
sed -i "/^\/\/\/ A new codec is a value of CodecKind/e cat $here/flip_codec.txt" "$codecs"
insert "$codecs" '    {.kind = CodecKind::kNonzero,' "$(sed ':a;N;$!ba;s/\n/\\n/g' "$here/flip_codec_row.txt")"
eval "set -- $(flags storage/array/codec.cc storage/array "$work/array")"
for file in "$codecs" "$here/try_codec.cc"; do
  g++ -O0 -Wall -Wextra -Werror "$@" -c "$file" -o "$(basename "$file" .cc).o"
done
g++ try_codec.o codec.o engine.a -o try_codec "${libraries[@]}"
expect "the new codec" "$(./try_codec)" "flip: 9 bytes, the same again, known again"

# --- The verb: its file, its declaration, its line.
mkdir verbs
cp "$RHIZOME_SOURCE"/tools/verbs/{main.cc,verbs.h} "$here/verb_count.cc" verbs/
insert verbs/verbs.h '^}  \/\/ namespace rhizome' 'void AddCountVerb(CLI::App\& root, Session\& session);'
insert verbs/main.cc '  AddHelpVerb(root);' '  AddCountVerb(root, session);'
eval "set -- $(flags tools/verbs/main.cc tools/verbs "$work/verbs")"
for file in verbs/main.cc verbs/verb_count.cc; do
  g++ -O0 -Wall -Wextra -Werror "$@" -c "$file" -o "$(basename "$file" .cc).o"
done
mapfile -t tools < <(objects "$RHIZOME_BUILD"/CMakeFiles/rhizome_tools_{cli,output,import,verbs}.dir)
g++ main.o verb_count.o "${tools[@]}" -o rhizome -L"$RHIZOME_BUILD/lib" -Wl,-rpath,"$RHIZOME_BUILD/lib" -lrhizome \
  -lrocksdb -lfmt -lz -lyaml -ldl -lpthread
printf '0\t1\n0\t2\n2\t1\n' >edges.tsv
./rhizome ingest demo.rz --edges edges.tsv >/dev/null
expect "the new verb" "$(./rhizome count demo.rz)" "3 vertices"
expect "the new verb's JSON" "$(./rhizome count demo.rz --json)" '{"vertices":3}'
./rhizome help | grep -q '^  count '

# --- The bench: its file, its declaration and its row.
mkdir bench
cp "$RHIZOME_SOURCE"/tools/bench/*.{cc,h} "$here/verb_bench_nothing.cc" bench/
arguments='(const Bench\& bench, CLI::App\& root, Session\& session)'
insert bench/benches.cc '^void AddSampleBench' "void AddNothingBench$arguments;"
insert bench/benches.cc '    {"sample", ' '    {"nothing", "What it takes to do nothing", AddNothingBench},'
eval "set -- $(flags tools/bench/benches.cc tools/bench "$work/bench")"
for file in bench/main.cc bench/benches.cc bench/verb_bench_nothing.cc; do
  g++ -O0 -Wall -Wextra -Werror "$@" -c "$file" -o "bench-$(basename "$file" .cc).o"
done
mapfile -t benches < <(objects "$RHIZOME_BUILD"/CMakeFiles/rhizome_tools_{cli,output,import,bench_harness,bench_store,bench_graph,bench_cache}.dir)
g++ bench-*.o "${benches[@]}" policies.o mru_policy.o engine.a -o rhizome-bench "${libraries[@]}" -lyaml -ldl
./rhizome bench --help | grep -q '^  nothing '
expect "the new bench" "$(./rhizome bench nothing --json)" '{"workload":"nothing","figure":0}'
