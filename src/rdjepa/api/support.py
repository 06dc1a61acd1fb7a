"""What a forecaster is adapted to and calibrated on: trajectories as they are given, read and checked."""

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rdjepa.adaptation import intervals
from rdjepa.adaptation.differences import grid_to, say_other_values
from rdjepa.checks import of_class
from rdjepa.data import readers, survey
from rdjepa.data.borders import PERIODIC, UNKNOWN, WALLS
from rdjepa.data.fields import measured
from rdjepa.data.readers import Reading
from rdjepa.data.regrid import has_walls
from rdjepa.data.soundness import MIXED, require_change, validate, why_repeated
from rdjepa.data.statistics import Moments, fold
from rdjepa.data.trajectory import OTHER_RATIO, SAME_RATIO, Trajectory
from rdjepa.data.well import checksum
from rdjepa.errors import DataError, Note, warn
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.domain import Domain
from rdjepa.forecasters.tiled import Tiled, squares
from rdjepa.models.device import device_of

AUTO = "auto"
FAR, OTHER_STD = 3, 10  # a mean, and a ratio to 1, that standardized trajectories of whatever systems do not reach


@dataclass(frozen=True)
class Support:
    """Trajectories to adapt to, and others to calibrate on.

    Attributes:
        fields: (T, H, W, C) of each that is adapted to.
        others: of each that is calibrated on.
        keys: of the first.
        stride: that was taken.
        components: that were chosen, by position or name; None where the data have no others.
        names: of the components, empty where the data have none.
        grid: points per side of the fields; None for a forecaster of any grid.
        tiled: whether overlapping squares of them are learned.
        boundary: how the domain was said to end; None where nobody did.
        domain: of the fields.
        checksums: of all frames whose forecasts would not be of something new.
        interval: median time between frames as they are taken; None where no trajectory has times of its own.
        held_out: how many trajectories, or frames of the only one, were kept from adaptation.
    """

    fields: list[np.ndarray]
    others: list[np.ndarray]
    keys: list[str]
    stride: int
    components: list[int | str] | None
    names: tuple[str, ...]
    grid: int | None
    tiled: bool
    boundary: str | None
    domain: Domain
    checksums: list[str]
    interval: float | None
    held_out: dict[str, int]

    def pieces(self, side: int | None) -> list[list[np.ndarray]]:
        """Return what is learned of each: the fields, or where they are tiled squares of so many points per side."""
        if not self.tiled:
            return [[fields] for fields in self.fields]
        return [list(squares(fields, side, self.domain.walls)) for fields in self.fields]

    def whole(self, network: ForecastModel) -> ForecastModel:
        """Return the forecaster of the fields: the network, or where they are tiled what puts its squares together."""
        if not self.tiled or not self.grid:
            return network
        return Tiled(network, self.grid, self.domain.walls).to(device_of(network))

    def record(self) -> dict[str, Any]:
        """Return what a forecaster keeps of it; "range" is the lowest and the highest value of each component."""
        return {
            "support": self.keys,
            "checksums": self.checksums,
            "frames": [len(fields) for fields in self.fields],
            "stride": self.stride,
            **({"components": self.components} if self.components else {}),
            **({"names": list(self.names)} if self.names else {}),
            **({"boundary": self.boundary} if self.boundary else {}),
            **({"interval": self.interval} if self.interval else {}),
            "measured": measured(self.fields[0]),
            "range": _range_of(self.fields),
            "held_out": self.held_out,
        }


