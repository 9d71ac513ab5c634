#!/usr/bin/env python3
"""Seeds one mistake at a time into models, training and metrics; the tests that serve as oracles
must detect each.

usage: mutants.py [TEXT]     only mistakes whose name contains TEXT

RHIZOME_BUILD names a build of the preset `mutants` (default: build/mutants), in which the
environment variable RHIZOME_MUTANT activates a mistake (storage/base/mutant.h). Each oracle must
pass without a mistake, and fail with it. A switch without a row in MUTANTS, and a row without a
switch, are failures, too.
"""
import os
import pathlib
import re
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RHIZOME_BUILD", SOURCE / "build" / "mutants"))
FILES = ["storage/remote/*", "index/sample/*", "cache/*/*", "gnn/*/*"]
PYG = "models_ci_test.py"  # every kind of network against PyTorch Geometric
MINUTES = 10
HANG_MINUTES = 2  # of a mistake after which a test does not end


def gtest(layer, filter):
    return f"rhizome_{layer}_quick_tests", f"--gtest_filter={filter}"


CONV = gtest("models", "*ConvTest*")
ATTENTION = gtest("models", "AttentionTest.*")
HGT = gtest("models", "HgtTest.*")
NETWORK = gtest("models", "*NetworkTest*")
LOSS = gtest("gnn", "TaskLossTest.*")
SCHEDULE = gtest("gnn", "ScheduleTest.*")
METRICS = gtest("cache", "TaskMetricsTest.*")
FULL = gtest("full", "*FullGraph*")
RESUMED = "rhizome_full_ci_tests", "--gtest_filter=*FullGraphResumeTest*"
GATHERS = gtest("cache", "GatherKernelsTest.*")
PLAN = gtest("spill", "FullGraphPlanTest.*:SpillPolicyTest.*")
TENSORS = gtest("spill", "TensorPlanTest.*")
LINKS = gtest("links", "RankLinksTest.*:DecoderTest.*")
SAMPLING = gtest("cache", "NeighborSamplingTest.*")
LINK_FEED = gtest("links_cache", "LinkFeedTest.*")

MUTANTS = {
    # Layers
    "residuals are left out": (PYG,),
    "residuals are added before the activation": (PYG,),
    "feed-forward has one layer": (PYG,),
    "jump takes the least": (PYG,),
    "batch norm uses the batch at inference": NETWORK,
    "rows are divided by the sum of their numbers": (PYG,),
    "gcn leaves the vertex out": CONV,
    "heads are added up": (PYG,),
    "commnet adds up": CONV,
    "gradients pass edges of weight 1": CONV,
    "gradients pass what was dropped": gtest("models", "ActivationTest.*"),
    # Links
    "ranks forget the validation set": LINKS,
    "equal scores rank first": LINKS,
    "the true score is rounded": LINKS,
    "sources have the relation of destinations": LINKS,
    "TransE takes L1 for L2": LINKS,
    "negatives are not filtered by the validation set": gtest("links", "NegativeFilterTest.*"),
    "the reverse of a left-out edge is kept": LINK_FEED,
    "degrees count the edges of pairs": LINK_FEED,
    "negatives have the type of the first end": LINK_FEED,
    # Relations
    "a group's mean divides by the target's edges": gtest("models", "*RelationalTest*"),
    "relations are of the other side": gtest("models", "RelationalShapeTest.*"),
    # Attention
    "the maximum never rises": ATTENTION,
    "denominators are not rescaled": ATTENTION,
    "edges are dropped together": ATTENTION,
    "heads are divided by the first head's sum": ATTENTION,
    "gradients forget that weights add up to 1": ATTENTION,
    "hgt has a softmax for each group": HGT,
    "hgt weighs groups without maxima": HGT,
    "hgt has one gate": HGT,
    # Windows of layerwise inference
    "a window forgets those before": NETWORK,
    "sums are divided in every window": NETWORK,
    # Training on the full graph
    "gradients go along the lists of layers": FULL,
    "dropout is drawn again by rows of the tile": FULL,
    "gradients are grouped by chunks": FULL,
    "a maximum's gradient follows every parallel edge": GATHERS,
    "sums below zero are not rescaled": GATHERS,
    "parallel edges are dropped together": GATHERS,
    "sums of whole scores are not rescaled": GATHERS,
    "gathered gradients forget that weights add up to 1": FULL,
    "sums are gathered again of the layer before": FULL,
    "sums are read from the beginning of their block": FULL,
    "a resumed pass repeats a chunk": RESUMED,
    # The plan of what stays in memory
    "what is written back is not counted": PLAN,
    "chunks leave memory unwritten": PLAN,
    "memory holds one more chunk": PLAN,
    "what is needed next leaves first": PLAN,
    "the bound assumes memory for one chunk less": PLAN,
    "the last use of a tensor is charged": TENSORS,
    "tensors leave memory unwritten": TENSORS,
    # Learning
    "biases decay": gtest("gnn", "OptimizerTest.*"),
    "every layer decays": gtest("gnn", "OptimizerTest.*"),
    "patience is one epoch short": SCHEDULE,
    "there is no warm-up": SCHEDULE,
    "missing labels are learnt": LOSS,
    "weighted losses are divided by vertices": LOSS,
    "smoothing makes labels smaller": LOSS,
    "no class is balanced": gtest("gnn", "ClassWeightsTest.*"),
    "the last weights are kept": gtest("gnn", "TasksTest.*"),
    # Ranks
    "rows of other ranks are not checked": gtest("ranks", "RemoteRowsTest.*"),
    "orders depend on the rank": gtest("ranks", "HomeSeedsTest.*"),
    "rows that the cache holds are fetched again": gtest("ranks", "RankFeedTest.*"),
    "rows that enter are not counted": gtest("ranks", "ScoredBufferTest.*"),
    "a rank adds its homes from the left": gtest("rank_training", "HomeTreeTest.*"),
    "silent ranks are waited for": gtest("transport", "TransportFailureTest.*"),
    # Metrics and samples
    "ties are in order": METRICS,
    "missing labels are ranked": METRICS,
    "passes walk every type": SAMPLING,
    "degrees belong to other rows": SAMPLING,
}

