"""Screens: each checks the saved fields of one trajectory, (T, H, W, 2), and returns why it must be drawn again.

The paper names the criteria (S1.4) and not their thresholds; the thresholds are in the files of the systems.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

Screen = Callable[[np.ndarray], str | None]
NOT_FINITE = "a value is not finite"


def relative_changes(fields: np.ndarray) -> np.ndarray:
    """Return ||x_{t+1} - x_t|| / ||x_{t+1}|| over both components for every saved interval, (T - 1,)."""
    fields = fields.astype(np.float64)
    size = np.sqrt((fields[1:] ** 2).sum(axis=(1, 2, 3)))
    change = np.sqrt((np.diff(fields, axis=0) ** 2).sum(axis=(1, 2, 3)))
    return change / np.maximum(size, np.finfo(np.float64).tiny)


def deviations(fields: np.ndarray) -> np.ndarray:
    """Return the spatial standard deviation of each frame and component, (T, 2)."""
    return fields.astype(np.float64).std(axis=(1, 2))


def standardized(fields: np.ndarray) -> np.ndarray:
    """Return the fields (T, H, W, 2) with zero mean and unit variance of each component over all frames and points."""
    fields = fields.astype(np.float64)
    scale = fields.std(axis=(0, 1, 2))
    return (fields - fields.mean(axis=(0, 1, 2))) / np.maximum(scale, np.finfo(np.float64).tiny)


def total_variations(fields: np.ndarray) -> np.ndarray:
    """Return the mean absolute first difference of each frame, summed over both axes and components, (T,)."""
    fields = fields.astype(np.float64)
    along_y = np.abs(np.diff(fields, axis=1)).mean(axis=(1, 2))
    along_x = np.abs(np.diff(fields, axis=2)).mean(axis=(1, 2))
    return (along_y + along_x).sum(axis=-1)


def fine_share(fields: np.ndarray) -> np.ndarray:
    """Return the share of spatial variance at wavelengths below 4 grid cells for each frame and component, (T, 2).

    The fields must be periodic; a constant field has the share 0.
    """
    size = fields.shape[1]
    power = np.abs(np.fft.fft2(fields.astype(np.float64), axes=(1, 2))) ** 2
    power[:, 0, 0] = 0
    mode = np.fft.fftfreq(size, 1 / size)
    fine = np.hypot(mode[:, None], mode) > size / 4
    return power[:, fine].sum(axis=1) / np.maximum(power.sum(axis=(1, 2)), np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Finite:
    """Every value is finite and at most `limit` in magnitude."""

    limit: float = 10.0

    def __call__(self, fields: np.ndarray) -> str | None:
        """Return the reason for rejection, or None."""
        if not np.isfinite(fields).all():
            return NOT_FINITE
        largest = float(np.abs(fields).max())
        return f"amplitude {largest:.3g} above {self.limit:g}" if largest > self.limit else None


@dataclass(frozen=True)
class Within:
    """Every value of one component lies strictly between two bounds."""

    component: int
    low: float
    high: float

    def __call__(self, fields: np.ndarray) -> str | None:
        """Return the reason for rejection, or None."""
        field = fields[..., self.component]
        low, high = float(field.min()), float(field.max())
        if self.low < low and high < self.high:
            return None
        return f"{'uv'[self.component]} in [{low:.3g}, {high:.3g}], outside ({self.low:g}, {self.high:g})"


@dataclass(frozen=True)
class MinMeanChange:
    """The mean relative change per saved interval, over all or over the `last` latest of them, is at least `least`."""

    least: float
    last: int = 0

    def __call__(self, fields: np.ndarray) -> str | None:
        """Return the reason for rejection, or None."""
        change = float(relative_changes(fields)[-self.last :].mean())  # last = 0 takes all
        where = f" in the last {self.last} intervals" if self.last else ""
        return None if change >= self.least else f"mean change {change:.3g}{where} below {self.least:g}"


@dataclass(frozen=True)
class MinChangeShare:
    """The relative change is at least `least` in at least a share `share` of the saved intervals."""

    least: float
    share: float

    def __call__(self, fields: np.ndarray) -> str | None:
        """Return the reason for rejection, or None."""
        share = float((relative_changes(fields) >= self.least).mean())
        return (
            f"change above {self.least:g} in a share {share:.3g} below {self.share:g}" if share < self.share else None
        )


@dataclass(frozen=True)
class MinFinalContrast:
    """In the last frame one of the components has a spatial standard deviation of at least `least`."""

    least: float

    def __call__(self, fields: np.ndarray) -> str | None:
        """Return the reason for rejection, or None."""
        contrast = float(deviations(fields[-1:]).max())
        return None if contrast >= self.least else f"final standard deviation {contrast:.3g} below {self.least:g}"


@dataclass(frozen=True)
class MinContrast:
    """In every frame the spatial standard deviation (root of the summed variances) is at least `least`."""

    least: float

    def __call__(self, fields: np.ndarray) -> str | None:
        """Return the reason for rejection, or None."""
        contrast = float(np.sqrt((deviations(fields) ** 2).sum(axis=1)).min())
        return None if contrast >= self.least else f"least standard deviation {contrast:.3g} below {self.least:g}"


@dataclass(frozen=True)
class TotalVariationWithin:
    """In every frame the mean absolute first difference, summed over axes and components, lies in [low, high]."""

    low: float
    high: float

    def __call__(self, fields: np.ndarray) -> str | None:
        """Return the reason for rejection, or None."""
        variation = total_variations(fields)
        low, high = float(variation.min()), float(variation.max())
        if self.low <= low and high <= self.high:
            return None
        return f"total variation in [{low:.3g}, {high:.3g}], outside [{self.low:g}, {self.high:g}]"


@dataclass(frozen=True)
class MaxFineShare:
    """In the first, middle and last frame at most a share `share` of the variance has a wavelength below 4 cells."""

    share: float

    def __call__(self, fields: np.ndarray) -> str | None:
        """Return the reason for rejection, or None."""
        share = float(fine_share(fields[[0, len(fields) // 2, -1]]).max())
        return None if share <= self.share else f"unresolved share of variance {share:.3g} above {self.share:g}"


@dataclass(frozen=True)
class PaceWithin:
    """The standardized fields change neither too little nor too much from frame to frame, in root mean square.

    Unlike `relative_changes` it does not depend on the mean of the fields.

    Attributes:
        least: smallest mean over all intervals.
        last: smallest mean over the later half of them.
        most: largest value in any interval; independent fields of unit variance have 1.4.
    """

    least: float
    last: float
    most: float

    def __call__(self, fields: np.ndarray) -> str | None:
        """Return the reason for rejection, or None."""
        pace = np.sqrt((np.diff(standardized(fields), axis=0) ** 2).mean(axis=(1, 2, 3)))
        if not pace.mean() >= self.least:
            return f"mean pace {pace.mean():.3g} below {self.least:g}"
        if not pace[len(pace) // 2 :].mean() >= self.last:
            return f"late pace {pace[len(pace) // 2 :].mean():.3g} below {self.last:g}"
        return None if pace.max() <= self.most else f"largest pace {pace.max():.3g} above {self.most:g}"


@dataclass(frozen=True)
class MinStructure:
    """The spatial share of the deviation is at least `mean` on average over frames, and at least `final` in the last.

    It is the standard deviation over the points of a frame, relative to that over all frames, of the standardized
    fields: 0 where a frame is uniform, 1 where all frames have one mean and contrast.
    """

    mean: float
    final: float

    def __call__(self, fields: np.ndarray) -> str | None:
        """Return the reason for rejection, or None."""
        share = np.sqrt(standardized(fields).var(axis=(1, 2)).mean(axis=-1))
        if not share.mean() >= self.mean:
            return f"mean structure {share.mean():.3g} below {self.mean:g}"
        return None if share[-1] >= self.final else f"final structure {share[-1]:.3g} below {self.final:g}"


def first_reason(screens: tuple[Screen, ...], fields: np.ndarray) -> str | None:
    """Return the reason of the first screen that rejects the fields (T, H, W, 2), or None when all pass.

    Fields with a value that is not finite are rejected before any screen.
    """
    if not np.isfinite(fields).all():
        return NOT_FINITE
    return next((reason for screen in screens if (reason := screen(fields)) is not None), None)


def tally(reasons: Iterable[str]) -> dict[str, int]:
    """Count reasons without their values, as "u outside its bounds", most frequent first."""
    found: Counter[str] = Counter()
    for reason in reasons:
        unmeasured = re.sub(r" in \[[^]]*\],", "", reason).split()
        kind = " ".join(word for word in unmeasured if not any(c.isdigit() for c in word))
        kind = kind or reason or "no reason given"
        kind += {"outside": " its bounds", "below": " its bound", "above": " its bound"}.get(kind.split()[-1], "")
        found[kind] += 1
    return dict(found.most_common())
