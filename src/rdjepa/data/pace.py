"""How much fields change from frame to frame, and the frame stride that brings data to the pace of pretraining.

Models see frames, not times. Where frames of a user lie much closer together than those of the pretraining systems, a
forecast of five covers little time, and the network is asked for changes smaller than any that it was trained on. The
stride is that whose change per frame is nearest to the median of the pretraining systems, if change grows in proportion
to time; it is only suggested. Frames that lie too far apart have no remedy but a recording with more of them.

The changes of the pretraining systems are stored in pace.json, which this command measures and writes:

    python -m rdjepa.data.pace
"""

from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rdjepa.data.windows import FORECASTING, largest_stride
from rdjepa.io import sealed

KEPT = Path(__file__).with_name("pace.json")
GRID = 64  # points per side of the fields that are measured: block means of the stored ones


class Pace(NamedTuple):
    """Relative change per frame of several systems: smallest, median and largest."""

    low: float
    median: float
    high: float


@cache
def of_sources() -> Pace:
    """Return the stored pace of the pretraining systems.

    Raises:
        DataError: the file that comes with the package is damaged.
    """
    changes = sealed.read(KEPT, dict[str, float], "install the package again").values()
    return Pace(min(changes), median(changes), max(changes))


def stride(change: float, frames: int) -> int:
    """Return the suggested stride: the ratio of the median pace of pretraining to a change per frame, rounded.

    Args:
        change: root mean square change from frame to frame, of the standard deviation.
        frames: of the shortest trajectory; one window at least is left of it.
    """
    most = largest_stride(frames, FORECASTING.length)
    return min(max(1, round(of_sources().median / change)), most) if change > 0 else 1


def measure() -> dict[str, float]:
    """Return source system -> relative change per frame of its first validation trajectory."""
    from rdjepa import systems
    from rdjepa.data.simulate import simulate
    from rdjepa.data.survey import inspect

    return {name: inspect(simulate(name, split="validation").coarsened(GRID)).change for name in systems.SOURCES}


def main() -> None:
    """Measure the pretraining systems and store their changes per frame."""
    sealed.write(KEPT, {name: round(value, 4) for name, value in measure().items()})


if __name__ == "__main__":
    main()
