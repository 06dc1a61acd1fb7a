"""Sources that cannot be read: what libraries raise on them becomes one sentence."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from tokenize import TokenError

from rdjepa.errors import DataError, RdjepaError, first_line

# what h5py, NumPy, Zarr, SciPy, xarray and Pillow raise on files that are cut off, overwritten or made to fail
DAMAGED: tuple[type[Exception], ...] = (
    OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, EOFError, OverflowError, SyntaxError,
    TokenError, AssertionError, zlib.error, zipfile.BadZipFile, struct.error,
)  # fmt: skip


@contextmanager
def intact(kind: str, place: str, *more: type[Exception]) -> Iterator[None]:
    """Turn what libraries raise on a source that cannot be read into one sentence.

    Args:
        kind: of the source, in words.
        place: where it is.
        more: what its library raises besides.

    Raises:
        DataError: one of these was raised; deliberate errors stay as they are.
    """
    try:
        yield
    except RdjepaError:
        raise
    except (*DAMAGED, *more) as error:
        raise damaged(kind, place, error) from error


def damaged(kind: str, place: str, error: Exception) -> DataError:
    """Return the error of a source that cannot be read."""
    if isinstance(error, BlockingIOError):
        return DataError(
            f"expected a {kind} that can be read, got one that a program has locked at {place}; close it there"
        )
    return DataError(
        f"expected a whole {kind}, got a truncated, damaged or incomplete one at {place} ({first_line(error)}); "
        "fetch or make it again"
    )