HANGS = {"silent ranks are waited for"}


def run(oracle, mistake):
    """Returns whether the oracle passes, and what it said."""
    program = oracle[0]
    if program.endswith(".py"):
        command = [sys.executable, SOURCE / "tests" / "python" / program]
    else:
        command = [BUILD / "bin" / program, "--gtest_fail_fast", *oracle[1:]]
    environment = dict(os.environ, RHIZOME_MUTANT=mistake, RHIZOME=str(BUILD / "bin" / "rhizome"),
                       RHIZOME_SOURCE=str(SOURCE), RHIZOME_BUILD=str(BUILD))
    minutes = HANG_MINUTES if mistake in HANGS else MINUTES
    try:
        done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, errors="replace",
                              timeout=60 * minutes)
    except subprocess.TimeoutExpired:
        if mistake not in HANGS:
            raise
        return False, f"{program} has not ended after {minutes} minutes"
    said = done.stdout + done.stderr
    passed = done.returncode == 0
    if not program.endswith(".py") and not re.search(r"\[==========\] [1-9]\d* tests? from", said):
        sys.exit(f"{program} {oracle[1]} ran no test; name other tests in MUTANTS")
    if done.returncode == 77:
        sys.exit(f"{program} skips here, so that its mistakes cannot be shown: {said[-500:]}")
    return passed, said


def reason(said):
    """Returns the line that says best what was noticed."""
    for pattern in (r"^\[  FAILED  \] .*", r"^\w*(?:Error|Exception)\b.*"):
        found = re.findall(pattern, said, re.MULTILINE)
        if found:
            return found[0][:150]
    return said.strip().splitlines()[-1][:150] if said.strip() else "it said nothing"


def switches():
    names = set()
    for pattern in FILES:
        for path in sorted(SOURCE.glob(pattern)):
            if path.suffix in (".cc", ".h"):
                names |= set(re.findall(r'RHIZOME_MUTANT\(\s*"([^"]+)"\s*\)', path.read_text()))
    return names


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    failures = [f"{name!r} has a switch and no row here" for name in switches() - set(MUTANTS)]
    failures += [f"{name!r} has a row here and no switch" for name in set(MUTANTS) - switches()]
    chosen = {name: oracle for name, oracle in MUTANTS.items() if wanted in name}
    for oracle in dict.fromkeys(chosen.values()):
        passed, said = run(oracle, "")
        if not passed:
            failures.append(f"{' '.join(oracle)} fails without a mistake: {reason(said)}")
    for name, oracle in chosen.items():
        began = time.monotonic()
        passed, said = run(oracle, name)
        seconds = time.monotonic() - began
        print(f"MUTANT {name}: {'not noticed' if passed else reason(said)} ({seconds:.0f} s)", flush=True)
        if passed:
            failures.append(f"{name!r} passes {' '.join(oracle)}")
    print("\n".join(["", *failures, f"{len(chosen)} mistakes, {len(failures)} failures"]))
    return 1 if failures or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
