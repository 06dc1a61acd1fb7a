"""Load: a hundred thousand cells with empty work, and a data set of a million keys; seconds and memory.

The cells are made by the package's own runner, whose work is replaced by copies of one result. The files of the million
keys are made by the store, as many as are asked for; what takes long is measured on those and stated for a million.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest import mock

from campaign import sandbox, small
from campaign.answers import of_command
from campaign.resources import may_mount, mounted
from campaign.trial import SLOW, TRACEBACK, WELL, Trial

PART = "load"
CELLS, KEYS, FILES = 100_000, 1_000_000, 10_000
STUDY, SEEDS, BUDGETS = "load", tuple(range(1, 11)), tuple(range(1, 11))
FORECASTERS = ("persistence", "extrapolation")
LIMITS = {"status": 20, "listing": 20, "records": 20, "tables": 120, "export": 300}  # seconds that users wait
EACH = 0.02  # seconds of a file, a fifth of what the simulation of a trajectory takes at least


def trials(work: Path, cells: int = CELLS, keys: int = KEYS, files: int = FILES) -> Iterator[Trial]:
    """Measure everything once."""
    folder = work / "load"
    folder.mkdir(exist_ok=True)
    baseline = sandbox.forked(lambda: None, work / "said", memory=None).megabytes

    def measure(target: str, what: str, job: Callable[[], Any], limit: float, many: float = 1, **figures: Any) -> Trial:
        """Run a job in a fork; `many` times its seconds are said to be those of the full size."""
        ended = sandbox.forked(lambda: job() and None, work / "said", 1200, memory=16 * sandbox.GIB)
        figures |= {"megabytes": ended.megabytes - baseline}
        if many != 1:
            figures["seconds of all"] = round(ended.seconds * many, 1)
        outcome, said = of_command(ended, (0,))
        if ended.status:
            outcome = outcome if outcome != WELL else TRACEBACK
        elif ended.seconds > limit:
            outcome, said = SLOW, f"{ended.seconds:.0f} s, expected at most {limit:.0f}"
        return Trial(PART, target, what, outcome, said, round(ended.seconds, 2), figures)

    with study(folder / "study", cells) as (make, jobs):
        yield measure(f"{cells} cells", "made by the runner with empty work", make, 3600)
        for what, job in jobs.items():
            yield measure(f"{cells} cells", what, job, LIMITS[what])
    yield planned(work, keys)
    with listed(folder / "names", keys) as job:
        yield measure(f"{keys} keys", "names listed", job, 60)
    base = folder / "data"
    yield measure(f"{files} files", "written by the store", lambda: write(base, files), EACH * files + 1, keys / files)
    for what, job in dataset(base, files).items():
        yield measure(f"{files} files", what, job, EACH * files + 1, keys / files)


class study:  # noqa: N801 - used as a function
    """A study directory of many cells: a function that makes it, and the jobs to measure."""

    def __init__(self, root: Path, count: int) -> None:
        self.root, self.count = root, count

    def __enter__(self) -> tuple[Callable[[], Any], dict[str, Callable[[], Any]]]:
        from rdjepa import systems
        from rdjepa.study import attempts, collect, registry, runner
        from rdjepa.study.profiles import profile

        each = len(SEEDS) * len(BUDGETS) * len(FORECASTERS)
        own = systems.get(small.SYSTEM)
        names = [f"turning-{number}" for number in range(-(-self.count // each))]
        for name in names:
            systems.register(replace(own, name=name))
        registry.register(registry.Study(STUDY, "Load", tuple(names), FORECASTERS, budgets=BUDGETS, seeds=SEEDS))
        root, chosen = self.root, profile(small.PRESET)

        def plan() -> list:
            return runner.cells(STUDY)[: self.count]

        def make() -> None:
            from rdjepa.study.supply import Supply

            with contextlib.ExitStack() as stack:
                for where, name, value in (
                    (attempts, "compute", empty),
                    (Supply, "prepare", lambda *_, **__: None),
                    (Supply, "check", lambda *_: None),
                    (Supply, "normalizer", lambda *_: None),
                ):
                    stack.enter_context(mock.patch.object(where, name, value))
                ran = runner.run(root, plan(), chosen)
            assert len(ran.done) + ran.kept == self.count, ran

        def tables() -> None:
            from rdjepa.study.report import write

            rows = collect.collect(root, STUDY, small.PRESET)
            assert len(rows) == 5 * self.count, len(rows)
            write.write_tables(
                rows, collect.records(root), collect.spectra(root, STUDY, small.PRESET), root / "r", STUDY
            )

        return make, {
            "listing": lambda: runner.missing_cells(root, plan(), chosen),
            "status": lambda: runner.status(root, plan(), chosen),
            "records": lambda: collect.read_records(root),
            "tables": tables,
            "export": lambda: collect.export(root, root / "exported"),
        }

    def __exit__(self, *_: object) -> None:
        """Undo the registrations."""
        from rdjepa import systems
        from rdjepa.study import registry

        for name in [name for name in systems.names() if name.startswith("turning-")]:
            systems._REGISTERED.pop(name)
        registry._REGISTERED.entries.pop(STUDY)


def empty(cell: Any, profile: Any, *_: Any) -> dict[str, bytes]:
    """Return the files of a cell whose work was empty."""
    import io

    import pandas as pd

    from rdjepa.data.statistics import Normalizer
    from rdjepa.io import sealed
    from rdjepa.study.cell import identity
    from rdjepa.study.directory import RECORD
    from rdjepa.study.fingerprints import identifier
    from rdjepa.study.record import CURVE, ROWS, SPECTRA

    global _FILES
    if not _FILES:
        row = {"regime": "id", "trajectory": 0}
        rows = [row | {"metric": "relative_l2", "horizon": h, "value": 0.1 * h} for h in range(1, 6)]
        spectra = [{"regime": "id", "horizon": 5, "wavenumber": n, "error": 0.1, "reference": 1.0} for n in range(3)]
        for name, table in ((ROWS, rows), (SPECTRA, spectra), (CURVE, [])):
            stream = io.BytesIO()
            pd.DataFrame(table).to_parquet(stream, index=False)
            _FILES[name] = stream.getvalue()
    content = identity(cell, profile)
    record = {
        "id": identifier(content), "identity": content, **asdict(cell), "profile": profile.name, "updates": 0,
        "test": {"id": 1}, "support": [str(key) for key in cell.support()], "settings": content["settings"],
        "config": {}, "checkpoint": "", "data": content["data"], "trajectories": "",
        "normalizer": Normalizer((0.0, 0.0), (1.0, 1.0)).to_dict(), "parameters": 0, "trained": 0, "software": {},
        "threads": 1, "seconds": {"evaluate": 0.01}, "created": "2026-01-01T00:00:00+00:00",
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in _FILES.items()},
    }  # fmt: skip
    return _FILES | {RECORD: sealed.encode(record, indent=1).encode()}


_FILES: dict[str, bytes] = {}


def planned(work: Path, keys: int, limit: float = 60) -> Trial:
    """Start a simulation of many keys and stop it when its first trajectory is there."""
    out = work / "load" / "planned"
    command = sandbox.command(["simulate", small.SYSTEM, "--count", str(keys), "--out", str(out)])
    child = sandbox.Child(command, work / "said", memory=8 * sandbox.GIB)
    while (
        not child.over(0.05) and not next(out.rglob("*.hdf5"), None) and time.perf_counter() - child.began < 10 * limit
    ):
        pass
    seconds = time.perf_counter() - child.began
    child.send(9)
    megabytes = child.end(1200).megabytes
    outcome, said = (WELL, "") if seconds < limit else (SLOW, f"the first trajectory after {seconds:.0f} s")
    return Trial(PART, f"{keys} keys", "planned", outcome, said, round(seconds, 2), {"megabytes": megabytes})


class listed:  # noqa: N801
    """Many empty files with the names of trajectories, in memory where it may be mounted."""

    def __init__(self, folder: Path, keys: int) -> None:
        self.folder, self.keys = folder, keys

    def __enter__(self) -> Callable[[], Any]:
        from rdjepa.data import store

        self.folder.mkdir(exist_ok=True)
        self.mount = (
            mounted(self.folder, f"size=1g,nr_inodes={self.keys + 1000}") if may_mount(self.folder.parent) else None
        )
        if self.mount:
            self.mount.__enter__()
        there = self.folder / "turning" / "data" / "train"
        there.mkdir(parents=True, exist_ok=True)
        for number in range(self.keys):
            os.close(os.open(there / f"id-{number:05d}.hdf5", os.O_CREAT | os.O_WRONLY))
        return lambda: store.keys(self.folder)

    def __exit__(self, *_: object) -> None:
        """Remove them."""
        import shutil

        if self.mount:
            self.mount.__exit__(None, None, None)
        shutil.rmtree(self.folder, ignore_errors=True)


def write(base: Path, count: int) -> None:
    """Write small trajectories through the store, each under its own key."""
    import numpy as np

    from rdjepa import systems
    from rdjepa.data import manifest, store
    from rdjepa.data.trajectory import Key, Trajectory

    manifest.claim(base, [systems.get(small.SYSTEM)])
    fields = np.random.default_rng(0).standard_normal((12, 4, 4, 2)).astype(np.float32)
    for number in range(count):
        store.write(
            base, Trajectory(fields, np.arange(12.0), {"D": 0.01, "omega": 1.0}, Key(small.SOURCE, index=number))
        )


def dataset(base: Path, count: int) -> dict[str, Callable[[], Any]]:
    """Return the jobs on a data set."""
    from rdjepa.data import manifest, store
    from rdjepa.data.build import build

    def resumed() -> None:
        assert build(base, store.keys(base)).kept == count

    def verified() -> None:
        assert manifest.verify(base).good

    return {
        "resumed": resumed,
        "manifest written": lambda: manifest.write(base),
        "manifest read": lambda: manifest.read(base),
        "verified": verified,
    }
