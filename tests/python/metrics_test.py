#!/usr/bin/env python3
"""Metrics in Prometheus' text format, read with prometheus_client's parser.

The C++ test MetricsTest writes a snapshot in which number i has the value i, in the order counters,
gauges (negative), errors, histograms; the metrics in the text have the same order.
"""
import math
import os
import pathlib
import subprocess
import tempfile

from prometheus_client.parser import text_string_to_metric_families

LABEL = '/a "b"\\c\nd'


def written():
    tests = pathlib.Path(os.environ["RHIZOME_BUILD"]) / "bin" / "rhizome_storage_quick_tests"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "metrics.txt"
        subprocess.run([tests, "--gtest_filter=MetricsTest.TextHasHelpTypeAndEveryNumber"], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "RHIZOME_METRICS_TEXT": str(path)})
        return path.read_text()


def check_histogram(family, numbers):
    buckets = [s for s in family.samples if s.name.endswith("_bucket")]
    bounds = [float(s.labels["le"]) for s in buckets]
    assert bounds == sorted(bounds) and math.isinf(bounds[-1]) and len(set(bounds)) == len(bounds)
    assert all(math.isclose(b, 256e-9 * 2**i) for i, b in enumerate(bounds[:-1])), bounds
    total = 0
    for sample in buckets:
        total += next(numbers)
        assert sample.value == total, sample
    values = {s.name.removeprefix(family.name): s.value for s in family.samples}
    assert math.isclose(values["_sum"], next(numbers) * 1500e-9), values
    assert values["_count"] == total


def main():
    text = written()
    families = list(text_string_to_metric_families(text))
    for family in families:
        assert family.name.startswith("rhizome_") and family.documentation.endswith("."), family
        assert family.samples, family
        for sample in family.samples:
            assert sample.labels["store"] == LABEL, sample
    assert len({f.name for f in families}) == len(families)
    kinds = [f.type for f in families]
    assert set(kinds) == {"counter", "gauge", "histogram"}, set(kinds)

    numbers = iter(range(1, 10_000))
    errors = next(f for f in families if f.name == "rhizome_errors")
    plain = [f for f in families if f.type == "counter" and f is not errors]
    assert len(plain) >= 20
    for family in plain:
        assert family.samples[0].name == family.name + "_total"
        assert [s.value for s in family.samples] == [next(numbers)], family
    for family in (f for f in families if f.type == "gauge"):
        assert [s.value for s in family.samples] == [-next(numbers)], family
    next(numbers)  # of the code "ok", which is no error
    codes = [s.labels["code"] for s in errors.samples]
    assert "ok" not in codes and {"corruption", "busy", "out_of_space", "interrupted"} <= set(codes), codes
    for sample in errors.samples:
        assert sample.value == next(numbers), sample
    histograms = [f for f in families if f.type == "histogram"]
    assert len(histograms) >= 4
    for family in histograms:
        check_histogram(family, numbers)
    # Every line of the text is one that the parser took.
    samples = sum(len(f.samples) for f in families)
    assert samples == sum(not line.startswith("#") for line in text.splitlines())


main()
