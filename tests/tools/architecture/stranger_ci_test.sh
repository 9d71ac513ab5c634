#!/usr/bin/env bash
# Adds a cache policy, a partitioner, a codec, a verb, a bench and an option of training by the steps of the layers'
# README files, three files each, or two, on a copy. The result is compiled, linked and used.
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
  'policy/NAME_policy.cc api/rhizome/policy.h policy/policies.cc '
expect "steps to add a verb" "$(steps tools/README.md 'To add a verb')" \
  'verbs/verb_NAME.cc verbs/verbs.h verbs/main.cc '
expect "steps to add a bench" "$(steps tools/README.md 'To add a bench')" \
  'bench/MODULE/verb_bench_NAME.cc bench/benches.cc '
expect "steps to add a partitioner" "$(steps index/README.md 'To add a partitioner')" \
  'partition/NAME_partitioner.cc api/rhizome/graph_types.h partition/partitioner.cc '
expect "steps to add an option" "$(steps gnn/README.md 'To add an option of training')" \
  'api/rhizome/train_options.h options/train_fields.h '
expect "steps to add a codec" "$(steps storage/README.md 'To add a codec')" 'api/rhizome/types.h array/codec.cc '

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
# The compiler's flags for a file of the tree. The copy comes first in its search path.
flags() {  # file copy
  python3 - "$RHIZOME_BUILD/compile_commands.json" "$@" <<'PY'
import json, shlex, sys
database, file, copy = sys.argv[1:]
def compiles(entry):  # the file, alone or in a batch
    name = entry["file"]
    return name.endswith("/" + file) or "/batches/" in name and f'/{file}"' in open(name).read()
command = next(e["command"] for e in json.load(open(database)) if compiles(e))
words, kept = shlex.split(command), ["-I" + copy, "-I" + copy + "/api"]
for i, word in enumerate(words):
    if word.startswith(("-I", "-D", "-std=")):
        kept.append(word)
    elif word == "-isystem":
        kept += [word, words[i + 1]]
print(shlex.join(kept))
PY
}
# copy FOLDER LAYER MODULE: a folder with copies of a module, by its path, and of the public headers of its layer.
copy() {
  mkdir -p "$1/$2"
  cp -r "$RHIZOME_SOURCE/$2/$3" "$1/$2/$3"
  cp -r "$RHIZOME_SOURCE/$2/api" "$1/api"
}
# The objects of a target; those of an earlier configuration of the build folder are left out.
grep -o ' -o [^ ]*\.o ' "$RHIZOME_BUILD/compile_commands.json" | sed 's/ -o \(.*\) /\1/' >objects
objects() { (cd "$RHIZOME_BUILD" && find "${@#"$RHIZOME_BUILD/"}" -name '*.o') | grep -xF -f objects | sed "s#^#$RHIZOME_BUILD/#"; }

# --- The policy: its file, its kind, its declaration and its row.
copy policy cache policy
cp "$here/mru_policy.cc" policy/cache/policy/
insert policy/api/rhizome/policy.h '  kMatch, ' '  kMru,'
policies=policy/cache/policy/policies.cc
insert "$policies" '^namespace {' \
  'std::unique_ptr<Policy> MakeMruPolicy(std::uint32_t frame_count, std::uint64_t key_count);\n'
grow "$policies" PolicyEntry
insert "$policies" '    {PolicyKind::kNone, ' \
  '    {PolicyKind::kMru, "mru", false, kFrameTableBytes, MakeOnline<MakeMruPolicy>},'
eval "set -- $(flags cache/policy/policies.cc "$work/policy")"
for file in "$policies" policy/cache/policy/mru_policy.cc "$here/try_policy.cc"; do
  g++ -O0 -Wall -Wextra -Werror "$@" -c "$file" -o "$(basename "$file" .cc).o"
done
# An archive, from which the linker takes what is asked for.
mapfile -t engine < <(objects "$RHIZOME_BUILD"/CMakeFiles/rhizome_{storage,index,cache}_*.dir |
  grep -vE '_mutated\.dir|_tests\.dir|_verify_interface|/cache/policy/policies\.cc\.o$')
ar rcsT engine.a "${engine[@]}"
# The new file comes first, and so takes precedence over the one in its batch.
libraries=(-Wl,-z,muldefs -lrocksdb -luring -lzstd -lblosc -lxxhash -lisal -ltbb -lz -lbz2 -llzma -lfmt -lpthread)
g++ try_policy.o policies.o mru_policy.o engine.a -o try_policy "${libraries[@]}"
expect "the new policy" "$(./try_policy)" "2 hits, 4 misses"

# --- The partitioner: its file, its kind, its declaration and its row.
copy partition index partition
cp "$here/stripe_partitioner.cc" partition/index/partition/
insert partition/api/rhizome/graph_types.h '^  kRange,' '  kStripe,'
partitioners=partition/index/partition/partitioner.cc
grow "$partitioners" PartitionerEntry
insert "$partitioners" '^MakeStreaming MakeRangePartitioner;' 'MakeStreaming MakeStripePartitioner;'
insert "$partitioners" '    {PartitionerKind::kRange, ' \
  '    {PartitionerKind::kStripe, "stripe", PartitionStream, MakeStripePartitioner, 0},'
