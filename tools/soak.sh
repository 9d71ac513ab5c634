#!/usr/bin/env bash
# Runs the randomised tests of a build repeatedly with new seeds, three at a time while a compiler runs.
# Prints each failure with the command that repeats it, and appends the work done to tests/SOAK.tsv.
# usage: tools/soak.sh [--build NAME] [--hours N] [--only REGEX] [--seeds N]
#   --build NAME  folder below build/ whose tests run (default release). asan-gnn: the tests of gnn under the sanitizers,
#                 which .ci/run leaves out (`tools/test.sh asan-gnn` builds them)
#   --hours N     may be a fraction; running tests are finished (default 1, or unlimited if --seeds is given)
#   --only REGEX  only tests whose name matches: "rhizome_cache_quick_tests ReplayTest.Exact", "rows_test"
#   --seeds N     ends when each test has run with N seeds
# Uses the programs that are built and skips missing ones. Exit code 1 if a test failed. Ctrl-C ends all
# processes that it started. tests/RELIABILITY.md describes the columns of the ledger.
exec python3 "$(dirname "$0")/soak.py" "$@"
