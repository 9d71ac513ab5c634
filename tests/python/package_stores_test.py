#!/usr/bin/env python3
"""Jobs of the package `rhizome` on whole stores: arrays and their versions, backups, repair, and the log."""
import logging
import os
import subprocess
import sys
import threading
import time

from package import FOLDER, PATIENCE, SEED, Example, folder, logged, np, raises, run, rz

RNG = np.random.default_rng(SEED)


def test_arrays_come_and_go():
    example = Example(RNG)
    emb = RNG.normal(size=(300, 4)).astype(np.float32)
    with folder() as path:
        store = path / "g.rz"
        example.ingest(store)
        reader = rz.open(store)
        report = rz.add_array(store, "emb", emb, new_version=True, live=True)
        assert (report.name, report.rows_given) == ("emb@1", 300)
        with raises(rz.NotFound):
            reader["emb"]
        reader.refresh()
        array = reader["emb"]
        assert np.array_equal(np.asarray(array), emb)
        assert rz.add_array(store, "emb", emb.astype(np.float64) + 1, new_version=True, layout="chunk").name == "emb@2"
        np.save(path / "three.npy", emb + 2)
        assert rz.add_array(store, "emb", path / "three.npy", new_version=True).name == "emb@3"
        reader.refresh()
        info = reader.arrays["emb"]
        assert (info.versions, info.aliases) == ((1, 2, 3), {"live": 1})
        for name, plus in (("emb", 0), ("emb@live", 0), ("emb@2", 1), ("emb@3", 2), ("emb@latest", 2)):
            assert np.allclose(np.asarray(reader[name]), emb + plus), name
        rz.set_alias(store, "emb", "live", 3)
        rz.drop_array(store, "emb@1")
        reader.refresh()
        assert np.allclose(array[[5]], emb[[5]] + 2)  # it follows its name
        assert reader.arrays["emb"].versions == (2, 3)
        with raises(rz.InvalidArgument):
            rz.drop_array(store, "emb@3")  # its alias
        rz.set_alias(store, "emb", "live", None)
        kept = rz.add_array(store, "emb", emb, new_version=True, keep=1)
        assert kept.dropped_versions == [2, 3]
        rz.drop_array(store, "emb", all_versions=True)
        reader.refresh()
        assert "emb" not in reader
        with raises(rz.NotFound, "emb"):
            array[[1]]
        for call, kind in ((lambda: rz.add_array(store, "feat", emb), rz.AlreadyExists),
                           (lambda: rz.add_array(store, "x", emb[:, :, None]), ValueError),
                           (lambda: rz.add_array(store, "x", np.zeros((301, 2))), rz.InvalidArgument),
                           (lambda: rz.add_array(store, "x@y", emb), rz.InvalidArgument),
                           (lambda: rz.add_array(store, "x", emb, layout="rows"), ValueError),
                           (lambda: rz.add_array(path / "none", "x", emb), rz.NotFound),
                           (lambda: rz.drop_array(store, "none"), rz.NotFound),
                           (lambda: rz.drop_array(path / "none", "x"), rz.NotFound),
                           (lambda: rz.set_alias(store, "none", "live", 1), rz.NotFound),
                           (lambda: rz.set_alias(store, "feat", "latest", 1), rz.Error)):
            with raises(kind):
                call()
        reader.close()
        rz.add_array(store, "short", emb[:100])
        for job, name in ((rz.add_array, "x"), (rz.append_rows, "short")):  # before anything is read
            with rz.open(store, mode="w"), raises(rz.Busy, "locked"):
                job(store, name, path / "no such file.npy")
        assert rz.verify(store).ok


