#!/usr/bin/env python3
"""Main loop of tools/soak.sh, which describes the usage.

A test is a unit that ctest runs: a script, or a shard of a GoogleTest binary. Of a shard, only the cases that use a
random seed (they print RHIZOME_TEST_SEED) are repeated. A case that failed is run again with its seed, alone. If it
then passes, it is flaky, and no seed repeats the failure reliably.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import shlex
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ROOT / "tests/SOAK.tsv"
COLUMNS = "test\tcommit\tseeds\thours\tfailed\tflaky\trepeat\n"
AT_ONCE = 3
PERTURB = "165"  # as in tools/test.sh
SHOWN_LINES = 40
DRAWS = re.compile("SEED|test_seed|hostile.sh")
RUN = "[ RUN      ] "
FAILED = re.compile(r"^\[  FAILED  \] ([^\s,]+).* \(\d+ ms\)$", re.M)


class Test:
    """A script, or those cases of a shard that draw."""

    def __init__(self, listed, build):
        properties = {p["name"]: p["value"] for p in listed["properties"]}
        environment = dict(value.split("=", 1) for value in properties.get("ENVIRONMENT", []))
        self.name = listed["name"]
        self.build = build
        self.shard = int(environment.pop("GTEST_SHARD_INDEX", 0)), int(environment.pop("GTEST_TOTAL_SHARDS", 0))
        environment.pop("RHIZOME_COUNTS", None)  # those are of a run of ctest
        self.environment = environment
        self.seconds = properties.get("TIMEOUT", 1800)
        self.folder = properties["WORKING_DIRECTORY"]
        self.command = [word for word in listed["command"] if not word.startswith("--gtest_")]
        self.binary = pathlib.Path(self.command[0]).name
        given = [word.split("=", 1)[1] for word in listed["command"] if word.startswith("--gtest_filter=")]
        self.cases = given or (self.cases_of_shard() if self.shard[1] else [])
        self.is_binary = bool(self.cases)
        self.target = self.binary if self.is_binary else self.name
        if build != "release":
            self.target = f"{build}/{self.target}"

    def cases_of_shard(self):
        listed = subprocess.run([*self.command, "--gtest_list_tests"], capture_output=True, text=True).stdout
        suite, cases = "", []
        for line in listed.splitlines():
            name = line.split("#")[0].strip()
            if not line.startswith(" "):
                suite = name
            elif "DISABLED_" not in suite + name:
                cases.append(suite + name)
        return cases[self.shard[0]::self.shard[1]]

    def may_draw(self):
        script = pathlib.Path(self.command[-1])
        return self.is_binary or script.is_file() and DRAWS.search(script.read_text(errors="replace"))

    def keep(self, only):
        """Keeps the cases that match; returns whether anything is left."""
        self.cases = [case for case in self.cases if re.search(only, f"{self.target} {case}")]
        return bool(self.cases) if self.is_binary else re.search(only, self.name)

    def repeat(self, seed, case):
        given = f"MALLOC_PERTURB_={PERTURB} RHIZOME_TEST_SEED={seed}"
        if self.is_binary:
            return f"{given} build/{self.build}/bin/{self.binary} --gtest_filter='{case}'"
        return (f"{given} PYTHONHASHSEED={seed} ctest --test-dir build/{self.build} --output-on-failure "
                f"-R '^{self.name}$'")


class Processes:
    """Those that run, each with a group of its own, so that all of them can be ended."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = set()
        self.ended = False

    def run(self, command, seconds=None, **options):
        """Returns exit code and output; None and the output where it was not done in time, or where all were ended."""
        with self.lock:
            if self.ended:
                return None, ""
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, start_new_session=True, **options)
            self.running.add(process)
        try:
            output, code = process.communicate(timeout=seconds)[0], process.returncode
        except subprocess.TimeoutExpired:
            signal_group(process, signal.SIGKILL)
            output, code = process.communicate()[0], None
        finally:
            with self.lock:
                self.running.discard(process)
        return None if self.ended else code, output.decode(errors="replace")

    def end(self):
        """What they have started goes with them; those that tidy up get five seconds for it."""
        with self.lock:
            self.ended = True
            running = list(self.running)
        for process in running:
            signal_group(process, signal.SIGTERM)
        for _ in range(50):
            if all(process.poll() is not None for process in running):
                break
            time.sleep(0.1)
        for process in running:
            signal_group(process, signal.SIGKILL)