eval "set -- $(flags index/partition/partitioner.cc "$work/partition")"
for file in "$partitioners" partition/index/partition/stripe_partitioner.cc "$here/try_partitioner.cc"; do
  g++ -O0 -Wall -Wextra -Werror "$@" -c "$file" -o "$(basename "$file" .cc).o"
done
g++ try_partitioner.o partitioner.o stripe_partitioner.o engine.a -o try_partitioner "${libraries[@]}"
expect "the new partitioner" "$(./try_partitioner)" "0 1 2 0 1"

# --- The codec: its kind, its functions and its row.
copy array storage array
insert array/api/rhizome/types.h '  kNonzero = 5,' '  kFlip = 6,'
codecs=array/storage/array/codec.cc
grow "$codecs" CodecEntry
sed -i "/std::array<CodecEntry, /e cat $here/flip_codec.txt" "$codecs"
insert "$codecs" '    {.kind = CodecKind::kNonzero,' "$(sed ':a;N;$!ba;s/\n/\\n/g' "$here/flip_codec_row.txt")"
eval "set -- $(flags storage/array/codec.cc "$work/array")"
for file in "$codecs" "$here/try_codec.cc"; do
  g++ -O0 -Wall -Wextra -Werror "$@" -c "$file" -o "$(basename "$file" .cc).o"
done
g++ try_codec.o codec.o engine.a -o try_codec "${libraries[@]}"
expect "the new codec" "$(./try_codec)" "flip: 9 bytes, the same again, known again"

# --- The verb: its file, its declaration, its line.
mkdir -p copy/tools/verbs
verbs=copy/tools/verbs
cp "$RHIZOME_SOURCE"/tools/verbs/{main.cc,verbs.h} "$here/verb_count.cc" $verbs/
insert $verbs/verbs.h '^}  \/\/ namespace rhizome' 'void AddCountVerb(CLI::App\& root, Session\& session);'
insert $verbs/main.cc '  AddHelpVerb(root, session);' '  AddCountVerb(root, session);'
eval "set -- $(flags tools/verbs/main.cc "$work/copy")"
for file in $verbs/{main,verb_count}.cc; do
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
mkdir copy/tools/bench
bench=copy/tools/bench
cp "$RHIZOME_SOURCE"/tools/bench/*.{cc,h} "$here/verb_bench_nothing.cc" $bench/
arguments='(const Bench\& bench, CLI::App\& root, Session\& session)'
insert $bench/benches.cc '^void AddSampleBench' "void AddNothingBench$arguments;"
insert $bench/benches.cc '    {"sample", ' '    {"nothing", "What it takes to do nothing", AddNothingBench},'
eval "set -- $(flags tools/bench/benches.cc "$work/copy")"
for file in $bench/{main,benches,verb_bench_nothing}.cc; do
  g++ -O0 -Wall -Wextra -Werror "$@" -c "$file" -o "bench-$(basename "$file" .cc).o"
done
mapfile -t benches < <(objects "$RHIZOME_BUILD"/CMakeFiles/rhizome_tools_{cli,output,import,bench_harness,bench_store,bench_graph,bench_cache}.dir)
g++ bench-*.o "${benches[@]}" policies.o mru_policy.o engine.a -o rhizome-bench "${libraries[@]}" -lyaml -ldl
./rhizome bench --help | grep -q '^  nothing '
expect "the new bench" "$(./rhizome bench nothing --json)" '{"workload":"nothing","figure":0}'

# --- The option of training: its field and its row. Nothing else changes: the command line has the flag, checkpoints
# and ranks know its value.
if [ -e "$RHIZOME_BUILD/lib/librhizome_gnn.so" ]; then
  copy option gnn options
  insert option/api/rhizome/train_options.h '  double learning_rate = ' '  double warm_restarts = 0;'
  insert option/gnn/options/train_fields.h '  visit(Option{"learning.learning_rate"' \
    '  visit(Option{"learning.warm_restarts", "warm-restarts", "Restarts", Effect::kModel}.In(0, 1), learning.warm_restarts...);'
  eval "set -- $(flags tools/cli/option_flags.cc "$work/option") -I$work/option -I$RHIZOME_SOURCE/gnn/api"
  for file in option/gnn/options/training_options.cc "$here/try_option.cc"; do
    g++ -O0 -Wall -Wextra -Werror "$@" -c "$file" -o "option-$(basename "$file" .cc).o"
  done
  g++ option-*.o "${tools[@]}" engine.a -o try_option "${libraries[@]}" -lyaml -ldl
  expect "the new option" "$(./try_option)" "--warm-restarts: '2' is not a number that is in [0, 1]
0.25 {\"warm_restarts\":0.25}
\`learning.warm_restarts\` is -1; it must be in [0, 1]"
fi
