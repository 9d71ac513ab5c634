#!/usr/bin/env bash
# The verbs evaluate and score --top: forms of files, candidates that are given, equal output for any
# memory and threads, and input that is refused. tests/gnn/links compares their figures with brute
# force.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
has_gnn || skip "this build has no librhizome_gnn"
test_seed

python3 - "$seed" <<'PY'
import random, sys
random.seed(int(sys.argv[1]))
triples = list({(random.randrange(120), random.choice(["likes", "knows"]), random.randrange(120)) for _ in range(900)})
random.shuffle(triples)
def write(name, rows, form="{0}\t{2}\t{1}\n", head=""):
    with open(name, "w") as file:
        file.write(head + "".join(form.format(f"e{h}", r, f"e{t}") for h, r, t in rows))
test, valid, train = triples[:60], triples[60:100], triples[100:]
write("train.tsv", train)
write("valid.tsv", valid)
write("test.tsv", test)
write("test.csv", test, "{1},{2},{0}\n", "relation,tail,head\n")
write("hrt.tsv", test, "{0}\t{1}\t{2}\n")
write("odd.tsv", test, "{2}\t{0}\tx\t{1}\n")
write("oddvalid.tsv", valid, "{2}\t{0}\tx\t{1}\n")
write("leaked.tsv", test + train[:2])
with open("nodes.tsv", "w") as file:
    file.write("".join(f"e{i}\n" for i in range(120)))
with open("ent.txt", "w") as file:
    file.write("".join(" ".join(str(random.randrange(-3, 4)) for _ in range(8)) + "\n" for _ in range(120)))
for name, end in (("dst.tsv", 2), ("src.tsv", 0)):
    with open(name, "w") as file:
        file.write("".join("\t".join(f"e{random.randrange(120)}" for _ in range(5)) + "\n" for _ in test))
PY
rhizome ingest kg.rz --edges train.tsv --columns src,dst,type --nodes nodes.tsv --node-columns id --array ent=ent.txt \
  --partitions 2 >/dev/null 2>err || fail "ingest: $(head -c 300 err)"
evaluate=(rhizome evaluate kg.rz --array ent --valid valid.tsv --json)

# --- The same edges in several forms have the same ranks
figures() { python3 -c 'import json,sys; j=json.load(open(sys.argv[1])); print(j["mrr"], j["mean_rank"], j["by_relation"])' "$1"; }
expect_exit 0 "${evaluate[@]}" --test test.tsv
expect_json out 'j["edges"] == 60 and j["ranks"] == 120 and 0 < j["mrr"] < 1 and j["bad_lines"] == 0' \
  'j["optimistic"]["mrr"] >= j["mrr"] >= j["pessimistic"]["mrr"]' \
  'j["by_side"]["dst"]["ranks"] + j["by_side"]["src"]["ranks"] == 120' 'set(j["by_relation"]) == {"likes", "knows"}'
wanted=$(figures out)
zstd -q test.tsv -o packed.tsv.zst
for form in "test.csv" "hrt.tsv" "packed.tsv.zst" \
  "test.tsv --threads 1 --memory 64M" "test.tsv --threads 3 --candidates all"; do
  # shellcheck disable=SC2086
  expect_exit 0 "${evaluate[@]}" --test $form
  [ "$(figures out)" = "$wanted" ] || fail "other ranks: $form"
done
expect_exit 0 rhizome evaluate kg.rz --array ent --json --test odd.tsv --filter oddvalid.tsv --columns dst,src,-,type
[ "$(figures out)" = "$wanted" ] || fail "other ranks with --columns"
expect_exit 0 "${evaluate[@]}" --test <(cat test.tsv)
[ "$(figures out)" = "$wanted" ] || fail "other ranks from a pipe"
expect_exit 0 rhizome evaluate kg.rz --array ent --test test.tsv
grep -q "without\|destinations" out || fail "the table says: $(cat out)"

