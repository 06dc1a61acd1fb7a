"""The public functions for a first look: inspect, and from a source of trajectories to a forecast with its interval."""

import copy
import dataclasses
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rdjepa.adaptation import intervals
from rdjepa.adaptation.adapt import fitted
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.adaptation.intervals import Interval
from rdjepa.api.adapting import adapt
from rdjepa.api.start import grid_of, loaded
from rdjepa.api.support import AUTO, domain_of
from rdjepa.checks import require_component
from rdjepa.data import readers, survey
from rdjepa.data.inspection import Inspection
from rdjepa.data.readers import Reading
from rdjepa.data.trajectory import Trajectory
from rdjepa.data.windows import FORECASTING, largest_stride
from rdjepa.errors import Note, warn
from rdjepa.evaluation.aggregate import per_horizon
from rdjepa.evaluation.evaluate import Forecast, evaluate, norms_of, warn_of_vanishing
from rdjepa.forecasters.autoregression import Autoregression
from rdjepa.forecasters.base import CONTEXT, ForecastModel
from rdjepa.forecasters.domain import Domain
from rdjepa.forecasters.equation import Equation
from rdjepa.forecasters.linear import Linear
from rdjepa.forecasters.persistence import RULES
from rdjepa.forecasters.rd_jepa import ZeroShot
from rdjepa.forecasters.simple import Simple
from rdjepa.forecasters.tiled import Tiled
from rdjepa.io import checkpoint
from rdjepa.models.device import in_float32
from rdjepa.models.rdjepa import RDJEPA
from rdjepa.progress import Progress

if TYPE_CHECKING:
    from rdjepa.viz.inline import Drawing

LOOK_UPDATES, LOOK_SHARE, LOOK_LEVEL = 100, 0.4, 0.9
LOOK_TILED = 2  # times the model's points per side, 9 squares of a periodic domain: more would take too long


def inspect(
    source: Any, *, model: RDJEPA | ForecastModel | str | Path = checkpoint.DEFAULT, reading: Reading | None = None
) -> Inspection:
    """Look at a source of trajectories: what it holds, how it would be read, and what `adapt` would do with it.

    Large files are not read whole; the result says how many frames were looked at. `print` shows all of it.

    Args:
        source: as for `adapt`.
        model: as for `adapt`; its grid counts.
        reading: as for `adapt`.

    Raises:
        DataError: the source is unknown or damaged.
        CheckpointError: a missing or damaged checkpoint.
        ArgumentError: no model.
    """
    return survey.inspect(source, reading, grid_of(loaded(model)))


@dataclass(frozen=True)
class FirstLook:
    """What a short adaptation makes of a source.

    Attributes:
        forecaster: adapted to a part of the trajectories and calibrated on the rest.
        errors: "rd-jepa" (or the name of the model), "rd-jepa-alone", its network, where simple forecasts stand beside
            that, "rd-jepa-zero-shot" where the model has a pretrained decoder,
            "linear" (fitted to what was adapted to), "autoregression" and "equation" (of each context), "persistence"
            and "extrapolation" -> horizon -> relative L2 error on that rest, which has decided whether simple forecasts
            stand beside the first.
        level: of the intervals, at most what the calibration can give.
        context: (4, H, W, C), the last frames of the last trajectory.
        times: (5,), of the frames that follow it.
        future: the forecast of these, (5, H, W, C), with its bounds.
        reference: (5, H, W, C), the last frames of that trajectory.
        before: the forecast of these from the four before them, with its bounds.
        spacing: distance between neighboring rows, and between neighboring columns, of that trajectory.
    """

    forecaster: Forecaster
    errors: Mapping[str, Mapping[int, float]]
    level: float
    context: np.ndarray
    times: np.ndarray
    future: Interval
    reference: np.ndarray
    before: Interval
    spacing: tuple[float, float] = (1.0, 1.0)

    def draw(self, component: int = 0) -> "Drawing":
        """Draw the last frames, their forecast, its error and half width, and the forecast beyond the end.

        Raises:
            ArgumentError: no component of this number.
        """
        from rdjepa.viz import inline  # matplotlib

        require_component(component, self.reference.shape[-1])
        half = (self.before.upper - self.before.lower) / 2
        fields = (self.reference, self.before.forecast, half, self.future.forecast)
        reference, made, width, future = (each[..., component] for each in fields)
        names = self.forecaster.record.get("names", ())
        name = str(names[component]) if component < len(names) else f"component {component}"
        return inline.look(reference, made, width, future, self.level, self.spacing, name)