def test_files_of_dropped_arrays_go_beside_a_reader_that_refreshes():
    with folder() as path:
        store = path / "g.rz"
        Example(RNG).ingest(store)
        with rz.open(store) as reader:
            before = np.asarray(reader["half"]).copy()
            snapshot = reader.snapshot()
            rz.drop_array(store, "half")
            reader.refresh()
            rz.open(store, mode="w").close()  # which removes what nobody reads
            assert list(store.glob("generations/*/arrays/half"))
            assert np.array_equal(np.asarray(snapshot["half"]), before)
            snapshot.close()
            rz.drop_array(store, "plain")
            assert not list(store.glob("generations/*/arrays/half"))
            assert list(store.glob("generations/*/arrays/plain")) and len(reader["plain"]) > 0
            reader.refresh()
            rz.drop_array(store, "small")
            assert not list(store.glob("generations/*/arrays/plain"))
        assert rz.verify(store).ok


def test_rows_of_some_vertices():
    """Rows without ids that are those of the first vertices only are noted, with what the others have."""
    with folder() as path:
        store = path / "g.rz"
        rz.ingest(store, ([0, 1, 2], [1, 2, 3]))
        for name, rows, others in (("x", np.ones((2, 3)), "zeros"), ("whole", np.ones(3, np.int64), "-1"), ("label", [1, 1], "-1"),
                                   ("split", np.zeros(3, np.uint8), "255")):
            with logged() as said:
                report = rz.add_array(store, name, rows)
            assert report.notes == said == [f"{name!r} has rows for {len(rows)} of 4 vertices: the others have {others}"], said
            with rz.open(store) as graph:
                last = graph[name][[3]]
                assert np.asarray(last).ravel().tolist() == [0 if others == "zeros" else int(others)] * last.size
        with logged() as said:
            assert rz.add_array(store, "all", np.ones(4)).notes == []
            assert rz.add_array(store, "none", np.ones((0, 4))).notes == []
            assert rz.add_array(store, "few", np.ones(2), ids=[3, 1]).notes == []
        assert said == []


def test_what_was_not_found():
    """A store or a file is StoreNotFound, a FileNotFoundError; what a store contains is NotFound alone."""
    with folder() as path:
        store = path / "g.rz"
        rz.ingest(store, ([0, 1], [1, 0]))
        with rz.open(store) as graph:
            gone = graph.point._replace(sequence=99)
        for call in (lambda: rz.add_array(path / "no.rz", "x", [1]), lambda: rz.append_rows(path / "no.rz", "x", [1]),
                     lambda: rz.drop_array(path / "no.rz", "x"), lambda: rz.add_array(store, "x", path / "no.npy"),
                     lambda: rz.add_array(store, "x", [1], ids=path / "no.txt"), lambda: rz.open(path / "no.rz")):
            with raises(rz.StoreNotFound, "no."):
                call()
        for call in (lambda: rz.drop_array(store, "x"), lambda: rz.set_alias(store, "x", "live", 1),
                     lambda: rz.append_rows(store, "x", [1]), lambda: rz.open(store, at=gone),
                     lambda: rz.add_array(store, "x", [1], ids=[7])):
            try:
                call()
                raise AssertionError("found")
            except rz.NotFound as error:
                assert type(error) is rz.NotFound, repr(error)


def test_rows_by_id_and_appended():
    names = [f"v{i}" for i in range(20)]
    with folder() as path:
        store = path / "g.rz"
        rz.ingest(store, (names[:-1], names[1:]), ids=names)
        order = RNG.permutation(20)
        rows = RNG.normal(size=(20, 3)).astype(np.float32)
        rz.add_array(store, "x", rows[order], ids=[names[i] for i in order])
        (path / "ids.tsv").write_text("v3\nv1\n")
        assert rz.add_array(store, "few", rows[:2], ids=path / "ids.tsv").rows_given == 2
        rz.add_array(store, "half", rows[:12])
        report = rz.append_rows(store, "half", rows[12:])
        assert report.rows_read == 8
        with rz.open(store) as graph:
            assert np.array_equal(graph["x"][graph.find(names)], rows)
            assert np.array_equal(graph["few"][graph.find(["v3", "v1"])], rows[:2]) and not graph["few"]["v2"].any()
            assert np.array_equal(graph["half"][graph.find(names)], rows)
        with raises(rz.InvalidArgument):
            rz.append_rows(store, "half", rows[:1])
        for wrong, kind in ((["nobody"], rz.NotFound), ([1.5], TypeError), (["v1", "v1"], rz.InvalidArgument),
                            (["a\tb"], ValueError), (["v1", 2], TypeError)):
            with raises(kind):
                rz.add_array(store, "y", rows[:len(wrong)], ids=wrong)


