#!/usr/bin/env bash
# Writes completion scripts and manual pages. usage: tools/shell_files.sh RHIZOME FOLDER
# FOLDER/bash/rhizome, FOLDER/zsh/_rhizome, FOLDER/man/rhizome.1, rhizome-VERB.1, rhizome-VERB-SUBVERB.1
set -euo pipefail
rhizome=$1 folder=$2
mkdir -p "$folder/bash" "$folder/zsh" "$folder/man"
"$rhizome" completion zsh >"$folder/zsh/_rhizome"

# The verbs below those that the arguments name.
verbs() { "$rhizome" help --man "$@" | sed -n '/^\.SH VERBS$/,/^\.SH /s/^\\fB\([a-z]*\)\\fR$/\1/p'; }
"$rhizome" help --man >"$folder/man/rhizome.1"
for verb in $(verbs); do
  "$rhizome" help --man "$verb" >"$folder/man/rhizome-$verb.1"
  for below in $(verbs "$verb"); do
    "$rhizome" help --man "$verb" "$below" >"$folder/man/rhizome-$verb-$below.1"
  done
done
"$rhizome" completion bash >"$folder/bash/rhizome" # last: the build takes it as the sign that all are there
