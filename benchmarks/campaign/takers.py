"""What takes hostile input: public functions, each with the checks that what it accepts makes sense."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from campaign import kinds


def array(value: tuple[str, tuple[int, ...], str, str]) -> Any:
    """Return the array that a drawn description stands for."""
    dtype, shape, fill, layout = value
    noise = np.random.default_rng(0).standard_normal(shape)
    filled = {
        "nan": noise * np.nan,
        "infinite": noise * np.inf,
        "constant": np.full(shape, 0.7),
        "nearly constant": 0.7 + 1e-9 * noise,
        "zero": noise * 0,
        "one nan": np.where(np.arange(noise.size).reshape(shape) == noise.size // 2, np.nan, noise),
    }.get(fill)
    if filled is None:
        filled = noise if fill == "normal" else noise * float(fill)
    with np.errstate(all="ignore"):
        if np.dtype(dtype).kind in "mMV":
            made = np.zeros(shape, dtype)
        else:
            made = filled.astype(dtype)
    if layout == "list":
        return made.tolist()
    if layout == "frame" and made.ndim:
        import pandas as pd

        return pd.DataFrame(made.reshape(len(made), -1) if made.size else np.zeros((0, 2)))
    if layout == "tensor":
        import torch

        return torch.from_numpy(np.ascontiguousarray(filled)).requires_grad_()
    changed: dict[str, Callable[[], Any]] = {
        "Fortran": lambda: np.asfortranarray(made),
        "reversed": lambda: made[::-1] if made.ndim else made,
        "strided": lambda: np.repeat(made, 2, 0)[::2] if made.ndim else made,
        "broadcast": lambda: np.broadcast_to(made[:1], made.shape) if made.ndim else made,
        "masked": lambda: np.ma.masked_array(made, mask=np.arange(made.size).reshape(made.shape) % 7 == 0),
        "memory view": lambda: made.data if made.dtype.kind not in "mMOVU" else made,
    }
    if layout == "read-only" and made.ndim:
        made.flags.writeable = False
    return changed.get(layout, lambda: made)()


def take_array(inputs: Path, value: tuple[str, tuple[str, tuple[int, ...], str, str]]) -> str | None:
    """Give an array to a public function; return why it should have been refused."""
    import rdjepa
    from rdjepa.data import readers
    from rdjepa.forecasters.persistence import persistence

    taker, description = value
    given = array(description)
    if taker == "forecast":
        made = rdjepa.load_forecaster(inputs / "forecasters" / "a.safetensors").forecast(given)
        return None if np.isfinite(made).all() else "the forecast is not finite"
    if taker == "evaluate":
        rows = rdjepa.evaluate(persistence, given, metrics=("relative_l2",))
        wrong = [row for row in rows if not np.isfinite(row.value) or row.value > 1e6]
        return f"an error of {wrong[0].value}" if wrong else None
    if taker == "adapt":
        losses = rdjepa.adapt(inputs / "pretrain" / "model", given, steps=1).losses
        if not all(abs(loss) < 1e4 for loss in losses):
            return f"a loss of {losses[-1]}"
    for trajectory in readers.load(given):
        if trajectory.fields.dtype != np.float32 or trajectory.fields.ndim != 4:
            return "fields of another type"
    if description[3] == "masked":
        return "a mask that is ignored"
    if description[3] == "tensor" or np.dtype(description[0]).kind in "fiu":  # whole numbers are read, with a note
        return None
    return "numbers of another kind"


def take_times(inputs: Path, value: list[float]) -> str | None:
    """Read an npz with these times of its frames."""
    from rdjepa.data import readers

    path = inputs / ".times.npz"
    frames = max(9, len(value))
    np.savez(path, fields=np.random.default_rng(0).standard_normal((frames, 8, 8, 2)), times=np.array(value))
    times = readers.load(path)[0].times
    if not np.isfinite(times).all():
        return "times that are not finite"
    steps = np.diff(times)
    if (steps <= 0).any():
        return "times that do not increase"
    return "frames that are not equally spaced" if steps.max() > 1.01 * steps.min() else None


def take_json(inputs: Path, value: tuple[int, Any]) -> str | None:
    """Put any JSON in the place of a file of the package, and read it."""
    every = [kind for kind in kinds.kinds() if kind.file.endswith(".json")]
    kind = every[value[0] % len(every)]
    folder = inputs / ".hostile"
    shutil.rmtree(folder, ignore_errors=True)
    path = folder / kinds.place(inputs / kind.folder, kind.file).relative_to(inputs / kind.folder)
    shutil.copytree(inputs / kind.folder, folder)
    path.write_text(json.dumps(value[1]))
    kind.read(folder, path)
    return f"{kind.name} of {json.dumps(value[1])[:60]}"


def take_name(inputs: Path, value: tuple[str, str]) -> str | None:
    """Use a text as the name of something."""
    import rdjepa
    from rdjepa import systems
    from rdjepa.data import readers, store
    from rdjepa.data.trajectory import Key
    from rdjepa.study import collect, runner
    from rdjepa.study.profiles import profile

    what, name = value
    if what == "key":
        path = store.path_of(inputs / "data", Key.parse(name))
        return None if path.resolve().is_relative_to((inputs / "data").resolve()) else f"a key that leads to {path}"
    if what == "index":
        store.path_of(inputs / "data", Key(name))
        return None
    takers: dict[str, Callable[[str], Any]] = {
        "system": systems.get,
        "forecaster": rdjepa.forecasters.build,
        "preset": rdjepa.build,
        "checkpoint": lambda each: rdjepa.load(each.replace("/", "-")),  # no two names: that asks the hub
        "study": runner.cells,
        "profile": profile,
        "split": lambda each: rdjepa.simulate("turning", split=each),
        "regime": lambda each: rdjepa.simulate("turning", regime=each),
        "data": readers.load,
        "root": collect.read_records,
        "forecaster file": rdjepa.load_forecaster,
    }
    takers[what](name)
    return f"the {what} {name!r}" if what not in ("split", "regime", "system", "study") else None


def take_argument(inputs: Path, value: tuple[str, int, Any]) -> str | None:
    """Call a public function with one argument replaced."""
    import rdjepa

    function, place, hostile = value
    data = inputs / "data" / "turning" / "data" / "train" / "id-00000.hdf5"
    model, pretrained = inputs / "forecasters" / "a.safetensors", str(inputs / "pretrain" / "model")
    calls: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "simulate": (rdjepa.simulate, {"name": "turning", "seed": 0, "regime": "id", "split": "pool"}),
        "load": (rdjepa.load, {"source": pretrained}),
        "load_forecaster": (rdjepa.load_forecaster, {"path": model}),
        "build": (rdjepa.build, {"preset": "tiny", "seed": 0}),
        "forecasters.build": (rdjepa.forecasters.build, {"name": "fno", "preset": "nano", "seed": 0}),
        "adapt": (
            rdjepa.adapt,
            {"model": pretrained, "trajectories": data, "steps": 1, "seed": 0, "config": None, "normalizer": None}
            | {"base": "none", "resample": False, "device": "cpu"},
        ),
        "evaluate": (
            rdjepa.evaluate,
            {"forecaster": rdjepa.load_forecaster(model), "trajectories": data, "metrics": ("relative_l2",)},
        ),
        "Normalizer": (rdjepa.Normalizer, {"mean": (0.0, 0.0), "std": (1.0, 1.0), "source": "pool"}),
        "Normalizer.fit": (rdjepa.Normalizer.fit, {"arrays": [np.ones((3, 4, 4, 2))], "source": "pool"}),
    }
    call, arguments = calls[function]
    name = list(arguments)[place % len(arguments)]
    if name == "steps" and isinstance(hostile, int) and hostile > 1:
        return None  # who asks for many updates gets them
    call(**arguments | {name: hostile})
    return None


TAKING: dict[str, Callable[[Path, Any], str | None]] = {
    "arrays": take_array, "times": take_times, "JSON": take_json, "names": take_name, "arguments": take_argument,
}  # fmt: skip
