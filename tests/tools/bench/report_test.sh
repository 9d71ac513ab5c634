#!/usr/bin/env bash
# `bench report`: docs/RESULTS.md is generated from docs/results; --check finds a changed figure; a file that is not as
# documented is rejected with its name and the field.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash

# --- The page in the source tree
cd "$RHIZOME_SOURCE" || exit 1
expect_exit 0 rhizome bench report --check
expect_exit 0 rhizome bench report --check --json
expect_json "$work/out" 'j["workload"] == "report"' 'j["page"] == "docs/RESULTS.md"' \
  'j["lines"] == len(open("docs/RESULTS.md").readlines()) <= 250' \
  'j["sections"] == len([f for f in os.listdir("docs/results") if f.endswith(".json")]) - 1'

# Links to sections of the page, and from it to other files, have a target.
python3 - <<'PY' || fail "links of docs/RESULTS.md"
import os, pathlib, re, subprocess, sys
def anchor(title):
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
page = pathlib.Path("docs/RESULTS.md").read_text()
anchors = {anchor(title) for title in re.findall(r"^## (.*)$", page, re.M)}
missing = [f"docs/RESULTS.md#{a}" for a in re.findall(r"\]\(#([^)]*)\)", page) if a not in anchors]
pages = [*pathlib.Path(".").glob("*.md"), *pathlib.Path("docs").rglob("*.md"), *pathlib.Path(".").glob("*/*.md")]
for file in set(pages):
    text = file.read_text()
    missing += [f"{file}: RESULTS.md#{a}" for a in re.findall(r"RESULTS\.md#([\w-]+)", text) if a not in anchors]
    if file.name == "RESULTS.md" or file.parent.name == "studies":
        links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
        missing += [f"{file}: {link}" for link in links if not (file.parent / link).exists()]
print("\n".join(missing), file=sys.stderr)
sys.exit(bool(missing))
PY

# --- A copy
cd "$work" || exit 1
mkdir docs
cp -r "$RHIZOME_SOURCE/docs/results" docs
expect_exit 2 rhizome bench report --check
expect_says docs/RESULTS.md
expect_exit 0 rhizome bench report
cmp docs/RESULTS.md "$RHIZOME_SOURCE/docs/RESULTS.md" || fail "another page in a copy"
expect_exit 0 rhizome bench report --check
expect_exit 0 rhizome bench report --results docs/results --out other.md
cmp docs/RESULTS.md other.md || fail "another page with --out"

# A figure that changes in the results, or on the page.
grep -q '"0.97"' docs/results/cold-reads.json || fail "cold-reads.json has no ratio 0.97"
sed -i 's/"0.97"/"0.98"/' docs/results/cold-reads.json
cp docs/RESULTS.md before.md
expect_exit 1 rhizome bench report --check
line=$(grep -n '| 0.97 |' docs/RESULTS.md | head -n 1 | cut -d: -f1)
expect_says "docs/RESULTS.md:$line is" '0.97 |' '0.98 |' docs/results
cmp docs/RESULTS.md before.md || fail "--check changed the page"
expect_exit 0 rhizome bench report
expect_exit 0 rhizome bench report --check
echo "one line more" >>docs/RESULTS.md
expect_exit 1 rhizome bench report --check
expect_says "docs/RESULTS.md:$(wc -l <docs/RESULTS.md) is \"one line more\""

