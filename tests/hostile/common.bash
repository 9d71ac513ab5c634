# Shared by scripts of this folder, which tools/hostile.sh runs with these variables set. Sourced after `set -u`: goes
# to the empty folder that is theirs, and draws from the seed that repeats a run.
cd "$HOSTILE_SCRATCH" || exit 1
rhizome=$RHIZOME
RANDOM=$((HOSTILE_SEED % 32768))
found=0
patience=${RHIZOME_TEST_PATIENCE:-1}

# report WHAT: counts a finding and prints it.
report() {
  found=$((found + 1))
  echo "FOUND $* (HOSTILE_SEED=$HOSTILE_SEED)"
}
