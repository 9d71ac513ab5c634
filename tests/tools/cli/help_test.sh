#!/usr/bin/env bash
# Suggestions for mistyped verbs and options, settings, short and complete help, completion scripts and manual pages.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

# --- Suggestions
expect_exit 1 rhizome trian s.rz
expect_says "did you mean train?"
expect_exit 1 rhizome plan trian s.rz
expect_says "did you mean train?" "rhizome plan --help"
expect_exit 1 rhizome train s.rz --epoch 3
expect_says "--epoch" "did you mean --epochs?"
expect_exit 1 rhizome ingest s.rz --edge e.tsv
expect_says "did you mean --edges?"
expect_exit 1 rhizome info s.rz --xyzzy
! grep -q 'did you mean' err || fail "a suggestion for nothing: $(cat err)"
expect_exit 1 rhizome info s.rz $'--jsom\033]0;t\007'
! grep -q $'\033' err || fail "an escape sequence reaches the terminal"

# --- Help of verbs below verbs; the usual options first
expect_exit 0 rhizome help plan train
grep -q -- '--ranks' out || fail "help plan train lacks --ranks"
expect_exit 1 rhizome help plan nonsense
expect_says "no verb 'nonsense' in 'rhizome plan'"
expect_exit 0 rhizome train --help
cp out short
expect_exit 0 rhizome train --help-all
[ "$(wc -l <short)" -lt $(($(wc -l <out) / 2)) ] || fail "the short help of train is long"
grep -q -- '--help-all shows' short || fail "the short help does not say how to see the rest"
grep -q -- '--epochs' short || fail "the short help lacks --epochs"
! grep -q '  gamma X' short || fail "the short help has a setting"
grep -q '  gamma X' out || fail "--help-all lacks a setting"

# --- Settings
expect_exit 0 rhizome help settings
grep -q '  gamma X' out && grep -q '^rhizome train:' out || fail "help settings: $(head -5 out)"
expect_exit 1 rhizome train s.rz --set nonsense=1
expect_says "no option or setting 'nonsense'"
expect_exit 1 rhizome train s.rz --set gama=0.9
expect_says "no option or setting 'gama'; did you mean gamma?" "rhizome help settings"
expect_exit 1 rhizome train s.rz --set gamma=7
expect_says "--gamma" "7"
expect_exit 1 rhizome train s.rz --set gamma
expect_says "'gamma' is not NAME=VALUE"
expect_exit 1 rhizome train s.rz --set
expect_says "NAME=VALUE is missing"
printf '0\t1\n1\t2\n2\t0\n' >e.tsv
expect_exit 0 rhizome ingest s.rz --edges e.tsv --set partitions=2 # any option may be given so
[ ! -s err ] || fail "ingest says: $(cat err)"
expect_exit 0 rhizome ingest other.rz --edges e.tsv --order natural # as before it became a setting
expect_says "note: --order is a setting now: --set order=VALUE"
expect_exit 0 rhizome info s.rz --json
expect_json out 'j["partitions"] == 2'

# --- Help for programs: the same options as in --help-all, with the types of their values
for verb in train infer import ingest "plan train" info; do
  # shellcheck disable=SC2086
  expect_exit 0 rhizome help $verb --json && cp out options.json
  # shellcheck disable=SC2086
  expect_exit 0 rhizome $verb --help-all && cp out all.txt
  python3 - "$verb" <<'PY' || fail "help $verb --json"
import json, re, sys
described = json.load(open("options.json"))
text = open("all.txt").read()
shown = set(re.findall(r"(?m)^  (?:-\w,)?--([\w-]+)", text))
shown |= set(re.findall(r"(?m)^  ([a-z][\w-]*)", text.partition("Settings, each given as --set")[2]))
listed = [option["name"] for option in described["options"] if option["section"] != "models"]
assert described["verb"] == "rhizome " + sys.argv[1], described["verb"]
assert set(listed) == shown - {"help", "help-all", "json", "progress", "log", "set"}, set(listed) ^ shown
assert len(listed) == len(set(listed))
for option in described["arguments"] + described["options"]:
    assert (option["kind"] == "choice") <= bool(option["choices"]), option
    assert option["kind"] != "choice" or option["default"] in [None, *option["choices"]], option