def read_support(
    trajectories: Any,
    side: int | None,
    *,
    resample: bool = False,
    tile: bool = False,
    reading: Reading | None = None,
    stride: int | str = 1,
    calibrate: Any = None,
    hold_out: float | None = None,
) -> Support:
    """Read trajectories; `side` is the number of points per side that the forecaster takes, the rest as for `adapt`.

    Raises:
        ArgumentError, DataError: as for `adapt`.
    """
    given, reading = read_at_stride(trajectories, side, resample, reading, stride)
    grid = tiled_grid(given) if tile else side
    known = checked_fields(given, grid, tileable=not tile)
    support = undivided = list(known.values())
    others: list[np.ndarray] = []
    beside: list[Trajectory] = []
    if hold_out is not None:
        support, others = intervals.hold_out(undivided, hold_out)
    kept = len(undivided) - len(support)
    left = "all frames" + ("" if hold_out is None else f" that are left where a share of {hold_out:g} is held out")
    if all((fields[1:] == fields[:-1]).all() for fields in support):
        raise DataError(f"expected frames that change, got the same in {left}; take a stretch in which they do")
    checksums = list(known)[: len(support)]
    if hold_out is not None and not kept:  # whoever forecasts all of it forecasts what was adapted to
        require_change(support[0], left)
        checksums = [checksum(support[0]), *known]
    if calibrate is not None:
        alike = dataclasses.replace(reading, names=given[0].names, index=None, stride=reading.step)
        beside = readers.load(calibrate, grid=side if resample else None, reading=alike)
        unseen = checked_fields(beside, grid)
        _refuse_seen(unseen, checksums)
        others = list(unseen.values())
        _refuse_mixtures([*support, *others])
        say_other_values(others, _range_of(support), "in what is adapted to")
    say_other_values(support[1:], _range_of(support[:1]), "in the first trajectory")
    return Support(
        fields=support,
        others=others,
        keys=[str(trajectory.key or "without a key") for trajectory in given[: len(support)]],
        stride=reading.step,
        components=list(reading.components) if reading.components else None,
        names=given[0].names,
        grid=grid,
        tiled=tile,
        boundary=reading.boundary,
        domain=said_domain_of(given, reading.boundary),
        checksums=checksums,
        interval=_interval_of_all([*given, *beside]),
        held_out={} if hold_out is None else {"trajectories": kept} if kept else {"frames": len(others[0])},
    )


def domain_of(trajectories: Sequence[Trajectory], boundary: str | None = None) -> Domain:
    """Return the domain of some trajectories, at least one: walls where any has them, the spacing of the first.

    Other spacings are noted.

    Args:
        trajectories: of one system.
        boundary: how they end, where somebody said so.
    """
    (rows, columns), *others = (trajectory.spacing for trajectory in trajectories)
    if any(abs(y / x * columns / rows - 1) > OTHER_RATIO for y, x in others):
        warn("cells have several shapes, by trajectory; equations go by that of the first", Note)
    least = min(rows, columns)
    spacing = (1.0, 1.0) if max(rows, columns) <= (1 + SAME_RATIO) * least else (rows / least, columns / least)
    return Domain(any(has_walls(trajectory, boundary) for trajectory in trajectories), spacing)


def said_domain_of(trajectories: Sequence[Trajectory], said: str | None) -> Domain:
    """Return what `domain_of` does, and say so where walls are guessed or some trajectory has none."""
    walls = sum(has_walls(trajectory, said) for trajectory in trajectories)
    if 0 < walls < len(trajectories):
        warn(
            f"{walls} of {len(trajectories)} trajectories end at walls and the others wrap around, by what they say or "
            "look like; all are taken to have walls, and --boundary (boundary=) says one for all",
            Note,
        )
    elif walls and said is None and all(each.boundary == UNKNOWN for each in trajectories):
        warn(
            "opposite borders of the fields do not fit together, so the domain is taken to end at walls, which an "
            "excerpt of a larger one does not; --boundary "
            "periodic (boundary=) says otherwise",
            Note,
        )
    return domain_of(trajectories, WALLS if walls else PERIODIC)


def _interval_of_all(trajectories: Sequence[Trajectory]) -> float | None:
    """Return the median time between frames, and say so where it differs; None where none has times of its own."""
    found = sorted(filter(None, map(readers.interval_of, trajectories)))
    if not found:
        return None
    if found[-1] > (1 + readers.OTHER_INTERVAL) * found[0]:
        warn(
            f"frames lie {found[0]:g} to {found[-1]:g} apart in time, by trajectory; a forecaster counts frames, so "
            "give it those of one interval",
            Note,
        )
    return float(np.median(found))


def _range_of(several: Sequence[np.ndarray]) -> list[list[float]]:
    """Return the lowest and the highest value of each component of fields (T, H, W, C)."""
    lowest = np.min([fields.min(axis=(0, 1, 2)) for fields in several], axis=0)
    highest = np.max([fields.max(axis=(0, 1, 2)) for fields in several], axis=0)
    return [lowest.tolist(), highest.tolist()]


def _refuse_mixtures(fields: Sequence[np.ndarray]) -> None:
    """Refuse trajectories of one measured component among those of two."""
    if len(set(map(measured, fields))) > 1:
        raise DataError(MIXED)


