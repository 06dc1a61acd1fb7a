"""Recordings that are added to a data set as a system of their own, so that a model can be pretrained on them.

    <data>/<name>/data/{train,valid}/id-<index>.hdf5    the trajectories, as those that are simulated
    <data>/<name>/stats.yaml                            The Well's statistics
    <data>/<name>/recordings.json                       where they come from and how they were read

Only recordings have the last file. The folder appears under its name when it is whole.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rdjepa.checks import Count, Size, checked, of_class, usable_path
from rdjepa.data import manifest, readers, store, survey
from rdjepa.data.fields import measured
from rdjepa.data.manifest import RECORDINGS
from rdjepa.data.readers import Reading
from rdjepa.data.readers.registry import describe
from rdjepa.data.soundness import MIXED
from rdjepa.data.store import checksum
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.data.windows import PRETRAINING
from rdjepa.errors import ArgumentError, DataError, Note, OutputError, printable, warn
from rdjepa.io import sealed
from rdjepa.io.atomic import making
from rdjepa.progress import Progress
from rdjepa.systems import every_name
from rdjepa.version import __version__

VALIDATION = 10
FEW = 5  # trajectories for diagnostics; samples of fewer are alike, as those of a model that collapsed


@dataclass(frozen=True)
class Recordings:
    """Content of recordings.json.

    Attributes:
        source: where they come from.
        reading: what was said of the source; its stride is that which was taken.
        grid: points per side that they were brought to; None where they have their own.
        validation: of every so many the first is for diagnostics.
        software: that read them.
    """

    source: tuple[str, ...]
    reading: dict[str, Any]
    grid: int | None
    validation: int
    software: dict[str, str]


@dataclass(frozen=True)
class Added:
    """What `add_recordings` added: numbers of trajectories, and the stride at which their frames were taken."""

    pool: int
    validation: int
    stride: int


def add_recordings(
    source: Any,
    name: str,
    out: str | Path,
    *,
    grid: int | None = None,
    stride: int | str = 1,
    reading: Reading | None = None,
    validation: int = VALIDATION,
    progress: Progress | None = None,
) -> Added:
    """Add recordings to a data set as a system of their own, which `rdjepa.pretrain` takes by its name.

    Trajectories are read one at a time, so memory holds one. They may be of several equations: fields are standardized
    with the statistics of all of them, as those of a simulated system, whose coefficients differ too. What is there
    already is kept; other recordings are another system.

    Args:
        source: what `adapt` takes: files, folders, arrays or a list of these, at least two trajectories.
        name: of the system: letters, digits, - and _, of no system that the package knows.
        out: dataset directory; whatever it has stays.
        grid: bring the fields to this many points per side, of cells that then count as square; as they are when None,
            and then square. Pretraining averages over blocks of points where a preset has fewer.
        stride: take every so many frames; "auto" takes as many as `inspect` suggests, or as leave a window.
        reading: what the source does not say itself.
        validation: of every so many trajectories the first is for diagnostics, and no model is trained on it.
        progress: called after every trajectory with the number done, their total and the key.

    Raises:
        ArgumentError: a name that is taken or no plain name, or an argument of another type.
        DataError: the source is unknown or damaged, fewer than two trajectories, two that are the same, one that is
            shorter than a window of pretraining (12 frames) or not square, or a directory of something else.
        OutputError: other recordings of that name are there, or the directory cannot be written.
    """
    out = usable_path(out, "out")
    base = out / _free(name)
    grid, validation = checked(grid, Size | None, "grid"), checked(validation, Count, "validation")
    reading = of_class(reading, Reading | None, "reading") or Reading()
    if validation < 2:
        raise ArgumentError("expected a validation of at least 2, got 1, which leaves none to train on; raise it")
    if base.exists() and not (base / RECORDINGS).is_file():
        raise OutputError(f"expected no folder {base}, got one; choose another name, or move the folder away")
    manifest.require_own(out)
    places = [printable(describe(each)) for each in (source if isinstance(source, list | tuple) else [source])]
    total = sum(recording.count for recording in readers.recordings(source, reading))
    if total < 2:
        raise DataError(
            f"expected at least two trajectories, one of them for diagnostics, got {total} in {', '.join(places)}; "
            "give more, or cut a long one in two"
        )
    reading = survey.at_stride(source, reading, stride, PRETRAINING.length)
    told = Recordings(
        tuple(places), asdict(replace(reading, stride=reading.step)), grid, validation, {"rdjepa": __version__}
    )
    counts = {"pool": 0, "validation": 0}

    def keyed() -> Iterator[Trajectory]:
        for number, trajectory in enumerate(_fit(readers.trajectories(source, PRETRAINING.length, grid, reading))):
            split = "pool" if number % validation else "validation"
            key = Key(name, split, index=counts[split])
            counts[split] += 1
            if grid:
                trajectory = replace(trajectory, spacing=(1.0, 1.0))  # no pretraining goes by the shape of cells
            yield replace(trajectory, key=key, attempt=0, rejected=(), kind="", nearest=None, software={})
            if progress:
                progress(number + 1, total, str(key))

    if base.exists():
        _require_same(base, told, keyed())
    else:
        with making(base) as folder:
            sealed.write(folder / RECORDINGS, asdict(told))
            for trajectory in keyed():
                store.write(folder.parent, trajectory)
            store.write_stats(folder)
    manifest.write(out)
    if counts["validation"] < FEW:
        warn(
            f"{counts['validation']} of {total} trajectories are few for diagnostics: samples that are alike look like "
            "those of a model that collapsed; a smaller --validation (validation=) keeps more",
            Note,
        )
    return Added(counts["pool"], counts["validation"], reading.step)


def _fit(trajectories: Iterable[Trajectory]) -> Iterator[Trajectory]:
    """Yield the trajectories that a model can be pretrained on.

    Raises:
        DataError: one is not square, repeats another, or has another number of measured components than the first.
    """
    seen: set[str] = set()
    components = None
    for number, trajectory in enumerate(trajectories, 1):
        _, height, width, _ = trajectory.fields.shape
        if height != width:
            raise DataError(f"expected square fields to pretrain on, got {height} x {width}; crop them to squares")
        seen.add(checksum(trajectory.fields))
        if len(seen) < number:  # what is trained on says nothing in the diagnostics
            raise DataError(
                f"expected trajectories that differ, got one, number {number}, that repeats another; give each once"
            )
        components = components or measured(trajectory.fields)
        if measured(trajectory.fields) != components:
            raise DataError(MIXED)
        yield trajectory


def _require_same(base: Path, told: Recordings, trajectories: Iterable[Trajectory]) -> None:
    """Refuse recordings of a name whose folder has others, so that a command may be given again.

    Raises:
        OutputError: it has others, or they were read otherwise.
    """
    there = sealed.read(base / RECORDINGS, Recordings, f"move {base} away, and add the recordings again")
    reading = there.reading | {"stride": there.reading["stride"] or 1}  # of those who asked for none, once
    alike = replace(there, source=told.source, software=told.software, reading=reading)
    same = sealed.plain(asdict(alike)) == sealed.plain(asdict(told))
    stored = {key: store.get_record(base.parent, key).checksum for key in store.keys(base.parent, base.name)}
    if not same or stored != {each.key: checksum(each.fields) for each in trajectories}:
        raise OutputError(f"expected no other recordings in {base}, got some; choose another name, or move them away")


def recorded(data: Path | str) -> tuple[str, ...]:
    """Return the names of the systems in a data set whose trajectories were added and not simulated."""
    return tuple(sorted(path.parent.name for path in Path(data).glob(f"*/{RECORDINGS}")))


def _free(name: str) -> str:
    """Return a name that recordings may have.

    Raises:
        ArgumentError: it is taken, or no plain name.
    """
    of_class(name, str, "name")
    if not store.SYSTEM_NAME.fullmatch(name):
        raise ArgumentError(
            f"expected letters, digits, - and _, the first a letter or digit, for a name, got {name!r}; choose another"
        )
    if name in every_name():
        raise ArgumentError(f"expected a name of its own, got {name!r}, which is taken; choose another")
    return name
