#!/usr/bin/env bash
# An empty value is not the same as an omitted option. Every verb refuses it for every option before
# it does anything, because "$UNSET" in a script would otherwise change the meaning of a command.
# Nor is -1 a whole number, although a parser of unsigned numbers takes it for the largest.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

cat >empty.py <<'PY'
import os, re, subprocess, sys

BINARY = os.environ["RHIZOME"]
failures = options = numbers = verbs = 0


def run(*arguments):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def refused(arguments, *words):
    global failures
    done = run(*arguments)
    if done.returncode != 1 or any(word not in done.stderr for word in words):
        failures += 1
        print(f"FAILED: {arguments}: {done.returncode} {done.stderr!r}", file=sys.stderr)


def subverbs(text):
    part = text.partition("Subcommands:")[2]
    return re.findall(r"^  ([a-z]\S*)", part, re.M)


def walk(path):
    global options, numbers, verbs
    text = run(*path, "--help").stdout
    for name in subverbs(text):
        if path or name not in ("help", "bench"):
            walk([*path, name])
    if not subverbs(text):
        text = run(*path, "--help-all").stdout
    verbs += bool(path)
    usual, _, settings = text.partition("Settings, each given as --set NAME=VALUE:")
    named = re.findall(r"^ +(?:-\w,)?(--[a-z][a-z0-9-]*)( [^\s=]+)?", usual, re.M)
    named += [("--" + name, kind) for name, kind in re.findall(r"^  ([a-z][a-z0-9-]*)( [^\s=]+)?", settings, re.M)]
    for option, kind in named:
        if not kind:
            continue  # a flag
        options += 1
        if kind == " N":
            numbers += 1
            refused([*path, option, "-1"], option, "-1")
            refused([*path, option + "=-1"], option, "-1")
        refused([*path, option, ""], option, "value is empty", "'rhizome " + " ".join(path) + " --help'")
        refused([*path, option + "="], option, "value is empty")
        refused([*path, "store", option, "", "--json"], option, "value is empty")
    if path:
        refused([*path, ""], "an argument is empty")
        refused([*path, "--", "store", ""], "an argument is empty")


walk([])
refused(["help", ""], "an argument is empty")
assert verbs > 25 and options > 300 and numbers > 40, f"only {verbs} verbs, {options} options, {numbers} numbers"
sys.exit(failures > 0)
PY
python3 empty.py || fail "empty values: see above"

# What was written instead of what was meant.
printf '0\t1\n1\t2\n' >e.tsv
printf '0\t0\t1\n1\t0\t2\n2\t0\t3\n' >f.txt
expect_exit 0 rhizome ingest s.rz --edges e.tsv --array f=f.txt:1
UNSET=
printf '0\t5\n' >row.tsv
expect_exit 1 rhizome put s.rz row.tsv --array "$UNSET"
expect_says "--array"
expect_exit 1 rhizome put s.rz row.tsv --array="$UNSET"
expect_says "--array"
expect_exit 1 rhizome compact s.rz --expire "$UNSET"
expect_exit 1 rhizome ingest t.rz --edges e.tsv --nodes "$UNSET"
expect_exit 1 rhizome ingest t.rz --edges e.tsv --columns src,,dst
expect_says "--columns" "empty name"
[ ! -e t.rz ] || fail "a refused ingestion left t.rz"
rhizome info s.rz --json >o.json
expect_json o.json 'j["commit"] == 0' 'j["edges"] == 2'
# What only looks so: names with "=", and those behind "--", which are no options.
expect_exit 0 rhizome ingest ./t=.rz --edges=e.tsv
expect_exit 2 rhizome info -- --u=
expect_says "no Rhizome store at '--u='"
mv t=.rz ./--u=
expect_exit 0 rhizome info -- --u=
finish