# --- Files that are not as documented. Nothing is written then.
# refused FILE PYTHON TEXT...: runs statements on the object `j` of a copy of the file; the message names the file and says
# the texts.
refused() {
  local file=$1 change=$2
  shift 2
  rm -rf wrong untouched.md
  cp -r "$RHIZOME_SOURCE/docs/results" wrong
  python3 - "wrong/$file" "$change" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
exec(sys.argv[2])
json.dump(j, open(sys.argv[1], "w"))
PY
  expect_exit 1 rhizome bench report --results wrong --out untouched.md
  expect_says "wrong/$file" "$@"
  [ ! -e untouched.md ] || fail "a page was written in spite of: $change"
}
refused inference.json 'del j["title"]' '"title" must be one line of text'
refused inference.json 'j["title"] = 7' '"title" must be one line of text'
refused inference.json 'j["notes"] = "two\nlines"' '"notes" must be one line of text'
refused inference.json 'j["order"] = "first"' '"order" must be an integer'
refused inference.json 'j["order"] = -1' '"order" must be an integer'
refused inference.json 'j["commands"] = []' '"commands" must be a list with at least one text'
refused inference.json 'j["commands"][0] = ""' '"commands[0]" must be one line of text'
refused inference.json 'j["rows"] *= 2' '"rows" must be a list of 1 to 6 rows' 'not 12'
refused inference.json 'del j["rows"]' '"rows" must be a list of 1 to 6 rows'
refused inference.json 'j["rows"][1].pop()' '"rows[1]" has 2 texts, but there are 3 columns'
refused inference.json 'j["rows"][1] = "text"' '"rows[1]" must be a list of texts'
refused inference.json 'j["rows"][1][2] = 3756' '"rows[1][2]" must be one line of text'
refused inference.json 'j["colums"] = j.pop("columns")' '"colums" is not one of the fields title, order'
refused inference.json 'j["measured"] = "2026-11"' '"measured" must be an object'
refused inference.json 'j["measured"]["date"] = "November"' '"measured.date" must be a date such as'
refused inference.json 'j["measured"]["by"] = "us"' '"measured.by" is not one of the fields date, commit'
refused setup.json 'del j["introduction"]' '"introduction" must be one line of text'
refused setup.json 'j["setup"] = "one machine"' '"setup" must be a list'
python3 - <<'PY'
import json
for field in "order", "title":
    j = json.load(open("docs/results/inference.json"))
    j[field] = json.load(open("docs/results/cold-reads.json"))[field]
    json.dump(j, open(f"same_{field}.json", "w"))
PY
for field in order title; do
  rm -rf wrong
  cp -r "$RHIZOME_SOURCE/docs/results" wrong
  mv "same_$field.json" wrong/inference.json
  expect_exit 1 rhizome bench report --results wrong --out untouched.md
  expect_says wrong/inference.json "\"$field\"" "is already used by wrong/cold-reads.json"
done

rm -rf wrong
cp -r docs/results wrong
echo '{"title": "Broken", }' >wrong/broken.json
expect_exit 1 rhizome bench report --results wrong --out untouched.md
expect_says "wrong/broken.json is not valid JSON" "line 1, column"
echo '{"title": "a", "title": "b"}' >wrong/broken.json
expect_exit 1 rhizome bench report --results wrong --out untouched.md
expect_says wrong/broken.json '"title" is set twice'
echo '[]' >wrong/broken.json
expect_exit 1 rhizome bench report --results wrong --out untouched.md
expect_says "wrong/broken.json is not a JSON object"
rm wrong/*.json
cp docs/results/setup.json wrong
expect_exit 1 rhizome bench report --results wrong --out untouched.md
expect_says "wrong has no results"
rm wrong/setup.json
expect_exit 2 rhizome bench report --results wrong --out untouched.md
expect_says wrong/setup.json
expect_exit 2 rhizome bench report --results nowhere --out untouched.md
expect_says "there is no folder 'nowhere'"
expect_exit 2 rhizome bench report --results docs/results --out nowhere/page.md
expect_says "the folder 'nowhere' does not exist"

# A bar in a cell does not end the cell; a commit is printed behind the date; a field of its own setup may be missing.
python3 - <<'PY'
import json
j = json.load(open("docs/results/inference.json"))
j["rows"][0][1] = "a|b"
j["measured"]["commit"] = "3a2e2c7a"
j.pop("setup", None)
json.dump(j, open("docs/results/inference.json", "w"))
PY
expect_exit 0 rhizome bench report
grep -qF '| a\|b |' docs/RESULTS.md || fail "a bar in a cell"
grep -q 'Measured 2026-11 at 3a2e2c7a\.$' docs/RESULTS.md || fail "the commit"
finish
