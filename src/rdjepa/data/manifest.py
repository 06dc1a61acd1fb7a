"""The data set as a recipe: what makes it, and a checksum for every trajectory that was made.

    <base>/recipe.json      configuration of every system, written before the first trajectory
    <base>/manifest.json    checksum, redraws and reasons of every trajectory, written when a build ends

The two describe the data completely: the same keys give the same arrays on the same platform.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

from rdjepa.data import store
from rdjepa.data.trajectory import Key
from rdjepa.errors import DataError
from rdjepa.io.atomic import write_bytes
from rdjepa.pde.system import System
from rdjepa.progress import Progress

FORMAT = 1
RECIPE, MANIFEST = "recipe.json", "manifest.json"


def recipe_of(system: System) -> dict[str, Any]:
    """Everything about a system that decides its trajectories, as plain JSON values."""
    return {
        "family": system.family or system.name,
        "equations": list(system.latex()),
        "numerics": asdict(system.numerics),
        "screens": [repr(screen) if is_dataclass(screen) else screen.__qualname__ for screen in system.screens],
        "regimes": {
            name: {
                "boxes": [{key: list(span) for key, span in box.ranges.items()} for box in regime.boxes],
                "initial_conditions": [family.name for family in regime.initial_conditions],
            }
            for name, regime in system.regimes.items()
        },
        "notes": list(system.notes),
    }


def claim(base: Path | str, recipes: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the recipes of the systems about to be made into `base`, or check that those there are the same.

    Raises:
        DataError: the directory belongs to another configuration; the differing keys are named.
    """
    path = Path(base) / RECIPE
    there: dict[str, Any] = _read(path) if path.exists() else {}
    wanted = json.loads(json.dumps(recipes))
    _refuse_others(base, there, wanted)
    if there.keys() | wanted.keys() != there.keys():
        write_bytes(path, json.dumps(there | wanted, indent=1).encode())


def check(base: Path | str, recipes: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that the recipes in `base` are these, for the systems that it has; nothing is written.

    Raises:
        DataError: there are no recipes, or the directory belongs to another configuration.
    """
    _refuse_others(base, _read(Path(base) / RECIPE), json.loads(json.dumps(recipes)))


def _refuse_others(base: Path | str, there: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    different = [
        f"{name}.{key}"
        for name in wanted.keys() & there.keys()
        for key in sorted(wanted[name].keys() | there[name].keys())
        if wanted[name].get(key) != there[name].get(key)
    ]
    if different:
        raise DataError(
            f"expected data of the same configuration in {base}, got another for {', '.join(different)}; "
            "choose another directory"
        )


@dataclass(frozen=True)
class Entry:
    """One line of the manifest.

    Attributes:
        checksum: SHA-256 of the fields.
        initial_condition: family of the initial state.
        rejected: reasons of the draws before this one.
    """

    checksum: str
    initial_condition: str
    rejected: tuple[str, ...]


def write(base: Path | str) -> Path:
    """Write the manifest of every trajectory that lies in `base`, from the files' own records; return its path."""
    base = Path(base)
    entries, software = {}, {}
    for key in store.keys(base):
        record = store.read_record(store.path_of(base, key))
        entries[str(key)] = {
            "checksum": record.checksum,
            "initial_condition": record.initial_condition,
            "rejected": list(record.rejected),
        }
        software[json.dumps(dict(record.software), sort_keys=True)] = dict(record.software)
    content = {"format": FORMAT, "software": list(software.values()), "trajectories": entries}
    path = base / MANIFEST
    write_bytes(path, json.dumps(content, indent=1).encode())
    return path


def read(base: Path | str) -> dict[Key, Entry]:
    """The manifest of a data set, in the order of its keys.

    Raises:
        DataError: there is none, or it is of another format.
    """
    content = _read(Path(base) / MANIFEST)
    if content.get("format") != FORMAT:
        raise DataError(
            f"expected a manifest of format {FORMAT} in {base}, got {content.get('format')!r}; build the data again"
        )
    return {
        Key.parse(text): Entry(entry["checksum"], entry["initial_condition"], tuple(entry["rejected"]))
        for text, entry in content["trajectories"].items()
    }


@dataclass(frozen=True)
class Verdict:
    """What `verify` found.

    Attributes:
        whole: number of trajectories whose every byte is as the manifest says.
        wrong: key -> what is wrong with its file.
        unlisted: keys of files that the manifest does not know.
    """

    whole: int
    wrong: Mapping[Key, str]
    unlisted: tuple[Key, ...]

    @property
    def good(self) -> bool:
        """Whether files and manifest agree in both directions."""
        return not self.wrong and not self.unlisted


def verify(base: Path | str, progress: Progress | None = None) -> Verdict:
    """Read every trajectory of the manifest and compare it with its checksum."""
    entries = read(base)
    whole, wrong = 0, {}
    for number, (key, entry) in enumerate(entries.items()):
        try:
            found = store.checksum(store.read(store.path_of(base, key), verify=False).fields)
            if found == entry.checksum:
                whole += 1
            else:
                wrong[key] = f"expected checksum {entry.checksum[:12]}, got {found[:12]}"
        except DataError as error:
            wrong[key] = str(error)
        if progress:
            progress(number + 1, len(entries), str(key))
    return Verdict(whole, wrong, tuple(key for key in store.keys(base) if key not in entries))


def reasons(entries: Iterable[Entry]) -> dict[str, int]:
    """Rejected draws by reason, the measured values left out, most frequent first."""
    found: dict[str, int] = {}
    for entry in entries:
        for reason in entry.rejected:
            kind = " ".join(word for word in reason.split() if not any(c.isdigit() for c in word))
            found[kind] = found.get(kind, 0) + 1
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise DataError(f"expected {path}, got no file; make the data with: rdjepa data build --out {path.parent}")
    try:
        content = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"expected JSON in {path}, got a damaged file ({error}); build the data again") from error
    if not isinstance(content, dict):
        raise DataError(f"expected a JSON object in {path}, got {type(content).__name__}; build the data again")
    return content