def test_backups():
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        assert rz.backup(path / "g.rz", path / "copies").number == 1
        with rz.open(path / "g.rz", mode="w") as graph:
            with graph.batch() as batch:
                batch.put_row("feat", 5, np.ones(12))
            assert graph.backup(path / "copies").number == 2
        found = rz.backups(path / "copies")
        assert [one.number for one in found] == [1, 2] and found[1].bytes > found[0].bytes > 0
        assert rz.restore(path / "copies", path / "newest.rz") == 2
        assert rz.restore(path / "copies", path / "first.rz", number=1) == 1
        for name, row in (("newest.rz", np.ones(12)), ("first.rz", example.arrays["feat"][5])):
            with rz.open(path / name) as graph:
                assert np.array_equal(graph["feat"][5], row)
        for call, kind in ((lambda: rz.restore(path / "copies", path / "first.rz"), FileExistsError),
                           (lambda: rz.restore(path / "copies", path / "x.rz", number=9), FileNotFoundError),
                           (lambda: rz.restore(path / "none", path / "x.rz"), FileNotFoundError),
                           (lambda: rz.backup(path / "none", path / "copies"), FileNotFoundError),
                           (lambda: rz.backups(path / "g.rz"), rz.Error)):
            with raises(kind):
                call()
        assert not (path / "x.rz").exists()


def test_repair():
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        assert rz.repair(path / "g.rz").ok
        victim = max((path / "g.rz").glob("generations/*/arrays/feat/**/*"), key=lambda file: file.stat().st_size)
        data = bytearray(victim.read_bytes())
        data[100] ^= 1
        victim.write_bytes(data)
        would = rz.repair(path / "g.rz", dry_run=True)
        assert would.damaged and victim.read_bytes() == data and not rz.verify(path / "g.rz").ok
        done = rz.repair(path / "g.rz")  # a byte is wrong: its checksum tells which
        assert done.ok and len(done.rebuilt) == 1 and not done.lost and os.path.isdir(done.quarantine), done
        with rz.open(path / "g.rz") as graph:
            assert np.array_equal(np.asarray(graph["feat"]), example.arrays["feat"])
        with raises(FileNotFoundError):
            rz.repair(path / "none.rz")


def test_another_working_directory():
    """Hydra, trial folders and notebooks change the working directory below open graphs."""
    home = os.getcwd()
    with folder() as path:
        graphs = {}
        for name, seed in (("a", 1), ("b", 2)):
            (path / name).mkdir()
            graphs[name] = Example(np.random.default_rng(seed))
            graphs[name].ingest(path / name / "g.rz")
        feat = graphs["a"].arrays["feat"]
        try:
            os.chdir(path / "a")
            reader, writer = rz.open("g.rz"), rz.open("g.rz", mode="w")
            assert reader.path == str(path.resolve() / "a/g.rz")
            os.chdir(path / "b")
            for step in ("put", "compact", "put again"):
                assert np.array_equal(reader["feat"][np.arange(300)], feat), step
                if step == "compact":
                    assert writer.compact().compacted
                else:
                    with writer.batch() as batch:
                        batch.put_edge(1, 2)
                reader.refresh()
            assert reader.num_edges == 2002
            writer.close()
            rz.add_array(reader.path, "emb", feat)
            assert reader.verify().ok
            reader.close()
        finally:
            os.chdir(home)
        for name, edges, emb in (("a", 2002, True), ("b", 2000, False)):
            assert rz.verify(path / name / "g.rz").ok, name
            with rz.open(path / name / "g.rz") as graph:
                assert (graph.num_edges, "emb" in graph.arrays) == (edges, emb), name
                assert np.array_equal(graph["feat"][np.arange(300)], graphs[name].arrays["feat"]), name


