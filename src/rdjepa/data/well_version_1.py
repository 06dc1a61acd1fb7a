"""What describes a trajectory in a file of format version 1: an attribute for each entry, and one seal of them all.

Files of rdjepa 0.1.0 have no seal. The reader of the present version is `rdjepa.data.well`.
"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from rdjepa.data.fields import COMPONENTS
from rdjepa.data.trajectory import Key
from rdjepa.errors import DataError
from rdjepa.io import sealed
from rdjepa.pde.distance import Nearest

FORMAT_VERSION = 1
TIMES = "rdjepa_times"


def described(path: Path, file: h5py.File, shape: tuple[int, int, int]) -> dict[str, Any]:
    """Return the entries of `rdjepa.data.well.Record` but the shape (T, H, W), which the fields have.

    Raises:
        DataError: they have changed since they were written.
    """
    attributes: Any = file.attrs
    key = Key(
        system=str(attributes["rdjepa_system"]),
        split=str(attributes["rdjepa_split"]),
        regime=str(attributes["rdjepa_regime"]),
        index=int(attributes["rdjepa_index"]),
    )
    found = {
        "times": tuple(np.asarray(file[TIMES], dtype=np.float64).tolist()),
        "coefficients": {str(name): float(attributes[name]) for name in attributes["simulation_parameters"]},
        "attempt": int(attributes["rdjepa_attempt"]),
        "rejected": _json(path, attributes["rdjepa_rejected"], tuple[str, ...]),
        "initial_condition": str(attributes["rdjepa_initial_condition"]),
        "length": float(attributes["rdjepa_length"]),
        "boundary": str(attributes["rdjepa_boundary"]),
        "software": _json(path, attributes["rdjepa_software"], dict[str, str]),
    }
    if "rdjepa_kind" in attributes:
        found["kind"] = str(attributes["rdjepa_kind"])
        text = attributes.get("rdjepa_nearest")
        found["nearest"] = _json(path, text, Nearest) if text else None
    digest = str(attributes["rdjepa_checksum"])
    seal = attributes.get("rdjepa_seal")
    if seal is not None:
        values = found | {"key": str(key), "fields": [digest, *shape, COMPONENTS]}
        if seal != sealed.seal(sealed.plain(values)):
            raise DataError(f"expected a description that matches its seal, got a changed one in {path}; make it again")
    return found | {"key": key, "checksum": digest}


def _json(path: Path, text: str, kind: Any) -> Any:
    return sealed.decode(text, kind, f"in {path}", "make it again")