@in_float32
def first_look(
    source: Any,
    *,
    model: RDJEPA | ForecastModel | str | Path = checkpoint.DEFAULT,
    steps: int = LOOK_UPDATES,
    level: float = LOOK_LEVEL,
    hold_out: float = LOOK_SHARE,
    base: str = AUTO,
    seed: int | None = None,
    reading: Reading | None = None,
    device: str | torch.device = "auto",
    progress: Progress | None = None,
) -> FirstLook:
    """Adapt briefly to a part of the trajectories, measure on the rest, and forecast beyond their end.

    Square fields of up to twice the points per side that the model takes are tiled, any others brought to its grid.
    Frames are taken at the stride that `inspect` suggests, or a smaller one that leaves enough of them. Of several
    trajectories the last ones are held out, of a single one its last frames; intervals are calibrated on them too, so
    what they cover has to be measured on others.

    Args:
        source: as `trajectories` of `adapt`.
        model: as for `adapt`.
        steps: updates.
        level: share of the points that the interval is to hold; lowered to what the calibration can give.
        hold_out: as for `adapt`.
        base: as for `adapt`.
        seed: as for `adapt`.
        reading: as for `adapt`.
        device: as for `adapt`.
        progress: as for `adapt`.

    Raises:
        ArgumentError, DataError, CheckpointError, DivergenceError: as for `adapt`.
    """
    intervals.check_level(level)
    intervals.check_share(hold_out)
    model = loaded(model)
    found = survey.inspect(source, reading or Reading())
    grid = grid_of(model)
    tile = _tiles(found.grids, grid)
    forecaster = adapt(
        model,
        source,
        steps=None if isinstance(model, Simple) else steps,  # which makes no updates
        seed=seed,
        resample=not tile and grid is not None,
        tile=tile,
        hold_out=hold_out,
        base=base,
        reading=dataclasses.replace(reading or Reading(), stride=_stride(found, hold_out, reading)),
        device=device,
        progress=progress,
    )
    assert forecaster.calibration is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said by `adapt`
        given = readers.load(source, grid=forecaster.model.grid, reading=forecaster.reading(reading))
    domain = domain_of(given, reading.boundary if reading else None)
    learned, kept = intervals.hold_out([trajectory.fields for trajectory in given], hold_out)
    # trajectories without times of their own
    rest = [Trajectory(fields, np.arange(len(fields), dtype=np.float64), timed=False) for fields in kept]
    warn_of_vanishing(rest, largest=max(norms_of(fields).max() for fields in learned))
    possible = min(level, math.floor(100 * forecaster.calibration.highest) / 100)
    if possible < level:
        warn(f"intervals are of {possible:.0%}, since what is held out is too little for {level:g}", Note)
    last = given[-1]
    start = len(last.fields) - FORECASTING.length
    interval, newest = last.times[1] - last.times[0], last.times[-1]
    return FirstLook(
        forecaster=forecaster,
        errors={
            name: per_horizon(evaluate(forecast, rest, metrics=("relative_l2",)), "relative_l2")
            for name, forecast in _rivals(forecaster, model, learned, domain).items()
        },
        level=possible,
        context=last.fields[-CONTEXT:],
        times=newest + interval * np.arange(1, FORECASTING.max_offset + 1),
        future=forecaster.interval(last.fields[-CONTEXT:], possible),
        reference=last.fields[start + CONTEXT :],
        before=forecaster.interval(last.fields[start : start + CONTEXT], possible),
        spacing=last.spacing,
    )


def _rivals(
    forecaster: Forecaster, start: RDJEPA | ForecastModel, learned: Sequence[np.ndarray], domain: Domain
) -> dict[str, Forecast]:
    """Return the forecaster, its parts and their rivals, of which the linear one is fitted to the same fields."""
    normalizer, model, device = forecaster.normalizer, forecaster.model, forecaster.device

    def fit(kind: type[Simple]) -> Forecast:
        rival = fitted(kind(model.components), learned, normalizer, device, domain)
        return Forecaster(rival, normalizer).forecast

    rivals: dict[str, Forecast] = {name: part.forecast for name, part in forecaster.parts().items()}
    kinds = (Linear, Autoregression, Equation)
    simple = {kind.name: rivals.pop(kind.name) if kind.name in rivals else fit(kind) for kind in kinds}
    if isinstance(start, RDJEPA) and "decoder" in start.pretrained:
        unadapted: ForecastModel = ZeroShot(copy.deepcopy(start))
        if model.grid and model.grid != unadapted.grid:
            unadapted = Tiled(unadapted, model.grid, domain.walls)
        rivals[ZeroShot.name] = Forecaster(unadapted.to(device), normalizer).forecast
    return rivals | simple | RULES


def _tiles(grids: Sequence[tuple[int, int]], side: int | None) -> bool:
    """Return whether fields are tiled: all of one square grid that is larger than the model's, and not by far."""
    if side is None or len(grids) != 1:
        return False
    height, width = grids[0]
    return height == width and side < height <= LOOK_TILED * side


def _stride(found: Inspection, share: float, reading: Reading | None) -> int:
    """Return the stride of a reading, or else the suggested one; of a single trajectory one that leaves two windows."""
    if reading and reading.stride:
        return reading.stride
    if found.trajectories > 1:
        return found.stride
    needed = math.ceil(FORECASTING.length / min(share, 1 - share))
    return min(found.stride, largest_stride(found.frames[0], needed))
