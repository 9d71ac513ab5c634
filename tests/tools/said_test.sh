#!/usr/bin/env bash
# What updates did is said as it was: deletions of what is not there, and vertices that are gone.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ./common.bash
cd "$work"

printf 'a\tb\tx\na\tb\tx\nb\tc\ty\n' >e.tsv
for direction in both in out; do
  expect_exit 0 rhizome ingest $direction.rz --edges e.tsv --columns src,dst,type --directions $direction
  # Of four lines one edge is there twice over (both go), one has another type, one runs the other way, one has no end.
  printf 'a\tb\tx\nb\tc\tx\nb\ta\tx\na\tnobody\tx\n' >d.tsv
  expect_exit 0 rhizome delete $direction.rz d.tsv --columns src,dst,type --json
  expect_json out 'j["applied"] == 4' 'j["absent"] == 3'
  expect_exit 0 rhizome delete $direction.rz d.tsv --columns src,dst,type
  grep -q '4 of which deleted nothing' out || fail "$direction: $(cat out)"
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
  rhizome info "i$1.rz" | grep -q 'vertices *2, beside 1 deleted' || fail "info: $(rhizome info "i$1.rz" | head -n 4)"
done
finish
