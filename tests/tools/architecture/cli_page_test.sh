#!/usr/bin/env bash
# docs/CLI.md says what the built binary says; where it does not, tools/cli_page.py writes it anew.
set -euo pipefail
exec "$RHIZOME_SOURCE/tools/cli_page.py" --check "$RHIZOME"