def test_a_store_that_was_replaced():
    with folder() as path:
        Example(RNG).ingest(path / "g.rz")
        Example(RNG).ingest(path / "other.rz")
        writer = rz.open(path / "g.rz", mode="w")
        os.rename(path / "g.rz", path / "moved.rz")
        os.rename(path / "other.rz", path / "g.rz")
        with raises(rz.Error, "moved, removed or replaced"):
            with writer.batch() as batch:
                batch.put_edge(1, 2)
        with raises(rz.Error, "moved, removed or replaced"):
            writer.compact()
        writer.close()
        for name in ("g.rz", "moved.rz"):
            assert rz.verify(path / name).ok, name
            assert rz.open(path / name).num_edges == 2000, name


def write_and_compact(store, **options):
    graph = rz.open(store, mode="w", **options)
    with graph.batch() as batch:
        batch.put_edge(1, 2)
    graph.compact()
    return graph


def test_log():
    """Lines reach a function, or the module logging, at the wanted level; none waits for a slow receiver."""
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        lines = []
        write_and_compact(path / "g.rz", log=lines.append, log_level="info").close()
        assert any(line.message == "compacted" and line.component == "graph" for line in lines), lines
        line = lines[0]
        assert isinstance(line, rz.LogLine) and abs(line.time - time.time()) < 600 and line.level == "info"
        assert any("generation" in line.fields for line in lines)
        quiet = []
        write_and_compact(path / "g.rz", log=quiet.append).close()
        write_and_compact(path / "g.rz", log=quiet.append, log_level="off").close()
        assert not quiet

        class Slow(logging.Handler):
            def emit(self, record):
                time.sleep(0.05)
                records.append((threading.current_thread(), record.getMessage(), record.rhizome))

        records, handler, logger = [], Slow(), logging.getLogger("rhizome")
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        try:
            write_and_compact(path / "g.rz", log_level="info").close()
        finally:
            logger.removeHandler(handler)
        assert any("graph: compacted generation=" in text for _, text, _ in records), records
        assert all(thread is threading.main_thread() and isinstance(line, rz.LogLine) for thread, _, line in records)
        with raises(TypeError, "log"):
            rz.open(path / "g.rz", log="loud")
        with raises(ValueError, "log_level"):
            rz.open(path / "g.rz", log_level="loud")


def test_log_of_a_receiver_that_closes():
    """A receiver may close its own graph; what it raises is reported, and harms nobody."""
    example = Example(RNG)
    with folder() as path:
        example.ingest(path / "g.rz")
        graphs, seen = [], []

        def receive(line):
            seen.append(line)
            graphs[0].close()
            raise RuntimeError("of the receiver")

        hook, sys.unraisablehook = sys.unraisablehook, lambda report: seen.append(report.exc_value)
        try:
            graphs.append(write_and_compact(path / "g.rz", log=lambda line: receive(line) if graphs else None,
                                            log_level="debug"))
            with raises(ValueError, "closed"):
                for _ in range(1000):
                    graphs[0].compact()
                    time.sleep(0.001)
                graphs[0].close()
                assert graphs[0].find(1)
        finally:
            sys.unraisablehook = hook
        assert all(isinstance(one, (rz.LogLine, RuntimeError)) for one in seen)


def test_interpreter_ends_with_open_graphs():
    example = Example(RNG)
    code = ("import logging, sys; sys.path.insert(0, sys.argv[2]); import rhizome as rz\n"
            "logging.basicConfig(level=10)\n"
            "g = rz.open(sys.argv[1], mode=sys.argv[3], log_level='debug'); s = g.sampler([2]); f = g['feat']; f[[1]]\n"
            "kept = [g, s, f, f.batches(), g.scan_edges(), g.snapshot()]; kept.append(kept)")
    with folder() as path:
        example.ingest(path / "g.rz")
        for mode in "rw":
            done = subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-c", code, path / "g.rz", FOLDER, mode],
                                  capture_output=True, text=True, timeout=60 * PATIENCE)
            assert done.returncode == 0 and "leak" not in done.stderr and "Error" not in done.stderr, done.stderr


if __name__ == "__main__":
    run(sys.modules[__name__])
