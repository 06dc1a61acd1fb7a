"""Windows of trajectories and their forecasts, chosen and thinned so that a page of them stays small."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rdjepa.data.fields import measured
from rdjepa.data.soundness import MIXED
from rdjepa.data.trajectory import Trajectory
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import DataError
from rdjepa.evaluation.evaluate import Forecast
from rdjepa.evaluation.metrics import relative_l2
from rdjepa.evaluation.spectra import radial_energy
from rdjepa.viz.page import Clip, page

TRAJECTORIES, WINDOWS, FRAMES, POINTS = 4, 6, 40, 64**2  # at most: in all, of each trajectory, and of each frame


def view(
    trajectories: Sequence[Trajectory],
    path: str | Path,
    forecast: Forecast | None = None,
    *,
    title: str,
    losses: Sequence[float] = (),
) -> Path:
    """Write a page that plays trajectories, beside their forecasts where there is a forecaster.

    At most four trajectories are shown, evenly chosen; of each six windows, or forty frames without a forecaster; on no
    more points than 64 x 64 have, see `thinned`. Errors and spectra are those of the fields before thinning. Components
    are called u and v unless all have the same names; cells are shaped as those of the first.

    Args:
        trajectories: all on one grid; of one window at least with a forecaster.
        path: HTML file.
        forecast: context (B, 4, H, W, C) to forecast (B, 5, H, W, C), in physical units.
        title: of the page.
        losses: training loss of every update.

    Raises:
        DataError: no trajectory, one that is too short, or two of different grids or numbers of measured components.
        ArgumentError: the package Bokeh is missing.
        OutputError: the file cannot be written.
    """
    if not trajectories:
        raise DataError("expected at least one trajectory to show, got none; give some")
    grids = {trajectory.fields.shape[1:3] for trajectory in trajectories}
    if len(grids) > 1:
        listed = ", ".join(f"{height} x {width}" for height, width in sorted(grids))
        raise DataError(f"expected trajectories on one grid, got {listed}; show one grid")
    if len({measured(trajectory.fields) for trajectory in trajectories}) > 1:
        raise DataError(MIXED)
    chosen = [int(i) for i in np.unique(np.linspace(0, len(trajectories) - 1, TRAJECTORIES).astype(int))]
    shortest = min(FRAMES, *(len(trajectories[i].fields) for i in chosen))
    clips: list[Clip] = []
    for i in chosen:
        label = f"{i + 1}: {trajectories[i].key or 'trajectory'}"
        if forecast is None:
            clips.append(_frames(label, trajectories[i], shortest))
        else:
            clips += _windows(label, trajectories[i], forecast)
    height, width = trajectories[0].fields.shape[1:3]
    rows, columns, k = _blocks(height, width)
    facts = f"{len(chosen)} of {len(trajectories)} trajectories on {height} x {width} points"
    if k > 1:
        whole = (height, width) == (rows * k, columns * k)
        part = "" if whole else f" the first {rows * k} rows and {columns * k} columns"
        facts += f",{part} shown on {rows} x {columns}"
    if forecast is not None:
        facts += f"; {len(clips)} windows of four given frames and five forecast ones"
    names = {trajectories[i].names for i in chosen}
    return page(
        clips,
        path,
        title=title,
        facts=f"{facts}.",
        losses=losses,
        names=names.pop() if len(names) == 1 else (),
        spacing=trajectories[0].spacing,
    )


def _frames(label: str, trajectory: Trajectory, count: int) -> Clip:
    fields = trajectory.fields[..., : measured(trajectory.fields)]
    frames = np.linspace(0, len(fields) - 1, count).astype(int)
    return Clip(label, frames, thinned(fields[frames]))


def _windows(label: str, trajectory: Trajectory, forecast: Forecast) -> list[Clip]:
    """Return the forecasts of a few windows, evenly chosen from the first to the last; of measured components alone."""
    fields, spacing, own = trajectory.fields, trajectory.spacing, measured(trajectory.fields)
    starts = np.unique(FORECASTING.spread(len(fields), WINDOWS))
    clips = []
    for start in starts.tolist():
        context, future = FORECASTING.cut(fields, start)
        made = np.asarray(forecast(context[None]))[0][..., :own]
        context, future = context[..., :own], future[..., :own]
        still = np.broadcast_to(context[-1], future.shape)
        clips.append(
            Clip(
                label,
                np.arange(start, start + FORECASTING.length),
                thinned(np.concatenate([context, future])),
                thinned(made),
                energy=radial_energy(future, spacing),
                wrong=radial_energy(made - future, spacing),
                l2=relative_l2(made, future),
                still=relative_l2(still, future),
            )
        )
    return clips


def thinned(fields: np.ndarray) -> np.ndarray:
    """Return fields (..., H, W, C) as means of square blocks (..., n, m, C), where there are more than `POINTS` points.

    Last rows and columns that fill no block are left out.
    """
    rows, columns, k = _blocks(*fields.shape[-3:-1])
    whole = fields[..., : rows * k, : columns * k, :]
    blocks = whole.reshape(*fields.shape[:-3], rows, k, columns, k, fields.shape[-1])
    return fields if k == 1 else blocks.mean(axis=(-4, -2), dtype=np.float64).astype(np.float32)


def _blocks(height: int, width: int) -> tuple[int, int, int]:
    """Return how many rows and columns of blocks are shown, and how many points per side a block has."""
    k = 1
    while (height // k) * (width // k) > POINTS and k < min(height, width):
        k += 1
    return height // k, width // k, k
