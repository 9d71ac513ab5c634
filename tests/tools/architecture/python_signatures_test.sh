#!/usr/bin/env bash
# The typed functions of python/rhizome/_verbs.py match the options of the built binary. If not, run
# tools/python_signatures.py to update them.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
has_gnn || skip "this build has no librhizome_gnn, which defines options of train"
"$RHIZOME_SOURCE/tools/python_signatures.py" --check "$RHIZOME"
