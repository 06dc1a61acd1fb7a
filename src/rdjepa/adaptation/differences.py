"""What is said of data that a forecaster takes although they differ from those of its adaptation."""

from collections.abc import Sequence

import numpy as np

from rdjepa.data.fields import measured
from rdjepa.data.readers import OTHER_INTERVAL, interval_of
from rdjepa.data.readers.loading import SPREAD
from rdjepa.data.regrid import seems_walled
from rdjepa.data.trajectory import OTHER_RATIO, Trajectory
from rdjepa.errors import Note, warn
from rdjepa.forecasters.domain import PLAIN, Domain

OTHER_WIDTH = 30  # times as wide or narrow: a range of values that may be of another unit


def grid_to(grid: int | None, resample: bool) -> int | None:
    """Return the grid that fields are brought to, None for their own; say so where a forecaster takes any."""
    if resample and grid is None:
        warn("this forecaster takes fields of any grid, so none are resampled", Note)
    return grid if resample else None


def say_other_interval(trajectories: Sequence[Trajectory], usual: float) -> None:
    """Note frames that lie further apart in time, or closer, than the `usual` interval."""
    intervals = filter(None, map(interval_of, trajectories))
    other = next((each for each in intervals if abs(each / usual - 1) > OTHER_INTERVAL), None)
    if other is not None:
        warn(
            f"frames lie {other:g} apart in time, {usual:g} in adaptation; a forecaster counts frames, so give it "
            "those of the same interval, or say --interval (interval=) if only the unit is another",
            Note,
        )


def say_other_values(several: Sequence[np.ndarray], usual: Sequence[Sequence[float]], where: str) -> None:
    """Note a component whose values are far from usual ones, as in another unit.

    Args:
        several: fields (T, H, W, C).
        usual: lowest and highest value of each component.
        where: usual, in words.
    """
    for fields in several:
        lowest, highest = fields.min((0, 1, 2)).tolist(), fields.max((0, 1, 2)).tolist()
        for component, (low, high, least, most) in enumerate(zip(lowest, highest, *usual, strict=True)):
            width = most - least
            if width <= 0 or component >= measured(fields):
                continue
            outside = low > most + width or high < least - width
            if outside or not width / OTHER_WIDTH <= high - low <= width * OTHER_WIDTH:
                warn(
                    f"component {component} lies between {low:.3g} and {high:.3g}, and between {least:.3g} and "
                    f"{most:.3g} {where}; if its unit is another, convert it",
                    Note,
                )
                return


def say_other_domain(trajectories: Sequence[Trajectory], domain: Domain) -> None:
    """Note domains that end otherwise, as they say or look in a few frames, or have cells of another shape."""
    ways = {True: "end at walls", False: "are periodic"}
    few = [np.linspace(0, len(each.fields) - 1, min(SPREAD, len(each.fields))).astype(int) for each in trajectories]
    walled = (seems_walled(each, each.fields[part]) for each, part in zip(trajectories, few, strict=True))
    if any(each not in (None, domain.walls) for each in walled):
        warn(
            f"fields {ways[not domain.walls]}, by what they say or look like, and {ways[domain.walls]} in adaptation, "
            "which the equation goes by; adapt to such fields, or say --boundary (boundary=) there",
            Note,
        )
    own = domain.spacing[0] / domain.spacing[1]
    told = [each.spacing for each in trajectories if each.spacing != PLAIN.spacing]  # that one may be unsaid
    other = next((rows / columns for rows, columns in told if abs(rows / columns / own - 1) > OTHER_RATIO), None)
    if other is not None:
        warn(
            f"rows lie {other:.3g} times as far apart as columns, {own:.3g} times in adaptation, which the equation "
            "goes by; adapt to such fields, or say --spacing (spacing=) there",
            Note,
        )
    elif len(told) < len(trajectories) and abs(own - 1) > OTHER_RATIO:
        warn(
            f"rows are taken to lie {own:.3g} times as far apart as columns, as in adaptation, since nothing else is "
            "said here; --spacing (spacing=) says it",
            Note,
        )
