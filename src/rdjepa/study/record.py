"""The record of a finished cell, beside its rows: what was computed, and how the run went."""

from pathlib import Path
from typing import Any, NotRequired, TypedDict

from rdjepa.errors import StudyError
from rdjepa.io import sealed
from rdjepa.study.directory import RECORD, VERSION
from rdjepa.study.fingerprints import identifier

ROWS, CURVE, SPECTRA, EXAMPLE = "rows.parquet", "curve.parquet", "spectra.parquet", "example.npz"


class CellRecord(TypedDict):
    """The record.json of a finished cell; early ones have `rows`, the checksum of the rows, instead of `files`.

    `id` and `identity` say what was computed, `files` holds the SHA-256 of the cell's other files; the rest describes
    the run. `updates` are those of the profile, `made` those that there were: a forecaster may decide for fewer. So are
    `settings`: it may tune its encoder with several trajectories.
    """

    id: str
    identity: dict[str, Any]
    study: str
    system: str
    k: int
    support_seed: int
    forecaster: str
    profile: str
    updates: int
    test: dict[str, int]
    support: list[str]
    settings: dict[str, Any]
    config: dict[str, Any]
    checkpoint: str
    data: str
    trajectories: str
    normalizer: dict[str, Any]
    parameters: int
    trained: int
    made: NotRequired[int]
    loss: NotRequired[list[float]]
    unadapted: NotRequired[float]
    together: NotRequired[float]
    retained: NotRequired[float]
    combined: NotRequired[list[list[float]]]
    withheld: NotRequired[int]
    on_others: NotRequired[dict[str, float]]
    software: dict[str, str]
    threads: int
    seconds: dict[str, float]
    files: NotRequired[dict[str, str]]
    rows: NotRequired[str]
    created: str


def read_record(folder: Path) -> CellRecord:
    """Read the record of the finished cell in a folder, and check it against the folder's name.

    Raises:
        StudyError: it is damaged, of another cell, or of another protocol version.
    """
    record = sealed.read(folder / RECORD, CellRecord, "move the folder away", StudyError)
    return checked(record, folder)


def checked(record: CellRecord, folder: Path) -> CellRecord:
    """Return a record whose name, version, cell and number of updates are those of its identity.

    Raises:
        StudyError: they are not.
    """
    content = record["identity"]
    if record["id"] != folder.name:
        raise _foreign(folder, "a record of another name")
    if content.get("version") != VERSION or identifier(content) != record["id"]:
        raise _foreign(folder, "a record of another protocol version or with other settings than its name says")
    cell = {name: record.get(name) for name in content["cell"]}
    if cell != content["cell"] or record["updates"] != content["adapt"].get("steps", 0):
        raise _foreign(folder, "a record whose cell is not that of its settings")
    return record


def _foreign(folder: Path, what: str) -> StudyError:
    """Return the error of a cell whose files do not belong together."""
    return StudyError(f"expected the cell {folder.name} in {folder}, got {what}; move the folder away")
