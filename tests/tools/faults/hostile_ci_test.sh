#!/usr/bin/env bash
# Runs as much of each script of tests/hostile/ (hostile stores, inputs and surroundings) as CI has
# time for.
exec "$RHIZOME_SOURCE/tools/hostile.sh"
