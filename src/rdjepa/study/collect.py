"""The rows of a study, from its cells or from the files of an export.

<root>/cells/<id>/...                                                              a study directory
<root>/rows.parquet, curve.parquet, spectra.parquet, records.json, examples.npz    what `export` makes of it
"""

import hashlib
import io
import os
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from rdjepa.checks import usable_path
from rdjepa.errors import Note, StudyError, first_line, warn
from rdjepa.io import sealed
from rdjepa.io.atomic import write_arrays, write_bytes
from rdjepa.study import registry
from rdjepa.study.cell import Cell
from rdjepa.study.directory import RECORD, RECORDS, STUDY, Directory
from rdjepa.study.fingerprints import shared_identifier
from rdjepa.study.mixtures import refuse_mixtures, refuse_other_references
from rdjepa.study.plan import select
from rdjepa.study.record import CURVE, EXAMPLE, ROWS, SPECTRA, CellRecord, checked, read_record

CELL = ["study", "profile", "system", "k", "support_seed", "forecaster"]
EXAMPLES = "examples.npz"
SHARED = ("newest", "reference")  # fields of an example that do not depend on the forecaster
COLUMNS = {
    ROWS: [*CELL, "regime", "metric", "horizon", "trajectory", "value", "run"],
    CURVE: [*CELL, "updates", "weights", "regime", "metric", "horizon", "trajectory", "value", "run"],
    SPECTRA: [*CELL, "regime", "horizon", "wavenumber", "error", "reference", "run"],
}
WHOLE = ("k", "support_seed", "updates", "horizon", "trajectory", "wavenumber")
CATEGORIES = ("study", "profile", "system", "forecaster", "weights", "regime", "metric", "run")


def collect(root: Path | str, study: str | None = None, profile: str | None = None) -> pd.DataFrame:
    """Return every error of every finished cell: a row per metric, horizon, regime and trajectory, in physical units.

    Args:
        root: study directory, or a directory that `export` wrote.
        study: only this study. "scratch" takes RD-JEPA and the control from the held-out cells, under its name.
        profile: only this profile.

    Returns:
        Columns study, profile, system, k, support_seed, forecaster, regime, metric, horizon, trajectory, value, run.

    Raises:
        StudyError: no cells, a record that does not match the name of its folder, or cells of different settings.
    """
    return _refusing(root, ROWS, study, profile)


def spectra(root: Path | str, study: str | None = None, profile: str | None = None) -> pd.DataFrame:
    """Return radially binned energies of errors and references of every finished cell; arguments as for `collect`.

    Returns:
        Columns study, profile, system, k, support_seed, forecaster, regime, horizon, wavenumber, error, reference, run.

    Raises:
        StudyError: see `collect`; or cells of one system that were tested on different fields.
    """
    table = _refusing(root, SPECTRA, study, profile)
    refuse_other_references(table)
    return table


def curve(root: Path | str, study: str | None = None, profile: str | None = None) -> pd.DataFrame:
    """Return the errors that were measured during the adaptation of every trained cell; arguments as for `collect`.

    Returns:
        Columns of `collect`, and updates and weights ("last" or "averaged").
    """
    return _refusing(root, CURVE, study, profile)


def records(root: Path | str) -> pd.DataFrame:
    """Return one row per finished cell: the content of its record, columns as its keys."""
    return pd.DataFrame(read_records(root))


def examples(root: Path | str) -> Callable[[str], dict[str, np.ndarray] | None]:
    """Return the function that gives the fields of one window of a cell, by its id; an export is read once.

    Returns:
        id -> newest (H, W, C), reference and forecast (5, H, W, C) in physical units, float32; of an export, rounded to
        half precision. None where they were not kept.
    """
    root = Path(root)

    @cache
    def exported() -> tuple[bytes, dict[str, CellRecord]]:
        content = _content(root / EXAMPLES, _read_export(root).files, "export the study again")
        return content, {record["id"]: record for record in read_records(root)}

    def find(run: str) -> dict[str, np.ndarray] | None:
        path = root / "cells" / run / EXAMPLE
        if path.is_file():
            content = _content(path, read_record(path.parent).get("files", {}), "move the folder away")
            return _arrays(content, path)
        if not (root / EXAMPLES).is_file():
            return None
        content, known = exported()
        if run not in known:
            return None
        names = {name: f"{_window(known[run])} {name}" for name in SHARED} | {"forecast": f"{run} forecast"}
        arrays = _arrays(content, root / EXAMPLES, names.values())
        found = {name: arrays[key].astype(np.float32) for name, key in names.items() if key in arrays}
        return found if "forecast" in found else None

    return find


