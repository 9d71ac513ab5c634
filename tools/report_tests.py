#!/usr/bin/env python3
"""Counts the cases of a ctest run, reruns those that failed, and prints the failures.

usage: tools/report_tests.py BUILD_FOLDER NAME

Reads ctest's own report (BUILD_FOLDER/ctest.xml, of --output-junit) and, for binaries that ran many cases in one
process, GoogleTest's (BUILD_FOLDER/reports/TEST.xml): each of their cases counts, and a process that crashed counts
as one more failed case. A case that failed is run again, alone and in the same environment. If it then passes, it
counts as passed and is printed as `flaky: CASE`. The report ends with the slowest tests and the line
`NAME: P passed, F failed, S skipped`.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from dataclasses import dataclass

SHOWN_LINES = 80
SHOWN_COLUMNS = 500
SLOWEST = 10
MOST_AGAIN = 12  # cases; where more have failed, it was not by chance
SECONDS_AGAIN = 3600  # of a case


@dataclass
class Case:
    name: str
    verdict: str  # passed, failed or skipped
    message: str
    test: str  # the test of ctest that it is, or that it is a part of
    alone: bool = False  # GoogleTest can run it without the other cases of its test


def shown(text):
    lines = [line[:SHOWN_COLUMNS] for line in (text or "").splitlines()]
    return "\n".join(lines[-SHOWN_LINES:])


def part_of(output, case):
    """What a case printed, its seed among it; cases with a parameter are told by the part before it."""
    lines = (output or "").splitlines()
    begun = [at for at, line in enumerate(lines) if line.startswith("[ RUN      ] " + case)]
    if not begun:
        return ""
    part = lines[begun[0] :]
    for at, line in enumerate(part):
        if line.startswith("[  FAILED  ]"):
            return "\n".join(part[: at + 1])
    return "\n".join(part)


def last_case(output):
    """The case that a process was in when it ended."""
    begun = [line for line in (output or "").splitlines() if line.startswith("[ RUN      ]")]
    return begun[-1][len("[ RUN      ]") :].strip() if begun else "no case"


def cases_of(report):
    """Name, verdict and message of each case of GoogleTest's report."""
    for case in xml.parse(report).getroot().iter("testcase"):
        if case.get("status") == "notrun":
            continue
        name = f"{case.get('classname')}.{case.get('name')}"
        failures = case.findall("failure")
        if failures:
            yield name, "failed", "\n".join(failure.text or "" for failure in failures)
        elif case.find("skipped") is not None or case.get("result") == "skipped":
            yield name, "skipped", case.find("skipped").get("message", "") if case.find("skipped") is not None else ""
        else:
            yield name, "passed", ""


def why_not_run(test):
    """A test that skipped has said so; one whose binary is missing, say, has failed."""
    reason = test.find("skipped")
    message = reason.get("message", "") if reason is not None else ""
    return "skipped" if test.get("status") == "disabled" or message.startswith("SKIP_") else "failed"


def results(build, junit):
    for test in xml.parse(junit).getroot().iter("testcase"):
        name, status, output = test.get("name"), test.get("status"), test.findtext("system-out")
        report = build / "reports" / f"{name}.xml"
        if report.exists():
            cases = list(cases_of(report))
            for case, verdict, message in cases:
                text = shown(part_of(output, case) or message) if verdict == "failed" else message
                yield Case(case, verdict, text, name, alone=True)
            if status == "run" or any(verdict == "failed" for _, verdict, _ in cases):
                continue
            yield Case(name, "failed", shown(output), name)
        elif status == "fail" and output and "[ RUN      ]" in output:
            yield Case(f"{name}, which ended in {last_case(output)}", "failed", shown(output), name)
        else:
            verdict = {"run": "passed", "fail": "failed"}.get(status) or why_not_run(test)
            yield Case(name, verdict, shown(output) if verdict == "failed" else "", name)


class Again:
    """Runs tests of a build folder once more."""

    def __init__(self, build):
        self.build = build
        listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, check=True)
        self.tests = {test["name"]: test for test in json.loads(listed.stdout)["tests"]}

    def properties(self, test):
        return {p["name"]: p["value"] for p in self.tests[test].get("properties", [])}

    def order(self, case):
        """Tests that count what others did come last."""
        return "DEPENDS" in self.properties(case.test)

    def run(self, case):
        """Returns what became of the case; where its whole test was run, what became of each of that."""
        return [self.case(case)] if case.alone else self.test(case)

    def case(self, case):
        environment = dict(os.environ)
        properties = self.properties(case.test)
        environment.update(value.split("=", 1) for value in properties.get("ENVIRONMENT", []))
        for shards in ("GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"):
            environment.pop(shards, None)
        command = [word for word in self.tests[case.test]["command"] if not word.startswith("--gtest_output=")]
        try:
            run = subprocess.run([*command, f"--gtest_filter={case.name}"], cwd=properties["WORKING_DIRECTORY"],
                                 env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 errors="replace", timeout=SECONDS_AGAIN)
            # A filter that matches nothing passes, too.
            verdict = "passed" if run.returncode == 0 and "[       OK ]" in run.stdout else "failed"
            return Case(case.name, verdict, shown(run.stdout), case.test, alone=True)
        except subprocess.TimeoutExpired:
            return Case(case.name, "failed", f"not done within {SECONDS_AGAIN} s", case.test, alone=True)

    def test(self, case):
        (self.build / "reports" / f"{case.test}.xml").unlink(missing_ok=True)
        junit = self.build / "ctest_again.xml"
        subprocess.run(["ctest", "--test-dir", self.build, "-R", f"^{re.escape(case.test)}$", "--output-junit",
                        junit.resolve()], stdout=subprocess.DEVNULL)
        return [found for found in results(self.build, junit) if found.test == case.test]


def slowest(junit):
    """Returns the tests of ctest that took longest, with their seconds."""
    tests = xml.parse(junit).getroot().iter("testcase")
    times = sorted(((float(test.get("time") or 0), test.get("name")) for test in tests), reverse=True)
    return ", ".join(f"{test} {seconds:.0f} s" for seconds, test in times[:SLOWEST])


def main():
    build, name = pathlib.Path(sys.argv[1]), sys.argv[2]
    cases = list(results(build, build / "ctest.xml"))
    failed = [case for case in cases if case.verdict == "failed"]
    flaky = []
    if len(failed) > MOST_AGAIN:
        print(f"{name}: {len(failed)} cases failed, which is not by chance: none is run again")
    elif failed:
        again = Again(build)
        for case in sorted(failed, key=again.order):
            found = again.run(case)
            if found and all(other.verdict != "failed" for other in found):
                flaky.append(case.name)
                cases.remove(case)
                cases += found
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for case in cases:
        counts[case.verdict] += 1
    for case in failed:
        print(f"{name}: FAILED {'once ' if case.name in flaky else ''}{case.name}\n{case.message}\n")
    print(f"{name}: slowest: {slowest(build / 'ctest.xml')}")
    for case in flaky:
        print(f"flaky: {case}")
    print(f"{name}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")


if __name__ == "__main__":
    main()
