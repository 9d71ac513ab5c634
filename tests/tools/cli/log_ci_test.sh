#!/usr/bin/env bash
# --log: every verb appends lines with times to a file: its start with version and command, phases, notes, errors, and
# its end with the exit code. The file may be renamed, truncated or removed while the verb runs.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

stamp='^20[0-9-]{8}T[0-9:]{8}\.[0-9]{3}Z'
# logged FILE LEVEL TEXT: expects a line of this level with the text.
logged() { grep -E "$stamp $2 " "$1" | grep -qF -- "$3" || fail "$1 lacks '$2 ... $3': $(cat "$1")"; }

printf '0\t1\n1\t2\n2\t0\n' >e.tsv
expect_exit 0 rhizome ingest g.rz e.tsv --log jobs.log --json
expect_json out 'j["edges"] == 3'
version=$(rhizome --version)
logged jobs.log info "started version=${version#rhizome } command=\"rhizome ingest g.rz e.tsv --log jobs.log --json\""
logged jobs.log info "progress phase="
logged jobs.log info "ended exit_code=0 seconds=0."
grep -qvE "$stamp (info|warning|error) ingest\[[0-9]+\]: " jobs.log && fail "a line of another form: $(cat jobs.log)"
[ "$(head -n 1 jobs.log | grep -c started)" -eq 1 ] && [ "$(tail -n 1 jobs.log | grep -c ended)" -eq 1 ] || fail "order"

# Later runs append; the log of several verbs can be one file.
printf '0\tseven\n' >text.tsv
printf '3\t0\n' >d.tsv
lines=$(wc -l <jobs.log)
expect_exit 0 rhizome put g.rz d.tsv --log jobs.log
expect_exit 0 rhizome compact g.rz --log jobs.log
expect_exit 0 rhizome verify g.rz --log=jobs.log
expect_exit 0 rhizome backup g.rz saved --log jobs.log
expect_exit 0 rhizome array add g.rz x --empty 2 --log jobs.log
for verb in put compact verify backup "array add"; do
  logged jobs.log info " $verb["
done
[ "$(grep -c ' ended exit_code=0' jobs.log)" -eq 6 ] || fail "not 6 runs: $(cat jobs.log)"
[ "$(wc -l <jobs.log)" -ge $((lines + 10)) ] || fail "the log was not appended to"
logged jobs.log info "graph: compacted" # a line of the engine

# Notes, and errors with their texts; what is quoted stays in one line.
expect_exit 0 rhizome ingest t.rz text.tsv --log notes.log
logged notes.log info "note text=\"the ids are texts"
name=$'no\nsuch\033[31m.tsv'
expect_exit 2 rhizome ingest no.rz "$name" --log errors.log
logged errors.log error "failed code=not_found text="
logged errors.log error "ended exit_code=2"
[ "$(wc -l <errors.log)" -eq "$(grep -cE "$stamp" errors.log)" ] || fail "a message broke its line: $(cat errors.log)"
! grep -q $'\033' errors.log || fail "an escape sequence is in the log"

# A log that cannot be written is refused before any work.
for path in missing/x.log . ; do
  expect_exit 2 rhizome ingest no.rz e.tsv --log "$path"
  expect_says "the log '$path'"
  [ ! -e no.rz ] || fail "--log $path: a store was made"
done
expect_exit 2 rhizome info g.rz --json --log missing/x.log
expect_json out 'j["error"]["code"] == "not_found"'

# Rotation while a verb runs: renamed, truncated, removed; and a verb that is interrupted.
"$RHIZOME" compact g.rz --watch --every 1 --auto 0.01 --log watch.log >watch.out 2>&1 &
watcher=$!
wait_for 30 grep -q ' started ' watch.log || fail "compact --watch did not start"
mv watch.log watch.log.1
printf '0\t4\n' | rhizome put g.rz - >/dev/null || fail "put"
wait_for 30 grep -qs 'note text="generation' watch.log || fail "no line after the log was renamed: $(cat watch.log.1)"
: >watch.log
printf '0\t5\n' | rhizome put g.rz - >/dev/null || fail "put"
wait_for 30 grep -q 'note text="generation' watch.log || fail "no line after the log was truncated"
[ "$(head -c 2 watch.log)" = 20 ] || fail "the log begins with a hole"
rm watch.log
kill -TERM $watcher
wait $watcher || fail "compact --watch: exit code $?"
logged watch.log info "compact[$watcher]: ended exit_code=0"

# If the log fails later, the run continues and warns once.
if [ -c /dev/full ]; then
  expect_exit 5 rhizome info g.rz --log /dev/full
  expect_says "the log '/dev/full'"
fi
mkdir there
"$RHIZOME" compact g.rz --watch --every 1 --auto 0.01 --log there/watch.log >watch.out 2>watch.err &
watcher=$!
wait_for 30 grep -qs ' started ' there/watch.log || fail "compact --watch did not start again"
rm -r there
printf '0\t6\n' | rhizome put g.rz - >/dev/null || fail "put"
wait_for 30 grep -q 'generation' watch.err || fail "compact --watch stopped without its log: $(cat watch.err)"
kill -TERM $watcher
wait $watcher || fail "without its log compact --watch ends with exit code $?"
[ "$(grep -c '^warning: .*watch.log.*continues' watch.err)" -eq 1 ] || fail "not one warning: $(cat watch.err)"

if has_gnn; then
  rhizome generate planted --out demo --scale 8 --dim 8 >/dev/null || fail "generate"
  rhizome ingest m.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
    --array feat=demo/features.npy >/dev/null || fail "ingest demo"
  expect_exit 0 rhizome train m.rz --epochs 2 --out m.safetensors --log models.log
  expect_exit 0 rhizome infer m.rz --model-file m.safetensors --out emb --log models.log
  for verb in train infer; do logged models.log info " $verb["; done
  [ "$(grep -c ' ended exit_code=0' models.log)" -eq 2 ] || fail "train and infer: $(cat models.log)"
else
  echo "skipped: train and infer, this build has no librhizome_gnn"
fi

finish
