#!/usr/bin/env bash
# Texts that an update gives and the ingestion did not have: TSV, CSV and JSON lines, of vertices and
# edges; what readers, changes, exports, backups, restores and compactions make of them, compared
# with a map in Python; and refusals.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

cat >people.csv <<'END'
id,label,motto
1,red,carpe diem
2,blue,
3,red,veni
END
printf 'src,dst,shop,amount\n1,2,bakery,3\n2,3,,4\n' >pays.csv
rhizome ingest s.rz pays.csv people.csv >/dev/null || fail "ingest"
cp -r s.rz copy.rz

# expect_texts STORE: compares all texts of a store with those that the script has put.
expect_texts() {
  rhizome export "$1" --vertices --out v.csv >/dev/null && rhizome export "$1" --edges --out e.csv >/dev/null ||
    fail "export of $1"
  python3 - <<'END' || fail "texts of $1"
import csv
rows = lambda name: list(csv.DictReader(open(name, newline="")))
mottos = {r["id"]: r["motto"] for r in rows("v.csv")}
assert mottos == {"1": 'a "new" motto,\n✓', "2": "veni", "3": "alea", "4": "alea", "5": ""}, mottos
shops = sorted((r["src"], r["dst"], r["shop"], r["amount"]) for r in rows("e.csv"))
assert shops == [("1", "2", "bakery", "3"), ("1", "3", "zoo", "7"), ("1", "4", "a, b", "8"), ("2", "1", "", "9"),
                 ("2", "3", "", "4"), ("3", "1", "zoo", "5"), ("3", "2", "Acme", "6")], shops
END
  rhizome verify "$1" >verified || fail "verify $1: $(cat verified)"
}

printf '3\talea\n4\talea\n5\t\n' >mottos.tsv
rhizome put s.rz mottos.tsv --array motto >/dev/null || fail "put TSV"
printf 'src\tdst\tshop\tamount\n3\t1\tzoo\t5\n3\t2\tAcme\t6\n' >edges.tsv
rhizome put s.rz edges.tsv --columns src,dst,shop,amount --header >/dev/null || fail "put TSV of edges"
printf '1,4,"a, b",8\n2,1,,9\n' >edges.csv
rhizome put s.rz edges.csv --columns src,dst,shop,amount >/dev/null || fail "put CSV of edges"
cat >lines.jsonl <<'END'
{"id": 1, "rows": {"motto": "a \"new\" motto,\n✓"}}
{"id": 2, "rows": {"motto": ["veni"]}}
{"src": 1, "dst": 3, "shop": "zoo", "amount": 7}
END
rhizome put s.rz lines.jsonl >/dev/null || fail "put JSON lines"
expect_texts s.rz
rhizome get s.rz 3 --json >o.json || fail "get"
expect_json o.json '[a["values"] for a in j["arrays"] if a["name"] == "motto"] == [["alea"]]' 'j["label"] == "red"'
rhizome neighbors s.rz 3 --json >o.json || fail "neighbors"
expect_json o.json 'sorted(n["attributes"]["shop"] for n in j["neighbors"]) == ["Acme", "zoo"]'

# --- the changes carry the texts to a copy, whole and commit by commit, and the copy's copy
rhizome changes s.rz --out changes.jsonl >/dev/null || fail "changes"
grep -qF '"shop":"Acme"' changes.jsonl && grep -qF '["alea"]' changes.jsonl || fail "changes have no texts: $(cat changes.jsonl)"
cp -r copy.rz slow.rz
rhizome put copy.rz changes.jsonl --create-types >/dev/null || fail "put of changes"
rhizome put slow.rz changes.jsonl --create-types --batch 1 >/dev/null || fail "put of changes line by line"
expect_texts copy.rz
expect_texts slow.rz

# --- backup, compaction with and without a repartitioning, export of the folder
rhizome backup s.rz b >/dev/null && rhizome restore b restored.rz >/dev/null || fail "backup"
expect_texts restored.rz
rhizome compact s.rz >/dev/null || fail "compact"
expect_texts s.rz
rhizome compact copy.rz --repartition --partitions 2 >/dev/null || fail "compact --repartition"
expect_texts copy.rz
for store in s restored; do
  rhizome export $store.rz --store $store.folder >/dev/null || fail "export --store of $store.rz"
  rhizome ingest $store.again.rz $store.folder >/dev/null || fail "ingest of $store.folder"
  expect_texts $store.again.rz
done

# --- texts that were put before a compaction are found, and are not added again
echo '{"id": 5, "rows": {"motto": "alea"}}' >alea.jsonl
echo '{"id": 5, "rows": {"motto": null}}' >none.jsonl
for file in alea.jsonl none.jsonl; do rhizome put s.rz $file >/dev/null || fail "put $file"; done
expect_texts s.rz
rhizome compact s.rz >/dev/null || fail "compact again"
expect_texts s.rz
python3 - <<'END' || fail "attributes of the dictionary"
import glob, json
about = json.load(open(max(glob.glob("s.rz/generations/*/arrays/motto/zarr.json"))))["attributes"]["rhizome"]["attributes"]
assert (about["texts"], about["texts_added"]) == ("4", "2"), about
END

# --- refusals name the line, and write nothing
echo '{"id": 5, "rows": {"motto": "lost"}}' >bad.jsonl
echo '{"id": 1, "rows": {"label": "green"}}' >>bad.jsonl
expect_exit 1 rhizome put s.rz bad.jsonl
expect_says "bad.jsonl:2" "'green' is not one of the 2 classes of 'label' ('blue', 'red')" "ingest again"
printf '5\talea, alea\t7\n' >bad.tsv
expect_exit 1 rhizome put s.rz bad.tsv --array motto
expect_says "bad.tsv:1" "3 fields"
python3 -c 'print("{\"id\": 5, \"rows\": {\"motto\": \"" + "é" * 2**19 + "x\"}}")' >long.jsonl
expect_exit 1 rhizome put s.rz long.jsonl
expect_says "long.jsonl:1: is longer than 1048576 bytes"
for value in NaN 7 true; do
  echo "{\"src\": 1, \"dst\": 2, \"shop\": $value}" >bad.jsonl
  expect_exit 1 rhizome put s.rz bad.jsonl
  expect_says "bad.jsonl:1: $value of 'shop' is neither a text nor null (none)"
  echo "{\"id\": 1, \"rows\": {\"motto\": [$value]}}" >bad.jsonl
  expect_exit 1 rhizome put s.rz bad.jsonl
  expect_says "bad.jsonl:1: $value of 'motto' is neither a text nor null (none)"
done
echo '{"src": 1, "dst": 2, "amount": null}' >bad.jsonl
expect_exit 1 rhizome put s.rz bad.jsonl
expect_says "no number means null: give a number, or ingest again with a null"
expect_texts s.rz

finish