def _refuse_seen(others: Collection[str], checksums: Collection[str]) -> None:
    """Refuse to calibrate on what is adapted to: its errors say nothing about new trajectories."""
    known = len(set(others).intersection(checksums))
    if known:
        raise DataError(
            f"expected other trajectories to calibrate on than to adapt to, got {known} of {len(others)} that are "
            "both; keep some back, in a file of their own, or hold out a share, as --hold-out 0.4 (hold_out=0.4)"
        )


def read_at_stride(
    source: Any, grid: int | None, resample: bool, reading: Reading | None, stride: int | str
) -> tuple[list[Trajectory], Reading]:
    """Read trajectories at a stride; return them and how. Say so where none was asked for and another is suggested."""
    reading = survey.at_stride(source, of_class(reading, Reading | None, "reading") or Reading(), stride)
    given = readers.load(source, grid=grid_to(grid, resample), reading=reading)
    found = survey.inspect(given) if stride == 1 and reading.stride is None else None
    if found and found.stride > 1:
        warn(f"frame stride {found.pace}", Note)
    return given, reading


def tiled_grid(trajectories: Sequence[Trajectory]) -> int:
    """Return the points per side of fields that are to be tiled.

    Raises:
        DataError: fields on several grids, or not square.
    """
    shapes = {trajectory.fields.shape[1:3] for trajectory in trajectories}
    height, width = next(iter(shapes))
    if len(shapes) > 1 or height != width:
        listed = ", ".join(f"{h} x {w}" for h, w in sorted(shapes))
        raise DataError(f"expected square fields of one grid to tile, got {listed}; crop them, or take --resample")
    return height


def checked_fields(
    trajectories: Sequence[Trajectory], grid: int | None, tileable: bool = False
) -> dict[str, np.ndarray]:
    """Return checksum -> fields (T, H, W, 2) of the support trajectories after checking shape, values and grid.

    Args:
        trajectories: as they were read.
        grid: points per side that they have to have; any when None.
        tileable: whether who gave them may ask for tiles of larger ones.

    Raises:
        DataError: no trajectory, one that is given twice, invalid fields, another grid than the model's, several grids,
            or some of one measured component and some of two.
    """
    support = [validate(trajectory.fields) for trajectory in trajectories]
    if not support:
        raise DataError("expected at least one trajectory, got none; give some")
    for fields in support:
        if grid is not None and fields.shape[1:3] != (grid, grid):
            tiles = ", or keep the points of larger squares with --tile (tile=True)" if tileable else ""
            raise DataError(
                f"expected fields on a {grid} x {grid} grid, got {fields.shape[1]} x {fields.shape[2]}; "
                f"bring them to it with --resample (resample=True){tiles}"
            )
    if len(shapes := {fields.shape[1:3] for fields in support}) > 1:
        listed = ", ".join(f"{height} x {width}" for height, width in sorted(shapes))
        raise DataError(f"expected fields on one grid, got {listed}; give those of one grid, or resample them yourself")
    found = {checksum(fields): fields for fields in support}
    if len(found) < len(support):  # one that is given twice would be held out and not
        raise DataError(why_repeated(len(support) - len(found), len(support)))
    _refuse_mixtures(support)
    return found


def rehearsed_fields(given: Sequence[np.ndarray], grid: tuple[int, int]) -> list[np.ndarray]:
    """Return the standardized trajectories of other systems after checking shape, values and grid.

    Means and standard deviations of all that standardized ones hardly have are warned of.
    """
    found = [validate(fields) for fields in given]
    for fields in found:
        if fields.shape[1:3] != grid:
            raise DataError(
                f"expected trajectories to rehearse on a {grid[0]} x {grid[1]} grid, got {fields.shape[1]} x "
                f"{fields.shape[2]}; take those of a model of this grid"
            )
    if found:
        known = fold(map(Moments.of, found))
        if np.abs(known.mean).max() > FAR or not 1 / OTHER_STD < known.std.min() <= known.std.max() < OTHER_STD:
            means, stds = (", ".join(f"{each:.3g}" for each in part) for part in (known.mean, known.std))
            warn(
                f"expected standardized trajectories to rehearse, got means of {means} and standard deviations of "
                f"{stds}; give those that rdjepa.rehearsal returns"
            )
    return found