def signal_group(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


class Soak:
    def __init__(self, options):
        self.commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True,
                                     text=True).stdout.strip()
        self.seeds = options.seeds
        hours = options.hours or (1 if not options.seeds else float("inf"))
        self.end = time.monotonic() + 3600 * hours
        self.processes = Processes()
        self.lock = threading.Lock()
        self.counts = collections.defaultdict(lambda: [0, 0.0])  # seeds and seconds of a target
        self.failures = []  # rows of the ledger
        self.folder = ROOT / "build" / options.build
        self.tests = [test for test in all_tests(options.build) if test.may_draw() and test.keep(options.only)]
        self.turns = self.draw()

    def draw(self):
        """Yields tests, each as often as any other, with their seeds."""
        turn = 0
        while self.tests and (self.seeds is None or turn < self.seeds):
            turn += 1
            for test in random.sample(self.tests, len(self.tests)):
                if time.monotonic() > self.end:
                    return
                yield test, random.randrange(1, 1 << 30)

    def work(self):
        while not self.processes.ended:
            with self.lock:
                test, seed = next(self.turns, (None, 0))
            if test is None:
                return
            self.one(test, seed)

    def one(self, test, seed):
        begun = time.monotonic()
        code, output = self.run(test, seed, test.cases)
        if self.processes.ended:
            return
        if test.is_binary:
            parts = output.split(RUN)[1:]
            drawing = [part.split(None, 1)[0] for part in parts if "RHIZOME_TEST_SEED=" in part]
        else:
            drawing = [test.name] if "RHIZOME_TEST_SEED" in output else []
        if code != 0 and (code != 77 or test.is_binary):
            failed = sorted(set(FAILED.findall(output))) if test.is_binary else [test.name]
            for case in failed or [parts[-1].split(None, 1)[0] if parts else test.cases[0]]:
                self.failed(test, seed, case, code, output)
                drawing.append(case)
        with self.lock:
            if code == 0:
                test.cases = [case for case in test.cases if case in drawing]
            if drawing:
                self.counts[test.target][0] += 1
                self.counts[test.target][1] += time.monotonic() - begun
            elif test in self.tests:
                self.tests.remove(test)

    def run(self, test, seed, cases):
        environment = {**os.environ, **test.environment, "RHIZOME_TEST_SEED": str(seed), "PYTHONHASHSEED": str(seed),
                       "RHIZOME_TEST_PATIENCE": "10", "MALLOC_PERTURB_": PERTURB}
        filters = [f"--gtest_filter={':'.join(cases)}"] if test.is_binary else []
        return self.processes.run(test.command + filters, test.seconds, cwd=test.folder, env=environment)

    def failed(self, test, seed, case, code, output):
        again, _ = self.run(test, seed, [case])
        if self.processes.ended:
            return
        flaky = again == 0
        if test.is_binary:
            output = next((part for part in output.split(RUN) if part.startswith(case)), output)
        shown = "\n".join(output.splitlines()[-SHOWN_LINES:])
        how = "not done in time" if code is None else f"exit code {code}"
        repeat = test.repeat(seed, case)
        with self.lock:
            self.failures.append((case, 0, 0, int(not flaky), int(flaky), repeat))
            print(f"{shown}\n{'FLAKY' if flaky else 'FAILED'} ({how}) {repeat}\n", flush=True)

    def compile(self):
        """Compiles one source after the other, past the compiler cache and to nowhere."""
        commands = json.loads((self.folder / "compile_commands.json").read_text())
        while not self.processes.ended:
            entry = random.choice(commands)
            command = shlex.split(entry["command"])
            if "-o" in command:
                command[command.index("-o") + 1] = "/dev/null"
                self.processes.run(command, cwd=entry["directory"])

    def report(self):
        rows = [(target, seeds, seconds / 3600, 0, 0, "") for target, (seeds, seconds) in sorted(self.counts.items())]
        if not LEDGER.exists():
            LEDGER.write_text(COLUMNS)
        with LEDGER.open("a") as ledger:
            for name, seeds, hours, failed, flaky, repeat in rows + self.failures:
                ledger.write(f"{name}\t{self.commit}\t{seeds}\t{hours:.4f}\t{failed}\t{flaky}\t{repeat}\n")
        print(f"{sum(row[1] for row in rows)} seeds over {len(rows)} tests, "
              f"{sum(row[3] for row in self.failures)} failed, {sum(row[4] for row in self.failures)} flaky")


def all_tests(build):
    listed = subprocess.run(["ctest", "--test-dir", ROOT / "build" / build, "--show-only=json-v1", "-L", "quick|ci"],
                            capture_output=True, check=True)
    for test in json.loads(listed.stdout)["tests"]:
        # What is not built has no command; what counts for others has nothing to count here.
        if test.get("command") and not any(p["name"] == "DEPENDS" for p in test["properties"]):
            yield Test(test, build)


def main():
    parser = argparse.ArgumentParser(prog="tools/soak.sh", add_help=False)
    parser.add_argument("--build", default="release")
    parser.add_argument("--hours", type=float)
    parser.add_argument("--only", default=".")
    parser.add_argument("--seeds", type=int)
    options = parser.parse_args()
    if not (ROOT / "build" / options.build / "compile_commands.json").exists():
        sys.exit(f"soak.sh: there is no build/{options.build}; build it (`cmake --preset {options.build}`)")
    soak = Soak(options)
    if not soak.tests:
        sys.exit(f"soak.sh: nothing that is built in build/{options.build} and matches draws a seed")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threads = [threading.Thread(target=soak.work) for _ in range(AT_ONCE)]
    compiler = threading.Thread(target=soak.compile)
    try:
        for thread in [*threads, compiler]:
            thread.start()
        # With a limit: a signal that arrives just before an unlimited join would not end it.
        for thread in threads:
            while thread.is_alive():
                thread.join(0.5)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        soak.processes.end()
        for thread in [*threads, compiler]:
            thread.join()
        soak.report()
    sys.exit(1 if soak.failures else 0)


if __name__ == "__main__":
    main()
