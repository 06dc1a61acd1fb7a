"""Edits inside a file's own format: one value of a JSON, of a safetensors record, or of an HDF5 file's metadata.

The file stays well formed, so only a checksum over everything, or a check of every value, can notice it.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RECORD = "rdjepa_record"


def edit(path: Path, rng: random.Random) -> str:
    """Edit one value of a file and return what was done; "" where the format is none of these."""
    start = path.read_bytes()[:8]
    if start.startswith(b"\x89HDF"):
        return _hdf5(path, rng)
    if path.suffix == ".safetensors":
        return _safetensors(path, rng)
    if path.suffix == ".json":
        value = json.loads(path.read_text())
        done = _change(value, rng)
        path.write_text(json.dumps(value))
        return done
    return ""


def _change(value: Any, rng: random.Random) -> str:
    """Change, remove or mistype one entry of nested JSON values, in place."""
    places: list[tuple[Any, Any, str]] = []

    def walk(each: Any, name: str) -> None:
        if isinstance(each, dict | list):
            for key in each if isinstance(each, dict) else range(len(each)):
                places.append((each, key, f"{name}.{key}"))
                walk(each[key], f"{name}.{key}")

    walk(value, "")
    if not places:
        return "nothing to edit"
    holder, key, name = rng.choice(places)
    old = holder[key]
    changes: dict[str, Callable[[], Any]] = {
        "null": lambda: None,
        "a list": lambda: [old],
        "a text": lambda: "?",
        "another number": lambda: _other(old, rng),
        "huge": lambda: 10**30,
        "NaN": lambda: float("nan"),
        "negative": lambda: -1,
        "deep": lambda: json.loads("[" * 100 + "]" * 100),
    }
    way = rng.choice(["removed", *changes, *["another number"] * 6])
    if way == "removed":
        del holder[key]
    else:
        holder[key] = changes[way]()
    return f"{name.lstrip('.')}: {str(old)[:40]!r} {way}"


def _other(old: Any, rng: random.Random) -> Any:
    """Return a value of the same type that differs."""
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return old + rng.choice((-1, 1, 7))
    if isinstance(old, float):
        return old * 1.5 + 0.1
    if isinstance(old, str) and old:
        at = rng.randrange(len(old))
        return old[:at] + ("x" if old[at] != "x" else "y") + old[at + 1 :]
    return [*old, 1] if isinstance(old, list) else 3


def _safetensors(path: Path, rng: random.Random) -> str:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    metadata = header["__metadata__"]
    record = json.loads(metadata["rdjepa"])
    done = _change(record, rng)
    metadata["rdjepa"] = json.dumps(record)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size :])
    return done


def _hdf5(path: Path, rng: random.Random) -> str:
    """Edit an attribute, or a value of a small data set, or delete one."""
    import h5py

    with h5py.File(path, "r+") as file:
        places: list[tuple[Any, str, bool]] = [(file, name, True) for name in file.attrs]

        def walk(_: str, item: Any) -> None:
            places.extend((item, name, True) for name in item.attrs)
            if isinstance(item, h5py.Dataset) and item.size < 1000:
                places.append((item, "", False))

        file.visititems(walk)
        if RECORD in file and rng.random() < 0.6:
            values = json.loads(file[RECORD][()])
            done = _change(values, rng)
            del file[RECORD]
            file[RECORD] = np.bytes_(json.dumps(values))
            return f"record, {done}"
        item, name, attribute = rng.choice(places)
        holder, key = (item.attrs, name) if attribute else (item.parent, item.name)
        old = holder[key] if attribute else holder[key][()]
        what = f"{'attribute ' if attribute else ''}{item.name} {name}".strip()
        if rng.random() < 0.15:
            del holder[key]
            return f"{what} deleted"
        kept = dict(item.attrs) if not attribute else {}
        new = _another(old, rng)
        del holder[key]
        holder[key] = new
        for each, value in kept.items():
            holder[key].attrs[each] = value
        return f"{what}: {str(old)[:40]!r} to {str(new)[:40]!r}"


def _another(old: Any, rng: random.Random) -> Any:
    if isinstance(old, str):
        return "?" if not old or rng.random() < 0.3 else _other(old, rng)
    array = np.array(old)
    if array.dtype.kind not in "biuf" or not array.size:
        return "?"
    flat = array.reshape(-1)
    at = rng.randrange(flat.size)
    flat[at] = not flat[at] if array.dtype.kind == "b" else flat[at] + 1
    return array if array.ndim else flat[0]
