"""Recipe and manifest of a data set: what it is simulated from, and a checksum of every trajectory.

    <base>/recipe.json      identity of every system (data/identity.py), written before the first trajectory
    <base>/manifest.json    checksum and rejected draws of every trajectory, written when a build ends; where every draw
                            is an equation of its own, its kind and its distance to the nearest held-out equation
    <base>/<name>/recordings.json   only of recordings (data/recorded.py), which have no recipe: where they come from
    <base>/.recipe.json.lock        held by the process that writes the recipe, and so the manifest's

The two describe the data completely: the same keys give the same arrays on the same platform.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from rdjepa.data import store
from rdjepa.data.identity import confirm, identity
from rdjepa.data.simulate import simulate
from rdjepa.data.trajectory import Key
from rdjepa.errors import DataError, OutputError, warn
from rdjepa.io import sealed
from rdjepa.io.atomic import writing
from rdjepa.pde.distance import Nearest
from rdjepa.pde.screening import tally
from rdjepa.pde.system import System
from rdjepa.progress import Progress

FORMAT = 1
RECIPE, MANIFEST, RECORDINGS = "recipe.json", "manifest.json", "recordings.json"
Recipes = dict[str, dict[str, Any]]  # system -> identity
T = TypeVar("T")


def claim(base: Path | str, systems: Iterable[System]) -> None:
    """Enter the systems that are about to be simulated into the recipe of `base`.

    Raises:
        DataError: the directory belongs to another configuration, whose differing keys are named, or has a manifest of
            something else, or recordings of the name of a system; or the code of a system of the package no longer
            computes the numbers of its revision.
        OutputError: the directory cannot be written.
    """
    path, systems = Path(base) / RECIPE, list(systems)
    require_own(base)
    _require_simulated(base, systems)
    stored = _read_recipes(path) if path.exists() else {}
    new = not _agreed(base, stored, systems).items() <= stored.items()
    if new:
        with writing(base):  # which is known before anything is simulated
            Path(base).mkdir(parents=True, exist_ok=True)
    for system in systems:
        confirm(system)
    if new:
        _enter(base, systems)


def require_own(base: Path | str) -> None:
    """Refuse a directory whose manifest is of something else: any project may have a file of this name.

    Raises:
        DataError: it is.
    """
    there = Path(base) / MANIFEST
    if not (Path(base) / RECIPE).exists() and there.exists():
        sealed.read(there, _Manifest, "choose another directory")


def _require_simulated(base: Path | str, systems: Iterable[System]) -> None:
    """Refuse systems whose name recordings have, which would be taken for simulations.

    Raises:
        DataError: there are some.
    """
    for system in systems:
        if (Path(base) / system.name / RECORDINGS).exists():
            raise DataError(
                f"expected no recordings called {system.name} in {base}, got some; choose another directory"
            )


def check(base: Path | str, systems: Iterable[System]) -> None:
    """Check that the data in `base` agree with those of these systems that it holds; none is added.

    Raises:
        DataError: there are no recipes, the directory belongs to another configuration, or has recordings of the name
            of a system.
    """
    systems = list(systems)
    _require_simulated(base, systems)
    stored = _read_recipes(Path(base) / RECIPE)
    held = [system for system in systems if system.name in stored or store.keys(base, system.name)]
    if not _agreed(base, stored, held).items() <= stored.items():
        with suppress(OutputError):  # a data set may be read-only; then it is compared again next time
            _enter(base, held)


def _agreed(base: Path | str, stored: Mapping[str, Any], systems: Iterable[System]) -> dict[str, Any]:
    """Return the recipes of some systems, which must agree with the stored ones.

    Recipes of early versions hold descriptions and no fingerprint. For these the family, the numerics and the
    trajectories themselves must agree, and the recipe returned replaces the stored one. So must trajectories without
    a recipe.
    """
    current, old, different = {}, [], []
    for system in systems:
        name = system.name
        mine = current[name] = identity(system)
        theirs = stored.get(name, mine)
        unmeasured = "fingerprint" not in theirs
        keys = ("family", "numerics") if unmeasured else sorted(mine.keys() | theirs.keys())
        different += [f"{name}.{key}" for key in keys if mine.get(key) != theirs.get(key)]
        old += [system] * (unmeasured or name not in stored)
    if different:
        raise DataError(
            f"expected data of the same configuration in {base}, got another for {', '.join(different)}; "
            "choose another directory"
        )
    check_trajectories(base, old)
    return current


def check_trajectories(base: Path | str, systems: Iterable[System]) -> None:
    """Simulate the first stored trajectory of each regime of some systems again; it must have the stored checksum.

    Raises:
        DataError: it has another.
    """
    for system, regime in ((each, regime) for each in systems for regime in each.regimes):
        stored = store.keys(base, system.name, regime=regime)
        key = next((key for key in stored if store.has(base, key)), None)
        if key is None:
            continue
        made = store.checksum(simulate(system, key.index, regime, key.split).fields)
        if made != store.get_record(base, key).checksum:
            raise DataError(
                f"expected data in {base} that this version of {system.name} makes, got another trajectory {key}; "
                "choose another directory"
            )


def _read_recipes(path: Path) -> Recipes:
    """Read the recipes of a directory.

    Raises:
        DataError: there are none, or an entry is no recipe of a system.
    """
    stored = _read(path, Recipes)
    wrong = [name for name, recipe in stored.items() if not {"family", "numerics"} <= recipe.keys()]
    if wrong or not stored:
        raise DataError(
            f"expected the recipes of systems in {path}, got {f'an entry {wrong[0]!r}' if wrong else 'none'}; "
            "move it away, and build the data again"
        )
    return stored


def _enter(base: Path | str, systems: Sequence[System]) -> None:
    """Write the recipes of some systems beside those that are there by now, which another process may have written."""
    with _locked(base, RECIPE):
        path = Path(base) / RECIPE
        stored = _read_recipes(path) if path.exists() else {}
        sealed.write(path, stored | _agreed(base, stored, systems))


@contextmanager
def _locked(base: Path | str, name: str) -> Iterator[None]:
    """Let no other process write a file of a data set meanwhile."""
    lock = FileLock(Path(base) / f".{name}.lock", mode=0o666)
    with suppress(OSError, NotImplementedError):  # a file system without locks, or a file of another user
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True)
class Entry:
    """One trajectory in the manifest.

    Attributes:
        checksum: SHA-256 of the fields.
        initial_condition: family of the initial state.
        rejected: why each draw before this one was rejected.
        kind: kind of equation; "" for systems without kinds.
        nearest: the nearest held-out equation and the distance to it; None for systems that keep none.
    """

    checksum: str
    initial_condition: str
    rejected: tuple[str, ...]
    kind: str = ""
    nearest: Nearest | None = None


@dataclass(frozen=True)
class _Manifest:
    """Content of the file: `trajectories` by the text of their keys, the versions that made them, and the nearest.

    `nearest` is what `nearest_of_all` returned, where a system keeps its distance.
    """

    format: int
    software: tuple[dict[str, str], ...]
    trajectories: dict[str, Entry]
    nearest: dict[str, dict[str, Any]] = field(default_factory=dict)


def write(base: Path | str) -> Path:
    """Write the manifest of all trajectories stored in `base`, from the records in their files; return its path.

    Of several processes the last one lists what all of them stored, where the file system has locks.

    Trajectories that different versions of the software made are kept, with a warning that names the versions: their
    fingerprints agree, or `claim` had refused them, but roundings may differ.
    """
    with _locked(base, MANIFEST):
        return _written(Path(base))


def _written(base: Path) -> Path:
    entries: dict[str, dict[str, Any]] = {}
    software: dict[str, dict[str, str]] = {}
    for key in store.keys(base):
        record = store.get_record(base, key)
        entries[str(key)] = {
            "checksum": record.checksum,
            "initial_condition": record.initial_condition,
            "rejected": list(record.rejected),
        }
        if record.kind:
            entries[str(key)]["kind"] = record.kind
        if record.nearest:
            entries[str(key)]["nearest"] = record.nearest
        if record.software:  # recordings were made by none that is known
            software[json.dumps(dict(record.software), sort_keys=True)] = dict(record.software)
    if len(software) > 1:
        warn(
            f"expected trajectories made by one set of versions in {base}, got {_mixture(software.values())}; "
            "their numbers agree up to rounding, make the older ones again where bits matter",
        )
    content: dict[str, Any] = {"format": FORMAT, "software": list(software.values())}
    if near := nearest_of_all({text: entry.get("nearest") for text, entry in entries.items()}):
        content["nearest"] = near
    return sealed.write(base / MANIFEST, content | {"trajectories": entries})


def _mixture(software: Iterable[Mapping[str, str]]) -> str:
    """Return the packages of which there are several versions: "numba 0.61.0 and 0.62.1"."""
    versions: dict[str, set[str]] = {}
    for each in software:
        for name, version in each.items():
            versions.setdefault(name, set()).add(version)
    return ", ".join(f"{name} {' and '.join(sorted(each))}" for name, each in versions.items() if len(each) > 1)


def nearest_of_all(nearest: Mapping[str, Nearest | None]) -> dict[str, dict[str, Any]]:
    """Return system -> the trajectory that is nearest to what is held out, that equation and the distance.

    Args:
        nearest: key -> what the record of the trajectory says; None for systems that keep no distance.
    """
    found: dict[str, dict[str, Any]] = {}
    for text, each in sorted(nearest.items(), key=lambda item: item[1].distance if item[1] else 1.0):
        if each:
            entry = {"trajectory": text, "held_out": each.name, "distance": each.distance}
            found.setdefault(Key.parse(text).system, entry)
    return found


def read(base: Path | str) -> dict[Key, Entry]:
    """Read the manifest of a data set: key -> entry, in the order of the keys.

    Raises:
        DataError: there is none, or it is of another format.
    """
    content = _read(Path(base) / MANIFEST, _Manifest)
    if content.format != FORMAT:
        raise DataError(f"expected a manifest of format {FORMAT} in {base}, got {content.format}; build the data again")
    return {Key.parse(text): entry for text, entry in content.trajectories.items()}


@dataclass(frozen=True)
class VerifyReport:
    """Result of `verify`.

    Attributes:
        whole: number of trajectories whose checksum is that of the manifest.
        wrong: key -> what is wrong with its file.
        unlisted: keys of files that are not in the manifest.
    """

    whole: int
    wrong: Mapping[Key, str]
    unlisted: tuple[Key, ...]

    @property
    def good(self) -> bool:
        """Whether files and manifest agree in both directions."""
        return not self.wrong and not self.unlisted


def verify(base: Path | str, progress: Progress | None = None) -> VerifyReport:
    """Read every trajectory of the manifest and compare it with its checksum."""
    entries = read(base)
    whole, wrong = 0, {}
    for number, (key, entry) in enumerate(entries.items()):
        try:
            found = store.checksum(store.get(base, key, verify=False).fields)
            if found == entry.checksum:
                whole += 1
            else:
                wrong[key] = f"expected checksum {entry.checksum[:12]}, got {found[:12]}"
        except DataError as error:
            wrong[key] = str(error)
        if progress:
            progress(number + 1, len(entries), str(key))
    return VerifyReport(whole, wrong, tuple(key for key in store.keys(base) if key not in entries))


def reasons(entries: Iterable[Entry]) -> dict[str, int]:
    """Count the rejected draws by reason, without the measured values; most frequent first."""
    return tally(reason for entry in entries for reason in entry.rejected)


def acceptance(entries: Iterable[Entry]) -> dict[str, tuple[int, int]]:
    """Return kind of equation -> (number of trajectories, number of draws that they took)."""
    found: dict[str, tuple[int, int]] = {}
    for entry in entries:
        if entry.kind:
            made, drawn = found.get(entry.kind, (0, 0))
            found[entry.kind] = made + 1, drawn + 1 + len(entry.rejected)
    return found


def closest(entries: Iterable[Entry]) -> dict[str, float]:
    """Return held-out equation -> smallest distance of the trajectories to which it is the nearest one."""
    found: dict[str, float] = {}
    for entry in entries:
        if entry.nearest:
            found[entry.nearest.name] = min(entry.nearest.distance, found.get(entry.nearest.name, 1.0))
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _read(path: Path, kind: type[T]) -> T:
    if not path.is_file():
        raise DataError(
            f"expected {path}, got no file; make the data, or end a build that was stopped, with: rdjepa data build "
            f"--out {path.parent} and the options of before"
        )
    return sealed.read(path, kind, "move it away, and build the data again")
