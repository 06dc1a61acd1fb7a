"""Packages that only some formats need."""

from importlib import import_module
from typing import Any

from rdjepa.errors import DataError


def needed(package: str, place: str) -> Any:
    """Import a package of the extra `formats`.

    Raises:
        DataError: it is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise DataError(
            f"expected the package {package} to read {place}, got none installed; pip install 'rdjepa[formats]'"
        ) from error
