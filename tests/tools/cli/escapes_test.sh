#!/usr/bin/env bash
# Names from a store, arguments and file names cannot control a terminal: text output escapes them;
# --json and data files contain them unchanged.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

cat >escapes.py <<'PY'
import json, os, pathlib, re, shutil, subprocess, sys

BINARY = os.environ["RHIZOME"]
NASTY = "x\x1b]0;title\x07\x1b[2J\x7f\u009b31m\u202e\u2066\u200f\u061c\u2028\u200b\ufeff"
RAW = b"raw\x9b31m\x1b[1m\xff"  # not UTF-8: C1 controls as single bytes
HARMFUL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
SHOWN = "x\\u001b]0;title\\u0007\\u001b[2J\\u007f\\u009b31m\\u202e\\u2066\\u200f\\u061c\\u2028\\u200b\\ufeff"
failures = 0


def fail(what):
    global failures
    failures += 1
    print("FAILED:", what, file=sys.stderr)


def run(*arguments, code=None, shows=None, quiet=False):
    done = subprocess.run([BINARY, *arguments], capture_output=True, stdin=subprocess.DEVNULL)
    if code is not None and done.returncode != code:
        fail(f"{arguments}: exit code {done.returncode}, wanted {code}: {done.stderr!r}")
    if quiet:
        return done
    try:
        text = (done.stdout + done.stderr).decode()
    except UnicodeDecodeError as error:
        return fail(f"{arguments}: output is not UTF-8: {error}")
    # The bar begins with a carriage return and a clearing of the line, which are its own.
    found = HARMFUL.search(text.replace("\r\x1b[K", ""))
    if found:
        fail(f"{arguments}: shows {found[0]!r}: {text[max(0, found.start() - 60):found.end() + 20]!r}")
    if shows is not None and shows not in text:
        fail(f"{arguments}: does not show {shows!r}: {text[:600]!r}")
    return done


def fields_of(*arguments):
    done = run(*arguments, "--json", code=0, quiet=True)
    return json.loads(done.stdout) if done.stdout else {}


store = pathlib.Path(f"s {NASTY}.rz")
edges = pathlib.Path(f"e {NASTY}.csv")
line_break = "two\nlines: ok"
edges.write_text(f'a,{NASTY}\n{NASTY},"{line_break}"\n"{line_break}",a\n')
nodes = pathlib.Path("n.csv")
nodes.write_text(f'a,0\n{NASTY},1\n"{line_break}",0\n')
array = f"f={NASTY}.txt:1"
pathlib.Path(f"{NASTY}.txt").write_text("0\t0\t1\n1\t0\t2\n2\t0\t3\n")

run("ingest", store, "--edges", edges, "--nodes", nodes, "--node-columns", "id,label", "--array", array,
    "--progress", "plain", code=0)

# Tables show ids escaped; JSON and data have the ids themselves.
run("neighbors", store, "a", code=0, shows=SHOWN)
run("neighbors", store, NASTY, code=0, shows="two\\nlines: ok")
run("get", store, NASTY, "--array", "f", code=0, shows=SHOWN)
run("similar", store, "a", "--array", "f", code=0, shows=SHOWN)
if fields_of("neighbors", store, "a").get("neighbors", [{}])[0].get("id") != NASTY:
    fail("neighbors --json does not have the id itself")
if fields_of("get", store, line_break, "--array", "f").get("id") != line_break:
    fail("get --json does not have the id itself")
run("export", store, "--edges", "--out", "out.csv", code=0)
if pathlib.Path("out.csv").read_text().count(NASTY) != 2:
    fail("export does not have the ids themselves")

# Pages of verbs with the path of the store.
for verb in (["info"], ["info", "--metrics"], ["verify"], ["plan", "infer"], ["doctor"], ["compact"]):
    run(verb[0], *verb[1:], store)
(store / NASTY).write_text("no file of a store")
run("verify", store)
(store / os.fsdecode(RAW)).write_text("no file of a store")
run("verify", store)
fields_of("info", store)
run("repair", store)

# Errors quote arguments, ids, file names and lines.
for word in (NASTY, os.fsdecode(RAW)):
    run(word, code=1)
    run("info", store, "--" + word, code=1)
    run("info", word + ".rz", code=2)
    run("get", store, word, "--array", "f")
    run("get", store, "a", "--array", word, code=1)
    run("neighbors", store, "a", "--type", word)
    run("neighbors", store, "a", "--direction", word, code=1)
    run("compact", store, "--memory", word, code=1)
    run("compact", store, "--expire", word, code=1)
    run("export", store, "--array", "f", "--out", word, code=1)
    run("export", store, "--array", "f", "--out", f"{word}/x.npy")
    run("put", store, word, code=2)
    run("sample", store, "--seeds", word, "--fanout", "2", code=2)
    run("help", word, code=1)
    run("ingest", "t.rz", "--edges", word, code=2)
    run("import", word, "t.rz", "--from", ".")
    run("train", store, "--model", word)
    run("train", store, "--class-weights", word)
    run("infer", store, "--model-file", word, "--out", "o")
pathlib.Path("bad.tsv").write_text(f"a\t{NASTY}\t{NASTY}\n")
run("put", store, "bad.tsv", "--columns", "src,dst,type", code=1, shows=SHOWN)
run("put", store, "bad.tsv", "--columns", "src,dst,weight", code=1, shows=SHOWN)
pathlib.Path("bad.jsonl").write_text(json.dumps({"op": NASTY, "id": 1}, ensure_ascii=False) + "\n")
run("put", store, "bad.jsonl", code=1, shows=SHOWN)
pathlib.Path("seeds").write_text("gone" + NASTY + "\n")
run("sample", store, "--seeds", "seeds", "--fanout", "2", shows=SHOWN)
done = run("get", store, "gone" + NASTY, "--array", "f", "--json", quiet=True)
if json.loads(done.stdout)["error"]["code"] != "not_found":
    fail("an error is no JSON")

sys.exit(failures > 0)
PY
python3 escapes.py || fail "escapes: see above"
finish
