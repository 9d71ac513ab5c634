#!/usr/bin/env bash
# The hostile stores, inputs and surroundings of tests/hostile/, as much of each as CI has time for.
exec "$RHIZOME_SOURCE/tools/hostile.sh"
