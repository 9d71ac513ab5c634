#!/usr/bin/env python3
"""Progress of a build by ninja, in lines for a person.

usage: COMMAND 2>&1 | build_progress.py LOG     copies its input to the file LOG, and prints progress
"""

import os
import re
import sys
import time

#: Seconds that one object takes on one core: storage, index, cache and tools take 1,340 in 100 batches.
SECONDS_PER_OBJECT = 13
#: Objects of the package, for the time that is said before ninja counts them.
OBJECTS = 85
#: Seconds between two lines.
INTERVAL = 15

_STEP = re.compile(r"\[(\d+)/(\d+)\]")


def minutes(seconds):
    """Returns a time as a text: "about 3 minutes"."""
    whole = max(round(seconds / 60), 1)
    return f"about {whole} minute{'s' if whole > 1 else ''}"


class Progress:
    """Reads the lines of a build, and says how many objects are built, of how many."""

    def __init__(self, say, clock=time.monotonic, cores=None):
        self._say, self._clock = say, clock
        self._cores = cores or len(os.sched_getaffinity(0))
        self._begun = self._said = None
        self._first = 0

    def begin(self):
        """Says how long it will take."""
        self._say(f"the engine is compiled: {minutes(OBJECTS * SECONDS_PER_OBJECT / self._cores)} on {self._cores} "
                  f"core{'s' if self._cores > 1 else ''}")

    def line(self, text):
        """Takes a line of the build."""
        step = _STEP.match(text)
        if step is None:
            return
        done, total = map(int, step.groups())
        now = self._clock()
        if self._begun is None:
            self._begun, self._first = now, done
        elif done < total and now - self._said < INTERVAL:
            return
        left = ""
        if self._first < done < total:
            left = f", {minutes((now - self._begun) / (done - self._first) * (total - done))} left"
        self._say(f"{done} of {total} objects built{left}")
        self._said = now


def main(path):
    progress = Progress(lambda text: print(f"  {text}", flush=True))
    with open(path, "w", encoding="utf-8") as log:
        for line in sys.stdin:
            log.write(line)
            progress.line(line)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
