#!/usr/bin/env bash
# Updates report correctly what they did: deletions of what does not exist, and vertices that are
# gone.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

printf 'a\tb\tx\na\tb\tx\nb\tc\ty\n' >e.tsv
for direction in both in out; do
  expect_exit 0 rhizome ingest $direction.rz --edges e.tsv --columns src,dst,type --directions $direction
  # Of four lines one edge is there twice over (both go), one has another type, one runs the other way, one has no end.
  printf 'a\tb\tx\nb\tc\tx\nb\ta\tx\na\tnobody\tx\n' >d.tsv
  expect_exit 0 rhizome delete $direction.rz d.tsv --columns src,dst,type --json
  expect_json out 'j["applied"] == 4' 'j["absent"] == 3'
  expect_exit 0 rhizome delete $direction.rz d.tsv --columns src,dst,type
  grep -q '4 without effect' out || fail "$direction: $(cat out)"
done

# Within a batch the lines before count.
cat >b.jsonl <<'END'
{"op": "delete", "id": "c"}
{"op": "delete", "id": "c"}
{"op": "delete", "src": "b", "dst": "c", "type": "y"}
{"src": "b", "dst": "c", "type": "y"}
{"op": "delete", "src": "b", "dst": "c", "type": "y"}
{"op": "delete", "src": "b", "dst": "c", "type": "y"}
{"op": "delete", "id": "c"}
{"op": "delete", "id": "nobody"}
END
expect_exit 0 rhizome put both.rz b.jsonl --json
expect_json out 'j["applied"] == 8' 'j["absent"] == 4'
expect_exit 0 rhizome delete both.rz e.tsv --columns src,dst,type --batch 1 --json
expect_json out 'j["applied"] == 3' 'j["absent"] == 3'

# Undirected: a pair is one edge, whichever end comes first.
expect_exit 0 rhizome ingest u.rz --edges e.tsv --columns src,dst,type --undirected
printf 'c\tb\ty\nb\tc\ty\n' >d.tsv
expect_exit 0 rhizome delete u.rz d.tsv --columns src,dst,type --json
expect_json out 'j["applied"] == 2' 'j["absent"] == 1'

# --- Deleted vertices are not counted, before and after a compaction
for ids in 'a b c' '0 1 2' '10 20 30'; do
  # shellcheck disable=SC2086
  set -- $ids
  printf '%s\t%s\n%s\t%s\n' "$1" "$2" "$2" "$3" >i.tsv
  expect_exit 0 rhizome ingest "i$1.rz" --edges i.tsv
  printf '%s\n' "$1" >d.tsv
  expect_exit 0 rhizome delete "i$1.rz" d.tsv --vertices --columns id
  rhizome info "i$1.rz" --json >before.json
  expect_exit 0 rhizome compact "i$1.rz"
  rhizome info "i$1.rz" --json >after.json
  for file in before.json after.json; do
    expect_json $file 'j["vertices"] == 2' 'j["deleted_vertices"] == 1' 'j["edges"] == 1'
  done
  rhizome info "i$1.rz" | grep -q 'vertices *2, and 1 deleted' || fail "info: $(rhizome info "i$1.rz" | head -n 4)"
done

# --- A batch that changed nothing has no number: the last commit's is said
expect_exit 0 rhizome delete i10.rz d.tsv --vertices --columns id --json
expect_json out 'j["commit"] > 0'

# --- A key that stands twice in a line is not half believed
printf '{"id": "a", "id": "b"}\n' >twice.jsonl
expect_exit 1 rhizome put both.rz twice.jsonl
expect_says 'has the key "id" twice'

# --- Sizes beyond any machine are named
printf '0\t1\n' >n.tsv
expect_exit 5 rhizome ingest huge.rz --edges n.tsv --vertices 1099511627776
expect_says '--vertices 1099511627776'
[ ! -e huge.rz ] || fail "an ingestion that was refused left huge.rz"

# --- Leftovers that a writer removes, and what nobody does
mkdir -p both.rz/scratch/mine both.rz/scratch/empty
echo x >both.rz/scratch/mine/file
expect_exit 0 rhizome verify both.rz --json
expect_json out 'j["orphans"] == ["scratch/empty"]' 'j["strangers"] == ["scratch/mine"]'
expect_exit 0 rhizome put both.rz b.jsonl
expect_exit 0 rhizome verify both.rz
grep -q 'leftover' out && fail "a leftover that the next writer does not remove: $(cat out)"
grep -q 'scratch/mine: .* not removed automatically' out || fail "verify: $(cat out)"
expect_exit 0 rhizome backup u.rz bak
mkdir bak/files/zz
for left in files/zz/left deltas/000009; do echo x >bak/$left; done
expect_exit 0 rhizome verify bak --json
expect_json out 'sorted(j["orphans"]) == ["deltas/000009", "files/zz/left"]'
expect_exit 0 rhizome backup u.rz bak
expect_exit 0 rhizome verify bak --json
expect_json out 'j["orphans"] == []'
head -c 60 bak/backups/000001 >bak/backups/000007
expect_exit 0 rhizome verify bak
grep -q 'backups/000007 is cut off' out || fail "verify of backups: $(cat out)"
ln -s /etc bak/files/link && mkfifo bak/deltas/000001.pipe
expect_exit 3 rhizome verify bak --json
expect_json out 'sorted(d["file"] for d in j["damaged"]) == ["deltas/000001.pipe", "files/link"]'
expect_exit 3 rhizome backup u.rz bak

# --- What a repair could not save is said, and what a running program still holds
rhizome generate planted --out demo --scale 6 --dim 4 >/dev/null
expect_exit 0 rhizome ingest r.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split
for _ in 1 2; do expect_exit 0 rhizome array add r.rz emb=demo/features.npy --new-version; done
rm r.rz/generations/000001/arrays/emb.v2/c.0.0
exec 8<r.rz/generations/000001/PIN && flock -s 8 # as a reader does
exec 9<"$(ls -d r.rz/generations/000001/MANIFEST-* | tail -n 1)" && flock -s 9
expect_exit 4 rhizome repair r.rz --fill-holes
expect_says 'the current data is intact' 'run repair again'
expect_exit 3 rhizome verify r.rz
grep -q 'only an earlier version of the arrays names it' out || fail "verify: $(cat out)"
exec 8<&- 9<&-
expect_exit 0 rhizome repair r.rz
expect_exit 0 rhizome verify r.rz
expect_exit 0 rhizome info r.rz
grep -q 'rows of emb@3 that were lost in a repair, and are now zeros: 0-63' out || fail "info: $(cat out)"
for verb in "get r.rz 1 --array emb" "export r.rz --array emb --out o.npy"; do
  # shellcheck disable=SC2086
  "$RHIZOME" $verb >out 2>err </dev/null
  expect_says 'array emb@3: rows 0-63'
  expect_says 'were lost in a repair, and are zeros'
done
rm r.rz/generations/000001/arrays/label/c.0.0
expect_exit 0 rhizome repair r.rz --fill-holes
expect_exit 0 rhizome info r.rz
grep -q 'rows of label@1 that were lost in a repair, and are now -1 (none): ' out || fail "info: $(cat out)"
finish
