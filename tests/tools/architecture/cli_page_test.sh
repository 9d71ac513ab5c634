#!/usr/bin/env bash
# docs/CLI.md matches the help of the built binary. If not, run tools/cli_page.py to update it.
set -euo pipefail
exec "$RHIZOME_SOURCE/tools/cli_page.py" --check "$RHIZOME"