def read_records(root: Path | str) -> list[CellRecord]:
    """Return the records of the finished cells, each checked against its name.

    Raises:
        ArgumentError: a path that no file system takes.
        StudyError: no cells, or a record that does not match the name of its folder.
    """
    root = usable_path(root, "a study directory")
    if _is_study(root):
        Directory(root).read()
        return [read_record(path.parent) for path in sorted((root / "cells").glob(f"[!.]*/{RECORD}"))]
    return [checked(record, root / "cells" / record["id"]) for record in _read_export(root).records]


def known_records(known: Path | str | Sequence[Path | str] | None) -> list[CellRecord]:
    """Return the records of one place or of several, none for None; errors as of `read_records`."""
    places = [] if known is None else [known] if isinstance(known, str | Path) else known
    return [record for place in places for record in read_records(place)]


@dataclass(frozen=True)
class Export:
    """Content of an export's records.json; `files` holds the SHA-256 of the other files, if they were written then."""

    records: list[CellRecord]
    files: dict[str, str] = field(default_factory=dict)


def _read_export(root: Path) -> Export:
    path = root / RECORDS
    if not path.is_file():
        raise StudyError(
            f"expected a study directory or exported rows in {root}, got neither; make some with: "
            f"rdjepa study run STUDY --root {root}"
        )
    kinds: Any = list[CellRecord] | Export  # early versions wrote the list alone
    found = sealed.read(path, kinds, "export the study again", StudyError)
    return found if isinstance(found, Export) else Export(found)


def export(roots: Path | str | Sequence[Path | str], out: Path | str, only: Sequence[str] = ()) -> None:
    """Write the rows, curves, spectra, records and example fields of a study as five small files.

    Names are stored as categories, values in single precision, and of the example fields those of the first support
    selection, which figures show, in half precision where it resolves them. A note says how many settings have none:
    an export that is read keeps those of its own first selection alone.

    Args:
        roots: study directory, or directory that `export` wrote; several, as of several machines, are joined, and a
            cell that two of them have, in the same precision or in two, is taken from the first.
        out: directory for rows.parquet, curve.parquet, spectra.parquet, records.json and examples.npz; none of those
            that are read, so that a crash costs no rows.
        only: conditions on cells, as those of `rdjepa.study.plan.cells`; all cells by default.

    Raises:
        StudyError: see `collect`, which holds for the chosen cells of all roots together; a condition that no cell
            meets, or a root or study directory that is written to.
    """
    out = Path(out)
    named = [roots] if isinstance(roots, str | Path) else roots
    different = {os.path.realpath(root): Path(root) for root in named}
    if os.path.realpath(out) in different:
        raise StudyError(f"expected a directory that is not read too, got {out}; write to a new one, then replace it")
    if _is_study(out):  # whose cells would be read in the place of these files
        raise StudyError(f"expected a directory for the rows, got the study directory {out}; write to another one")
    places = list(different.values())
    known = {root: read_records(root) for root in places}
    origin, found = _joined(known, only)
    own = [[run for run, place in origin.items() if place == root] for root in places]
    files = {}
    for name in COLUMNS:
        parts = [_table(root, known[root], name) for root in places]
        chosen = [part[part["run"].isin(runs)] for runs, part in zip(own, parts, strict=True)]
        table = pd.concat(chosen, ignore_index=True)
        if name == SPECTRA:
            refuse_other_references(table)
        kinds = {column: "category" for column in CATEGORIES if column in table}
        kinds |= {column: "float32" for column in ("value", "error", "reference") if column in table}
        whole = [column for column in WHOLE if column in table]
        small = table.astype(kinds).assign(**{column: _narrowed(table[column]) for column in whole})
        stream = io.BytesIO()
        small.to_parquet(stream, index=False, compression="zstd")
        files[name] = write_bytes(out / name, stream.getvalue())
    files[EXAMPLES] = write_arrays(out / EXAMPLES, **_examples(found, origin))
    checksums = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    sealed.write(out / RECORDS, {"records": found, "files": checksums})


