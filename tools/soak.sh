#!/usr/bin/env bash
# Runs the randomised tests of the release build over and over with new seeds, three at a time beside a busy compiler.
# What failed is printed with the line that repeats it, and what was done is added to tests/SOAK.tsv.
# usage: tools/soak.sh [--hours N] [--only REGEX] [--seeds N]
#   --hours N     may be a fraction; tests that have begun are finished (1, or no end where --seeds is given)
#   --only REGEX  only tests whose name matches: "rhizome_cache_quick_tests ReplayTest.Exact", "rows_test"
#   --seeds N     ends when each test has had so many seeds
# Uses what is built in build/release, and leaves out what is not. Exit code 1 if anything failed. Ctrl-C ends all that
# it has started. tests/RELIABILITY.md has the columns of the ledger.
exec python3 "$(dirname "$0")/soak.py" "$@"
