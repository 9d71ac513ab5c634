#!/usr/bin/env python3
"""Counts the cases of a run of ctest, and shows those that failed.

usage: tools/report_tests.py BUILD_FOLDER NAME

Reads ctest's own report (BUILD_FOLDER/ctest.xml, of --output-junit) and, for binaries that ran many cases in one
process, GoogleTest's (BUILD_FOLDER/reports/TEST.xml): each of their cases counts, and a process that died counts as
one more that failed. Prints what failed, then a line `NAME: P passed, F failed, S skipped`.
"""

import pathlib
import sys
import xml.etree.ElementTree as xml

SHOWN_LINES = 80
SHOWN_COLUMNS = 500


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


def results(build):
    for test in xml.parse(build / "ctest.xml").getroot().iter("testcase"):
        name, status, output = test.get("name"), test.get("status"), test.findtext("system-out")
        report = build / "reports" / f"{name}.xml"
        if report.exists():
            cases = list(cases_of(report))
            for case, verdict, message in cases:
                yield case, verdict, shown(part_of(output, case) or message) if verdict == "failed" else message
            if status == "run" or any(verdict == "failed" for _, verdict, _ in cases):
                continue
            yield name, "failed", shown(output)
        elif status == "fail" and output and "[ RUN      ]" in output:
            yield f"{name}, which ended in {last_case(output)}", "failed", shown(output)
        else:
            verdict = {"run": "passed", "fail": "failed"}.get(status) or why_not_run(test)
            yield name, verdict, shown(output) if verdict == "failed" else ""


def main():
    build, name = pathlib.Path(sys.argv[1]), sys.argv[2]
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for case, verdict, message in results(build):
        counts[verdict] += 1
        if verdict == "failed":
            print(f"{name}: FAILED {case}\n{message}\n")
    print(f"{name}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")


if __name__ == "__main__":
    main()