def _narrowed(column: pd.Series) -> pd.Series:
    """Return whole numbers in 16 bits if all of them fit, else in 64: a seed may have 32, an index more."""
    return column.astype("int16" if column.empty or column.between(-(2**15), 2**15 - 1).all() else "int64")


def _joined(known: Mapping[Path, list[CellRecord]], only: Sequence[str]) -> tuple[dict[str, Path], list[CellRecord]]:
    """Return where the chosen cells of several roots are, each in the first root that has it, and their records."""
    every: dict[str, tuple[Path, CellRecord]] = {}
    for root, found in known.items():
        for record in found:
            every.setdefault(shared_identifier(record["identity"]), (root, record))
    cells = {name: Cell(**record["identity"]["cell"]) for name, (_, record) in every.items()}
    chosen = set(select(list(cells.values()), only))
    kept = [place for name, place in every.items() if cells[name] in chosen]
    records = [record for _, record in kept]
    refuse_mixtures(records)
    return {record["id"]: root for root, record in kept}, records


def _examples(found: Sequence[CellRecord], origin: Mapping[str, Path]) -> dict[str, np.ndarray]:
    """Return the fields of the first support selection of every setting, what its cells share once."""
    arrays: dict[str, np.ndarray] = {}
    shown, example = set(), {root: examples(root) for root in set(origin.values())}
    settings = {record["id"]: _setting(record) for record in found}
    for record in sorted(found, key=lambda record: record["support_seed"]):
        setting = settings[record["id"]]
        fields = None if setting in shown else example[origin[record["id"]]](record["id"])
        if fields is not None:
            shown.add(setting)
            arrays[f"{record['id']} forecast"] = _shortened(fields["forecast"])
            arrays |= {f"{_window(record)} {name}": _shortened(fields[name]) for name in SHARED}
    lost = sorted(set(settings.values()) - shown)
    if lost:
        warn(
            f"{len(lost)} of {len(set(settings.values()))} settings are exported without example fields, such as "
            f"{' '.join(map(str, lost[0]))}; figures show fields of cells that are exported from their study directory",
            Note,
        )
    return arrays


def _shortened(fields: np.ndarray) -> np.ndarray:
    """Return fields (..., C) in half precision if it resolves a 256th of every component's range, else as they are."""
    components = tuple(range(fields.ndim - 1))
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large for it becomes infinite
        half = fields.astype(np.float16)
        wrong = np.abs(half - fields).max(components)
    return half if (wrong <= np.ptp(fields, components) / 256).all() else fields


def _setting(record: CellRecord) -> tuple[Any, ...]:
    """Return the coordinates of a cell but its support selection."""
    return tuple(value for key, value in _cell_of(record).items() if key != "support_seed")


def _cell_of(record: CellRecord) -> dict[str, Any]:
    """Return the coordinates of a cell, in the order of `CELL`."""
    return {key: dict(record)[key] for key in CELL}


def _window(record: CellRecord) -> str:
    """Return the name of the example window that all cells of a system share."""
    return f"{record['study']} {record['profile']} {record['system']}"


def _refusing(root: Path | str, name: str, study: str | None, profile: str | None) -> pd.DataFrame:
    """Return the rows of the chosen cells, which are refused if they do not belong together."""
    found = read_records(root)
    table = _table(root, found, name, study, profile)
    refuse_mixtures(record for record in found if _belongs(record, study, profile))
    return table


