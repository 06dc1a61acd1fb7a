"""The card and the contact sheet of every system in a dataset: what is counted, measured and drawn for them."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from rdjepa import systems
from rdjepa.data import manifest, store
from rdjepa.data.simulate import simulate
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import ArgumentError, Note, warn
from rdjepa.evaluation.aggregate import per_horizon
from rdjepa.evaluation.evaluate import evaluate
from rdjepa.forecasters.persistence import persistence
from rdjepa.io import sealed
from rdjepa.io.atomic import write_bytes
from rdjepa.pde.system import System
from rdjepa.progress import Progress
from rdjepa.study import data_card
from rdjepa.study.dataset import SUPPORT, Support
from rdjepa.viz import figures

SHEET_ROWS = 6
PERSISTENCE_SAMPLE = 50
MOSAIC = 400  # trajectories on the contact sheet of a family


def write_cards(data: Path | str, names: Sequence[str] | None = None, progress: Progress | None = None) -> list[Path]:
    """Write `card.md` and `contact.png` of every system in a dataset; return the cards' paths.

    Args:
        data: dataset directory with a manifest.
        names: systems, or .py files that define one; those of the package that are in the data by default.
        progress: called with the number of systems done, their total and the name of the latest.
    """
    entries = manifest.read(data)
    present = list(dict.fromkeys(key.system for key in entries))
    known = systems.every_name()
    if not names and (others := [name for name in present if name not in known]):
        warn(
            f"no card of {', '.join(others)}, whose equation is unknown here; if a file defines it, name that with "
            "--systems FILE.py",
            Note,
        )
    chosen = [systems.get(name) for name in (names or [name for name in present if name in known])]
    paths = []
    for number, system in enumerate(chosen):
        own = {key: entry for key, entry in entries.items() if key.system == system.name}
        if not own:
            raise ArgumentError(f"expected data of {system.name} in {data}, got none; in it: {', '.join(present)}")
        folder = Path(data) / system.name
        if any(entry.kind for entry in own.values()):
            figures.mosaic(_tiles(data, own), folder / "contact.png", title=f"{system.title}: u at three saved times")
        else:
            figures.contact_sheet(
                {_label(t): t.fields for t in _shown(data, list(own))},
                folder / "contact.png",
                title=f"{system.title}: first trajectories of every split and regime",
            )
        text = data_card.data_card(system, summarize(data, system, own), "contact.png")
        write_bytes(folder / "card.md", text.encode())
        paths.append(folder / "card.md")
        if progress:
            progress(number + 1, len(chosen), system.name)
    return paths


def summarize(data: Path | str, system: System, entries: Mapping[Key, manifest.Entry]) -> data_card.Summary:
    """Count and measure the stored trajectories of one system."""
    parts: dict[str, list[Key]] = {}
    for key in entries:
        parts.setdefault(f"{key.split}/{key.regime}", []).append(key)
    errors, sampled = {}, {}
    for part, keys in parts.items():
        some = store.Stored(tuple(store.path_of(data, key) for key in keys[:PERSISTENCE_SAMPLE]))
        rows = evaluate(persistence, some, metrics=("relative_l2",))
        errors[part], sampled[part] = list(per_horizon(rows, "relative_l2").values()), len(some)
    first = next(iter(entries))
    support = Path(data) / system.name / SUPPORT
    orders = sealed.read(support, Support, "build the data again") if support.is_file() else Support(0, {}, ())
    return data_card.Summary(
        counts={part: len(keys) for part, keys in parts.items()},
        draws={part: sum(1 + len(entries[key].rejected) for key in keys) for part, keys in parts.items()},
        reasons=manifest.reasons(entries.values()),
        families=dict(Counter(entry.initial_condition for entry in entries.values())),
        persistence=errors,
        sampled=sampled,
        seconds=_seconds(system, first),
        bytes=sum(store.path_of(data, key).stat().st_size for key in entries),
        support={int(seed): order for seed, order in orders.order.items()},
        coinciding=orders.coinciding_at_1,
        software=store.get_record(data, first).software,
        kinds=manifest.acceptance(entries.values()),
        closest=manifest.closest(entries.values()),
    )


def _seconds(system: System, key: Key) -> float:
    """Return the processor seconds of one draw without compilation; NaN for a system from a user's file."""
    if system.name not in systems.every_name():
        return float("nan")
    simulate(system.name, key.index, key.regime, key.split)  # compiles
    started = time.process_time()
    trajectory = simulate(system.name, key.index, key.regime, key.split)
    return (time.process_time() - started) / (trajectory.attempt + 1)


def _shown(data: Path | str, keys: Sequence[Key]) -> list[Trajectory]:
    """Read the first few trajectories of every split and regime, about `SHEET_ROWS` in all."""
    groups: dict[tuple[str, str], list[Key]] = {}
    for key in keys:
        groups.setdefault((key.split, key.regime), []).append(key)
    each = max(1, SHEET_ROWS // len(groups))
    return [store.get(data, key) for group in groups.values() for key in group[:each]]


def _tiles(data: Path | str, entries: Mapping[Key, manifest.Entry]) -> dict[str, np.ndarray]:
    """Read u at three frames of the first trajectories of every kind: kind -> (n, 3, H, W)."""
    kinds = list(manifest.acceptance(entries.values()))
    each = max(1, MOSAIC // len(kinds))
    chosen = {kind: [key for key, entry in entries.items() if entry.kind == kind][:each] for kind in kinds}
    return {kind: np.stack([_three_frames(store.path_of(data, key)) for key in keys]) for kind, keys in chosen.items()}


def _three_frames(path: Path) -> np.ndarray:
    last = store.read_record(path).shape[0] - 1
    return np.concatenate([store.read_window(path, frame, frame + 1)[..., 0] for frame in (0, last // 2, last)])


def _label(trajectory: Trajectory) -> str:
    key = trajectory.key
    assert key is not None
    return f"{key.split}/{key.regime}\n{key.index}: {trajectory.initial_condition}"