# --- Candidates and negatives in files
expect_exit 0 "${evaluate[@]}" --test test.tsv --candidates dst.tsv,src.tsv
expect_json out 'j["ranks"] == 120 and j["mean_rank"] <= 6'
expect_exit 0 "${evaluate[@]}" --test test.tsv --candidates dst.tsv --negatives valid.tsv
expect_json out 'j["ranks"] == 60 and 0 <= j["negatives"]["roc_auc"] <= 1 and "ogb_hits@50" in j["negatives"]'
head -n 20 dst.tsv >few.tsv
expect_exit 1 "${evaluate[@]}" --test test.tsv --candidates few.tsv
expect_says "fewer candidates"
cut -f 1-4 src.tsv >narrow.tsv
expect_exit 1 "${evaluate[@]}" --test test.tsv --candidates dst.tsv,narrow.tsv

# --- What is refused says where, and how to go on
expect_exit 1 "${evaluate[@]}" --test leaked.tsv
expect_says "2 of the 62" --allow-leaked
expect_exit 0 "${evaluate[@]}" --test leaked.tsv --allow-leaked
expect_json out 'j["leaked_edges"] == 2'
printf 'e1\te2\tlikes\nnobody\te2\tlikes\ne1\te2\thates\n' >unknown.tsv
expect_exit 2 "${evaluate[@]}" --test unknown.tsv --allow-leaked
expect_says "unknown.tsv:2" nobody
expect_exit 2 "${evaluate[@]}" --test unknown.tsv --allow-leaked --max-bad-lines 1
expect_says "unknown.tsv:3" hates
expect_exit 0 "${evaluate[@]}" --test unknown.tsv --allow-leaked --max-bad-lines 2
expect_json out 'j["bad_lines"] == 2 and j["edges"] == 1'
cut -f 1,2 test.tsv >untyped.tsv
expect_exit 1 "${evaluate[@]}" --test untyped.tsv
expect_says "untyped.tsv" --columns
: >empty.tsv
expect_exit 1 "${evaluate[@]}" --test empty.tsv
expect_exit 2 "${evaluate[@]}" --test none.tsv
expect_exit 5 "${evaluate[@]}" --test test.tsv --memory 1M
expect_says "--memory is 1048576 bytes" "give at least"
expect_exit 1 "${evaluate[@]}" --test test.tsv --scorer nonsense
expect_exit 1 "${evaluate[@]}" --test test.tsv --scorer transe
expect_says --decoder
printf '{"id": "e500"}\n' >new.jsonl
expect_exit 0 rhizome put kg.rz new.jsonl --format json
expect_exit 1 "${evaluate[@]}" --test test.tsv
expect_says --allow-stale
expect_exit 0 "${evaluate[@]}" --test test.tsv --allow-stale

# --- The best links
top=(rhizome score kg.rz --array ent --top 4)
expect_exit 0 "${top[@]}" --all --out all.tsv --threads 1 --memory 64M
expect_exit 0 "${top[@]}" --all --out more.tsv --threads 3
cmp -s all.tsv more.tsv || fail "the links depend on memory or threads"
[ "$(wc -l <all.tsv)" -eq $((4 * 121)) ] || fail "links of all vertices: $(wc -l <all.tsv)"
printf 'e3\ne4\n' >ids.txt
expect_exit 0 "${top[@]}" --of ids.txt --type likes --known drop --out some.tsv --json
expect_json out 'j["vertices"] == 2 and j["links"] == 8'
grep '	likes$' train.tsv | cut -f 1,2 | sort >known
cut -f 1,2 some.tsv | sort | comm -12 - known | grep -q . && fail "known edges among: $(cat some.tsv)"
printf 'e3\ne4\n' | rhizome score kg.rz --array ent --top 4 --of - --type likes --known drop --out - >piped.tsv || fail "score --of -"
cmp -s some.tsv piped.tsv || fail "other links from standard input"
expect_exit 2 "${top[@]}" --of ids.txt --type hates --out x.tsv
expect_exit 1 "${top[@]}" --of ids.txt --out x.npy
expect_exit 1 "${top[@]}" --out x.tsv
expect_exit 1 "${top[@]}" --all --pairs test.tsv --out x.tsv
expect_exit 1 rhizome score kg.rz --array ent --pairs test.tsv --known drop --out x.tsv
expect_exit 1 rhizome score kg.rz --array ent --top 0 --all --out x.tsv
finish