def _table(
    root: Path | str, found: list[CellRecord], name: str, study: str | None = None, profile: str | None = None
) -> pd.DataFrame:
    """Return the rows of the cells in a study directory or export whose records are given."""
    root = Path(root)
    if study is not None:
        registry.get(study)  # refuses an unknown one
    if _is_study(root):
        belonging = [record for record in found if _belongs(record, study, profile)]
        table = _of_cells(root, belonging, name).reindex(columns=COLUMNS[name])
    else:
        content = _content(root / name, _read_export(root).files, "export the study again")
        table = _parquet(content, root / name).to_pandas()
        # The curve holds the cells that were trained, where a profile measures one.
        _check_export(root / name, table, found if name != CURVE else [each for each in found if _curved(each)])
        chosen = [record["id"] for record in found if _belongs(record, study, profile)]
        table = table[table["run"].isin(chosen)].astype({column: str for column in CATEGORIES if column in table})
    if study is not None:
        table = table.assign(study=study)
    return table.reset_index(drop=True)


def _of_cells(root: Path, found: Sequence[CellRecord], name: str) -> pd.DataFrame:
    """Return the rows of some cells, with the run id and the coordinates of their cell as columns."""
    parts = []
    for record in found:
        folder = root / "cells" / record["id"]
        content = _content(folder / name, record.get("files", {ROWS: record.get("rows")}), "move the folder away")
        parts.append(_parquet(content, folder / name))
    if not parts:
        return pd.DataFrame()
    table = pa.concat_tables(parts, promote_options="default").to_pandas()
    coordinates = pd.DataFrame([{"run": record["id"]} | _cell_of(record) for record in found])
    repeated = coordinates.loc[coordinates.index.repeat([part.num_rows for part in parts])]
    return table.assign(**{column: repeated[column].to_numpy() for column in repeated})


def _parquet(content: bytes, path: Path) -> pa.Table:
    """Return the table in the bytes of a file."""
    try:
        return pq.ParquetFile(io.BytesIO(content)).read(use_threads=False)
    except (ValueError, OSError) as error:  # pyarrow's errors are of these classes
        raise StudyError(
            f"expected a table in {path}, got a damaged file ({first_line(error)}); make it again"
        ) from None


def _arrays(content: bytes, path: Path, wanted: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Return arrays in the bytes of a file: those of some names that are there, or all."""
    try:
        with np.load(io.BytesIO(content)) as arrays:
            return {name: arrays[name] for name in arrays if wanted is None or name in wanted}
    except (ValueError, OSError, EOFError, KeyError, BadZipFile, zlib.error, TokenError) as error:
        raise StudyError(
            f"expected arrays in {path}, got a damaged file ({first_line(error)}); make it again"
        ) from None


def _content(path: Path, checksums: Mapping[str, str | None], remedy: str) -> bytes:
    """Return the bytes of a file; a file without a checksum is one of early versions.

    Raises:
        StudyError: there is no such file, it is too large to be one, or its bytes have changed.
    """
    if not path.is_file():
        raise StudyError(f"expected {path.name} in {path.parent}, got no file; {remedy}")
    if path.stat().st_size > sealed.LARGEST:
        raise StudyError(f"expected at most {sealed.LARGEST} bytes in {path}, got {path.stat().st_size}; {remedy}")
    content = path.read_bytes()
    expected = checksums.get(path.name)
    if expected is not None and hashlib.sha256(content).hexdigest() != expected:
        raise StudyError(f"expected {path} as its record says, got other bytes; {remedy}")
    return content


def _curved(record: CellRecord) -> bool:
    """Return whether errors were measured during the adaptation of a cell, of which there may be fewer updates."""
    planned = record["identity"].get("curve", ())[:-1]  # the last entry is the stride
    return any(number <= record.get("made", record["updates"]) for number in planned)


def _belongs(record: CellRecord, study: str | None, profile: str | None) -> bool:
    if profile not in (None, record["profile"]):
        return False
    return study is None or registry.get(study).has(record)


def _check_export(path: Path, table: pd.DataFrame, found: list[CellRecord]) -> None:
    """Refuse exported rows if their runs differ from those of the exported records."""
    unmatched = set(table["run"].astype(str)) ^ {record["id"] for record in found}
    if unmatched:
        raise StudyError(
            f"expected the runs of {RECORDS} in {path}, got others such as {min(unmatched)}; export the study again"
        )


def _is_study(root: Path) -> bool:
    """Return whether this is a study directory, also one without a finished cell, and not an export."""
    return (root / "cells").is_dir() or (root / STUDY).is_file()
