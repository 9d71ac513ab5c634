#!/usr/bin/env bash
# Pipes as input: verbs that read an input once accept <(...), named pipes, /dev/stdin and -; verbs
# that read it several times say why they refuse them. Also from the user's view: array names that
# the store uses itself, labels of vertices without a row, and numbers beyond their type.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

printf 'a\tb\nb\tc\nc\ta\n' >edges.tsv
printf 'a\nb\nc\n' >nodes.tsv
printf '0\t0\t1\n1\t0\t2\n2\t0\t3\n' >feat.txt
rhizome ingest s.rz --edges edges.tsv --nodes nodes.tsv --array feat=feat.txt:1 >/dev/null || fail "ingest"

# --- Read once: pipes are files
rhizome put s.rz <(printf 'a\tc\n') >out || fail "put from <(...)"
grep -q "applied 1 line" out || fail "put from <(...) said $(cat out)"
printf 'b\ta\n' | rhizome put s.rz - >out || fail "put from -"
printf 'c\tb\n' | rhizome put s.rz /dev/stdin >out || fail "put from /dev/stdin"
mkfifo lines.jsonl.gz
printf '{"src": "a", "dst": "a"}\n' | gzip >lines.jsonl.gz &
rhizome put s.rz lines.jsonl.gz >out || fail "put from a named pipe, packed"
wait
rhizome delete s.rz <(printf 'a\ta\n') >out || fail "delete from <(...)"
rhizome info s.rz --json >o.json
expect_json o.json 'j["edges"] == 6'
if has_gnn; then
  rhizome score s.rz --array feat --pairs <(printf 'a\tb\nc\ta\n') --out scores.tsv >/dev/null || fail "score of <(...)"
  [ "$(wc -l <scores.tsv)" -eq 2 ] || fail "scores of <(...): $(cat scores.tsv)"
  expect_exit 1 rhizome score s.rz --array feat --pairs <(printf 'a\tb\n') --out scores.npy
  expect_says "needs the number of pairs in advance"
else
  echo "skipped: score, this build has no librhizome_gnn"
fi
rhizome sample s.rz --seeds <(printf 'a\n\nc\n') --fanout 2 --out o.npz >out || fail "sample of <(...)"
printf 'a\n' | rhizome sample s.rz --seeds - --fanout 2 --out p.npz >out || fail "sample of -"
expect_exit 2 rhizome sample s.rz --seeds <(printf 'a\nnobody\n') --fanout 2 --out q.npz
expect_says ":2: " nobody
# Whoever names a file as ids takes a pipe as well.
python3 - <<'PY'
def npy(name, descr, shape, data):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + data)
npy("one.npy", "<i8", (1,), (4).to_bytes(8, "little"))
npy("set.npy", "|u1", (1,), b"\0")
PY
# --- Labels: whoever has no row is unlabelled, and in no set
rhizome array add s.rz label=one.npy --ids <(printf 'b\n') >out || fail "ids of <(...)"
grep -q "1 vertices have rows, the others -1 (no label)" out || fail "labels: $(cat out)"
rhizome array add s.rz split=set.npy --ids <(printf 'b\n') >out || fail "ids of <(...)"
grep -q "the others 255 (in no set)" out || fail "sets: $(cat out)"
for id in a c; do
  rhizome get s.rz $id --array label --json >o.json && expect_json o.json 'j["values"] == [-1]'
  rhizome get s.rz $id --array split --json >o.json && expect_json o.json 'j["values"] == [255]'
done

# --- Read several times: refused, with the reason, before anything is made
expect_exit 1 rhizome ingest n.rz --edges <(cat edges.tsv)
expect_says "is a pipe" "several times" "to a file"
expect_exit 1 rhizome ingest n.rz --edges -
expect_says "standard input" "several times"
expect_exit 1 rhizome ingest n.rz --edges edges.tsv --nodes <(cat nodes.tsv)
expect_says "is a pipe"
expect_exit 1 rhizome plan ingest --edges <(cat edges.tsv)
expect_says "is a pipe"
expect_exit 1 rhizome array add s.rz y=<(cat feat.txt):1
expect_says "is a pipe"
[ ! -e n.rz ] || fail "a refused input left n.rz"

# --- A pipe that nobody writes to waits, and may be interrupted
mkfifo quiet.tsv
for verb in "put s.rz quiet.tsv" "sample s.rz --seeds quiet.tsv --fanout 2 --out q.npz"; do
  code=0
  # shellcheck disable=SC2086
  timeout --preserve-status -s INT 0.5 "$RHIZOME" $verb >out 2>err || code=$?
  [ $code -eq 130 ] || fail "'$verb' did not wait until it was interrupted: $code $(cat err)"
done

# --- Names that the store gives
for name in zarr.json vertex_id external_id row x.v1 x.crc32c x.stale; do
  expect_exit 1 rhizome ingest n.rz --edges edges.tsv --nodes nodes.tsv --array $name=feat.txt:1
  expect_says "'$name'" "choose another name"
  expect_exit 1 rhizome array add s.rz $name=one.npy
  expect_says "'$name'"
  expect_exit 1 rhizome array rename s.rz feat $name
  expect_says "'$name'"
  expect_exit 1 rhizome infer s.rz --model-file none --out $name
  expect_says "'$name'"
  [ ! -e n.rz ] || fail "n.rz was made with an array '$name'"
done

# --- Numbers that do not fit: line and field
refused() {
  printf '%s\n' "$1" >bad."$2"
  shift 2
  expect_exit 1 "$@"
}
printf '0\t1\t1\t2.5\n1\t0\t2\t3.5\n' >w.tsv
rhizome ingest w.rz --edges w.tsv --columns src,dst,time,weight >/dev/null || fail "ingest with times"
for number in 1e400 9223372036854775808 nan -0 1.0 1e3; do
  refused "$(printf '0\t1\t%s' $number)" tsv rhizome put w.rz bad.tsv --columns src,dst,time
  expect_says "bad.tsv:1" "'$number'"
done
refused '{"src": 0, "dst": 1, "weight": 1e400}' jsonl rhizome put w.rz bad.jsonl
expect_says "bad.jsonl:1" "1e400"
for number in 9223372036854775808 1.0 1e3 NaN 1e400; do
  refused "{\"src\": 0, \"dst\": 1, \"time\": $number}" jsonl rhizome put w.rz bad.jsonl
  expect_says "bad.jsonl:1"
  refused "{\"src\": $number, \"dst\": 1}" jsonl rhizome put w.rz bad.jsonl
  expect_says "bad.jsonl:1"
done
for number in 1e39 nan inf -inf 1e400; do
  refused "$(printf '0\t1\t%s' $number)" tsv rhizome put w.rz bad.tsv --columns src,dst,weight
  expect_says "bad.tsv:1" "'$number'"
done
refused "$(printf 'a\t1e400')" tsv rhizome put s.rz bad.tsv --array feat
expect_says "bad.tsv:1" "'1e400'"
refused "$(printf 'a\t9223372036854775808')" tsv rhizome put s.rz bad.tsv --array label
expect_says "bad.tsv:1" "int64"
finish
