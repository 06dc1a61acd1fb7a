"""Files that are bombs, traps or other kinds than their names say, in the place of every kind of file that is read."""

import json
import os
import pickle
import random
import socket
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from campaign import damage, kinds, sandbox
from campaign.trial import SILENT, WELL, Trial

TENSORS = 2**40


def trials(work: Path, rng: random.Random, share: float = 1.0) -> Iterator[Trial]:
    """Put every bomb in the place of every kind of file, or a share of them.

    Reading all values as they were is well: some files are made again when they are not whole.
    """
    every = [(kind, name) for kind in kinds.kinds() for name in BOMBS]
    chosen = every if share >= 1 else rng.sample(every, max(1, round(len(every) * share)))
    trap = work / "executed"
    for kind, name in chosen:
        expected = damage.undamaged(work, kind.name)
        copy = damage.fresh(work, kind)
        path = kinds.place(copy, kind.file)
        trap.unlink(missing_ok=True)
        path.unlink()
        BOMBS[name](path, trap)
        done = f"{name} as {kind.name}"
        trial = damage.judged(kind, done, damage.answer(kind, copy, path, sandbox.GIB), expected)
        if trial.outcome == SILENT and name in MISSING:
            trial = replace(trial, outcome=WELL, said="as if it were not there")
        if trap.exists():
            trial = replace(trial, outcome=SILENT, said="the pickle was executed")
        yield replace(trial, part="hostile", target="files")


# No file at all: an optional one is then as if it were not there.
MISSING = (
    "nothing", "directory", "FIFO", "socket", "link to nothing", "link to itself", "link to /dev/zero",
    "link to /dev/full",
)  # fmt: skip


class Trap:
    """What a pickle of it does when it is loaded: it makes a file."""

    def __init__(self, trap: Path) -> None:
        self.trap = trap

    def __reduce__(self):
        return os.mkdir, (str(self.trap),)


def _text(text: str) -> Callable[[Path, Path], object]:
    return lambda path, trap: path.write_text(text)


def _bytes(content: bytes) -> Callable[[Path, Path], object]:
    return lambda path, trap: path.write_bytes(content)


def _npy_header(path: Path, trap: Path) -> None:
    """Shape of petabytes, and no data."""
    header = (
        f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({10**9}, 1000, 1000, 2), }}".ljust(117).encode() + b"\n"
    )
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


def _npy_dtype(path: Path, trap: Path) -> None:
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (12, 8, 8, 2), }".ljust(117) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + pickle.dumps(Trap(trap)))


def _npz_bomb(path: Path, trap: Path) -> None:
    """Sixteen gibibytes of zeros in a few mebibytes."""
    header = (
        f"{{'descr': '<f4', 'fortran_order': False, 'shape': (32, {2**13}, {2**13}, 2), }}".ljust(117).encode() + b"\n"
    )
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("fields.npy", "w", force_zip64=True) as file,
    ):
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        for _ in range(64):  # of 4,096: the rest is only declared
            file.write(bytes(2**22))


def _npz_pickle(path: Path, trap: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("fields.npy", pickle.dumps(Trap(trap)))


def _hdf5_declared(path: Path, trap: Path) -> None:
    """Fields of petabytes that were never written, in the layouts of all three kinds."""
    import h5py

    with h5py.File(path, "w") as file:
        for name in ("t0_fields/u", "t0_fields/v", "0000/data"):
            file.create_dataset(name, shape=(1, 2**20, 2**14, 2**14), dtype="<f4", chunks=(1, 1, 2**7, 2**7))
        for name in ("dimensions/time", "dimensions/x"):
            file[name] = np.arange(12.0)


def _hdf5_own(path: Path, trap: Path) -> None:
    _hdf5_declared(path, trap)
    import h5py

    with h5py.File(path, "r+") as file:
        file.attrs["rdjepa_format_version"] = 2
        file["rdjepa_record"] = np.bytes_("[" * 10_000)


def _hdf5_bomb(path: Path, trap: Path) -> None:
    """Gibibytes of zeros, compressed a thousandfold."""
    import h5py

    with h5py.File(path, "w") as file:
        for name in ("t0_fields/u", "t0_fields/v"):
            made = file.create_dataset(name, (1, 2**9, 2**10, 2**11), "<f4", chunks=(1, 1, 2**10, 2**11), compression=9)
            made[0, 0] = 0
        file["dimensions/time"], file["dimensions/x"] = np.arange(2.0**9), np.arange(2.0**10)


def _hdf5_external(path: Path, trap: Path) -> None:
    """A data set whose bytes are those of another file, and a link to one."""
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("0000/data", (12, 8, 8, 2), "<f4", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])
        file["t1"] = h5py.ExternalLink("/etc/passwd", "/")