PY
done
expect_exit 0 rhizome help train --json
expect_json out '{o["name"]: o for o in j["options"]}["epochs"].items() >= {"kind": "integer", "list": False,
    "choices": [], "default": "10", "required": False, "section": "usual"}.items()' \
  '{o["name"]: o for o in j["options"]}["fanout"].items() >= {"kind": "integer", "list": True, "choices": ["all"],
    "default": None}.items()' \
  '{o["name"]: o for o in j["options"]}["gamma"].items() >= {"kind": "number", "section": "setting"}.items()' \
  '{o["name"]: o for o in j["options"]}["device"].items() >= {"kind": "choice", "choices": ["cpu", "cuda"]}.items()' \
  '[a["name"] for a in j["arguments"]] == ["STORE"] and j["verbs"] == []'
expect_exit 0 rhizome help plan --json
expect_json out '{"ingest", "train", "infer"} <= {v["name"] for v in j["verbs"]}'
expect_exit 1 rhizome help settings --json
expect_exit 1 rhizome help train --json --man
if has_gnn; then
  expect_exit 0 rhizome help train --json
  expect_json out '{o["name"]: o for o in j["options"]}["heads"].items() >= {"kind": "integer", "section": "models"}.items()' \
    '{o["name"]: o for o in j["options"]}["residual"]["kind"] == "flag"'
  expect_exit 2 rhizome train missing.rz --model gat --set heads=2 # an option of a model, by --set, too
  expect_exit 1 rhizome train missing.rz --model gat --set residuel=true
  expect_says "--set: " "did you mean residual?"
  # Without the library the verb reports that, not an unknown option.
  mkdir alone
  cp "$(readlink -f "$RHIZOME")" alone/rhizome
  cp "$kill_at_library" "alone/$(readlink "$RHIZOME_BUILD/lib/librhizome_gnn.so")"
  expect_exit 6 alone/rhizome train s.rz --model gat --set heads=2
  expect_says "librhizome_gnn"
  expect_exit 0 alone/rhizome help train --json
  expect_json out 'not any(o["section"] == "models" for o in j["options"])'
fi

# --- Completion
complete_words() { # WORD...: what bash offers for the last of the words
  bash -c 'source "$0"; COMP_WORDS=(rhizome "$@"); COMP_CWORD=$#; _rhizome; echo "${COMPREPLY[@]}"' completion.bash "$@"
}
rhizome completion bash >completion.bash || fail "completion bash"
! grep -q -e keep-fields -e as-worker completion.bash || fail "completion offers options that are not for users"
[ "$(complete_words tra)" = train ] || fail "tra: $(complete_words tra)"
[ "$(complete_words plan tr)" = train ] || fail "plan tr: $(complete_words plan tr)"
[ "$(complete_words train s.rz --epo)" = --epochs ] || fail "--epo: $(complete_words train s.rz --epo)"
[ "$(complete_words train s.rz --device c)" = "cpu cuda" ] || fail "--device c: $(complete_words train s.rz --device c)"
[ "$(complete_words info e.)" = e.tsv ] || fail "files: $(complete_words info e.)"
rhizome completion zsh >_rhizome || fail "completion zsh"
grep -q '^#compdef rhizome' _rhizome || fail "no #compdef"
if command -v zsh >/dev/null; then zsh -n _rhizome || fail "zsh does not read its completion"; fi
expect_exit 1 rhizome completion fish

# --- Manual pages
"$RHIZOME_SOURCE/tools/shell_files.sh" "$RHIZOME" files || fail "shell_files.sh"
for page in rhizome rhizome-train rhizome-plan-train; do [ -s "files/man/$page.1" ] || fail "no page $page"; done
cmp -s files/bash/rhizome completion.bash || fail "another completion script"
grep -q '^\.SH SETTINGS' files/man/rhizome-train.1 || fail "the page of train lacks its settings"
if command -v groff >/dev/null; then
  for page in files/man/*.1; do
    complaints=$(groff -man -Tutf8 -ww "$page" 2>&1 >/dev/null | head -3)
    [ -z "$complaints" ] || fail "groff on $page: $complaints"
  done
fi
finish
