"""The rows of a learning curve as a CSV file, which a run that was ended goes on from."""

import csv
import dataclasses
import io
import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from rdjepa.errors import DataError, OutputError
from rdjepa.evaluation.leaving_out import Measured
from rdjepa.io.atomic import write_bytes

COLUMNS = tuple(field.name for field in dataclasses.fields(Measured))
LARGEST = 2**26  # bytes; half a million rows
_REMEDY = "give a file that `rdjepa learning-curve` wrote, or choose another --out (out=)"


def write(rows: Sequence[Measured], path: str | Path) -> Path:
    """Write rows atomically, under a heading, and return the path.

    Raises:
        OutputError: the file cannot be written.
    """
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerows([COLUMNS, *map(dataclasses.astuple, rows)])
    return write_bytes(path, text.getvalue().encode())


def begin(path: str | Path, force: bool = False) -> list[Measured]:
    """Return the rows of the file that a curve will be written to; none where there is no file yet.

    Args:
        path: of the file.
        force: take a file of another kind for none.

    Raises:
        OutputError: there is something else in its place.
        DataError: as for `read`.
    """
    path = Path(path)
    if is_curve(path):
        return read(path)
    if path.exists() and not (force and path.is_file()):
        raise OutputError(f"expected a learning curve or no file at {path}, got something else; choose another out=")
    return []


def read(path: str | Path) -> list[Measured]:
    """Read what `write` wrote.

    Raises:
        DataError: the file is too large, damaged or of another kind.
    """
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST:
            raise DataError(f"expected at most {LARGEST} bytes of a learning curve, got more in {path}; {_REMEDY}")
        table = csv.DictReader(io.StringIO(path.read_text("utf-8"), newline=""), strict=True)
        if tuple(table.fieldnames or ()) != COLUMNS:
            raise DataError(f"expected the columns {', '.join(COLUMNS)}, got others in {path}; {_REMEDY}")
        rows = [msgspec.convert(row, Measured, strict=False) for row in table]
    except OSError as reason:
        text = (reason.strerror or "an error of the system").lower()
        raise DataError(f"expected a learning curve in {path}, got a file that cannot be read ({text})") from None
    except (csv.Error, UnicodeError, msgspec.ValidationError) as reason:
        text = " ".join(str(reason).replace("`", "").split())
        raise DataError(f"expected a learning curve in {path}, got a damaged file ({text}); {_REMEDY}") from None
    if not all(math.isfinite(row.value) for row in rows):
        raise DataError(f"expected finite errors, got NaN or infinity in {path}; {_REMEDY}")
    return rows


def is_curve(path: Path) -> bool:
    """Return whether `write` wrote a file."""
    try:
        with path.open("rb") as file:
            return file.readline(1_000).decode("utf-8", "replace").strip() == ",".join(COLUMNS)
    except OSError:
        return False