def _hdf5_loop(path: Path, trap: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file["0000"] = h5py.SoftLink("/0000")
        file["t0_fields"] = h5py.SoftLink("/t0_fields")
        group = file.create_group("0001")
        group["again"] = file["0001"]


def _safetensors_header(path: Path, trap: Path) -> None:
    path.write_bytes((2**63).to_bytes(8, "little") + b"{}")


def _safetensors_declared(path: Path, trap: Path) -> None:
    header = {
        "__metadata__": {"rdjepa": json.dumps({"sha256": "0" * 64, "record": {"kind": "forecaster"}})},
        "a": {"dtype": "F32", "shape": [TENSORS], "data_offsets": [0, 4 * TENSORS]},
    }
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)


def _safetensors_record(path: Path, trap: Path) -> None:
    """A whole file whose record is nested deeply."""
    header = {"__metadata__": {"rdjepa": '{"sha256":"0","record":' + "[" * 100_000 + "]" * 100_000 + "}"}}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)


def _fifo(path: Path, trap: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path, trap: Path) -> None:
    made = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket may have 107 bytes
    made.bind(path.name)
    os.chdir(here)
    made.close()


def _link(target: str) -> Callable[[Path, Path], object]:
    return lambda path, trap: path.symlink_to(path.name if target == "itself" else target)


def _sparse(path: Path, trap: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


BOMBS: dict[str, Callable[[Path, Path], object]] = {
    "empty": _bytes(b""),
    "zeros": _bytes(bytes(4096)),
    "noise": _bytes(random.Random(0).randbytes(4096)),
    "deep JSON": _text("[" * 100_000 + "]" * 100_000),
    "deep object": _text('{"a":' * 50_000 + "1" + "}" * 50_000),
    "long number": _text('{"mean": ' + "9" * 10_000 + "}"),
    "same key twice": _text('{"format": 1, "format": 2}'),
    "NaN and infinity": _text('{"version": NaN, "mean": [Infinity]}'),
    "wrong encoding": _bytes('{"é": 1}'.encode("utf-16")),
    "lone surrogate": _text('{"a": "\\ud800"}'),
    "JSON null": _text("null"),
    "long list": _text("[" + "0," * 2_000_000 + "0]"),
    "npy of petabytes": _npy_header,
    "npy with a pickle": _npy_dtype,
    "npz bomb": _npz_bomb,
    "npz with a pickle": _npz_pickle,
    "pickle": lambda path, trap: path.write_bytes(pickle.dumps(Trap(trap))),
    "zip of text": lambda path, trap: zipfile.ZipFile(path, "w").writestr("a.txt", "text"),
    "HDF5 of petabytes": _hdf5_declared,
    "HDF5 of petabytes as ours": _hdf5_own,
    "HDF5 bomb": _hdf5_bomb,
    "HDF5 of another file's bytes": _hdf5_external,
    "HDF5 loop": _hdf5_loop,
    "safetensors with a huge header": _safetensors_header,
    "safetensors of terabytes": _safetensors_declared,
    "safetensors with a deep record": _safetensors_record,
    "FIFO": _fifo,
    "socket": _socket,
    "directory": lambda path, trap: path.mkdir(),
    "link to /dev/zero": _link("/dev/zero"),
    "link to /dev/full": _link("/dev/full"),
    "link to itself": _link("itself"),
    "link to /etc/passwd": _link("/etc/passwd"),
    "link to nothing": _link("/nonexistent/file"),
    "terabyte of holes": _sparse,
    "nothing": lambda path, trap: None,
}
