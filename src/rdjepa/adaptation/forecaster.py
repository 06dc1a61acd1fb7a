"""The adapted forecaster in physical units, as `rdjepa.adapt` returns it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rdjepa.adaptation.context import read_context
from rdjepa.adaptation.differences import say_other_domain, say_other_interval, say_other_values
from rdjepa.adaptation.intervals import Calibration, Interval, scales
from rdjepa.adaptation.novelty import embed
from rdjepa.adaptation.rollout import rollout, stable_frames
from rdjepa.checks import Count, checked, of_class, require_component
from rdjepa.data.fields import channels_first, channels_last, measured
from rdjepa.data.readers import Reading, load
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Trajectory
from rdjepa.errors import ArgumentError, CheckpointError, DataError, Note, warn
from rdjepa.forecasters.anchored import Anchored
from rdjepa.forecasters.base import CONTEXT, HORIZONS, ForecastModel, require_forecast
from rdjepa.forecasters.combined import Combined
from rdjepa.forecasters.equation import Equation, Remembering
from rdjepa.forecasters.familiar import Familiar
from rdjepa.forecasters.linear import Corrected
from rdjepa.forecasters.tiled import Tiled
from rdjepa.models.device import device_named, device_of, in_float32

if TYPE_CHECKING:
    from rdjepa.viz.inline import Drawing, Movie

ALONE = "rd-jepa-alone"  # name of the network of a combination, as in studies
REMEDY = "give a file that `rdjepa adapt` wrote"
AT_ONCE = {"cpu": 2, "cuda": 64}  # windows per forward pass; on a processor more do not fit into the cache
POINTS = 64**2  # of windows that a pass takes so many of


class Forecaster:
    """A trained model that forecasts five frames from four, in physical units.

    Attributes:
        model: the trained network.
        normalizer: the affine map between physical and standardized fields.
        record: its provenance: checkpoint, fingerprint, support, updates, seed.
        losses: training loss of every update.
        calibration: what intervals are made from; None where nothing was kept from adaptation.
        familiar: the support as the encoder sees it; None for forecasters without a pretrained encoder, and for a
            support of a single window with nothing beside it to compare.
    """

    def __init__(
        self,
        model: ForecastModel,
        normalizer: Normalizer,
        record: Mapping[str, Any] = MappingProxyType({}),
        losses: list[float] | None = None,
        calibration: Calibration | None = None,
        familiar: Familiar | None = None,
    ) -> None:
        self.model, self.normalizer = model.eval(), normalizer
        self.record, self.losses = dict(record), list(losses or [])
        self.calibration, self.familiar = calibration, familiar

    @property
    def device(self) -> torch.device:
        """Device of the network; the CPU for one without parameters and buffers."""
        return device_of(self.model)

    def to(self, device: str | torch.device) -> "Forecaster":
        """Move the network, and what stands beside it, to a device, and return the forecaster itself.

        Contexts and forecasts stay arrays of NumPy. On a GPU many contexts are forecast at once. `parts` share the
        network, so move the whole.

        Args:
            device: "auto" (a GPU when there is one), "cpu", "cuda", or a device of torch.

        Raises:
            ArgumentError: the device is not there.
        """
        self.model.to(device_named(device))
        return self

    @property
    def base(self) -> str:
        """What stands beside the network, see `rdjepa.adapt`: "linear", "anchored", "combined", or "none"."""
        if isinstance(self.model, Combined):
            return "combined"
        if isinstance(self.model, Anchored):
            return "anchored"
        network = self.model.network if isinstance(self.model, Tiled) else self.model
        return "linear" if isinstance(network, Corrected) else "none"

    @property
    def stride(self) -> int:
        """Frame stride that it was adapted with: of other data, too, one of so many frames is taken.

        Raises:
            CheckpointError: the record holds none that could be.
        """
        with _of_a_record():
            return checked(self.record.get("stride", 1), Count, "stride")

    @property
    def components(self) -> tuple[int | str, ...] | None:
        """Components that were chosen of the data it was adapted to, in this order; None where nothing was chosen.

        Raises:
            CheckpointError: the record holds none that could be.
        """
        with _of_a_record():
            return Reading(components=self.record.get("components")).components

    @property
    def boundary(self) -> str | None:
        """How the domain was said to end at adaptation; None where nobody said so.

        Raises:
            CheckpointError: the record holds none that could be.
        """
        with _of_a_record():
            return Reading(boundary=self.record.get("boundary")).boundary

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the components that it was adapted to, in their order; none where the data had none."""
        return tuple(map(str, self.record.get("names", ())))

    def reading(self, reading: Reading | None = None) -> Reading:
        """Return how data for this forecaster are read: as given, else by its own stride, components and boundary.

        Raises:
            CheckpointError: the record holds a stride, components or a boundary that could not be.
        """
        reading = of_class(reading, Reading | None, "reading") or Reading()
        components = reading.components or self.components
        if components and not reading.components:
            chosen = ", ".join(map(str, components))
            note = f"components {chosen} are taken, as in adaptation; --components (components=) says others"
            warn(note, Note)
        return replace(
            reading,
            stride=reading.stride or self.stride,
            components=components,
            names=reading.names or self.names,
            boundary=reading.boundary or self.boundary,
        )

    def require_fitting(self, trajectories: Sequence[Trajectory]) -> None:
        """Refuse trajectories on another grid, or of another number of measured components than it was adapted to.

        Where there was one, the second is the same field one frame earlier, and nothing else may stand there. Frames
        that lie further apart in time, or closer, are taken with a note, and so are those of another domain, and values
        that are far from those of the adaptation.

        Raises:
            DataError: there are some.
        """
        grid = self.model.grid
        for height, width in (each.fields.shape[1:3] for each in trajectories if grid is not None):
            if (height, width) != (grid, grid):
                raise DataError(
                    f"expected trajectories on the forecaster's grid of {grid} x {grid}, got {height} x {width}; "
                    "bring them to it with --resample (resample=True)"
                )
        own = self.record.get("measured")  # None in older files
        others = {measured(each.fields) for each in trajectories} - {own}
        if own is not None and others:
            raise DataError(
                f"expected trajectories of {own} measured component{'s' * (own > 1)}, as those that the forecaster was "
                f"adapted to, got {max(others)}; choose what was measured there with --components (components=)"
            )
        if (interval := self.record.get("interval")) is not None:  # the support had times
            say_other_interval(trajectories, interval)
        if (usual := self.record.get("range")) is not None:
            say_other_values([each.fields for each in trajectories], usual, "in adaptation")
        domain = next((each.domain for each in self.model.modules() if isinstance(each, Equation)), None)
        if domain is not None:
            say_other_domain(trajectories, domain)

    def times_of(self, trajectory: Trajectory) -> np.ndarray:
        """Return the times (T,) of frames; of those that were only counted, at the interval of the adaptation."""
        times, usual = np.asarray(trajectory.times), self.record.get("interval")
        return times if trajectory.timed or not usual else times / (times[1] - times[0]) * usual

    def parts(self) -> dict[str, "Forecaster"]:
        """Return it under its name, its network alone where it is combined or anchored, and what it is combined with.

        That is the equation of contexts, and the autoregression and the linear forecast where these have a share. Those
        of a combination find the equation of a context once for all of them, and remember those of the first that
        they are given; so take them anew for every trajectory.
        """
        model = self.model
        if isinstance(model, Anchored):
            alone = Forecaster(model.network, self.normalizer, self.record, familiar=self.familiar)
            return {model.name: self, f"{model.name}-alone": alone}
        if not isinstance(model, Combined):
            return {model.name: self}
        equation = Remembering.of(model.equation)
        together = Combined(model.network, model.linear, model.shares, equation, model.familiar)
        made = {model.name: together, ALONE: model.network, equation.name: equation}
        *_, autoregression, linear = model.shares.flatten(1).any(1).tolist()
        made |= {model.autoregression.name: model.autoregression} if autoregression else {}
        made |= {model.linear.name: model.linear} if linear else {}
        parts = {name: Forecaster(each, self.normalizer, self.record) for name, each in made.items()}
        parts[model.name].familiar = parts[ALONE].familiar = self.familiar
        parts[model.name].calibration = self.calibration
        return parts

    def forecast(self, context: np.ndarray) -> np.ndarray:
        """Forecast the five frames after the context; a warning says when numbers were too large for a finite one.

        Args:
            context: (T, H, W, C), or (B, T, H, W, C), consecutive frames in physical units, oldest first, T at least 4.
                The network sees the newest four. Where it is combined with simple forecasts, the equation is fitted to
                the newest 16, and of more than four the forecast is the blend of both. After adaptation to one measured
                component, frames of it, (T, H, W, 1); of more than four the first only says what stood before the
                second, see `rdjepa.adaptation.context`. Or an object of xarray, whose dimensions are found by their
                names, and its components too where it has all those of the adaptation.

        Returns:
            (5, H, W, C), or (B, 5, H, W, C), float32; entry h - 1 is the frame h intervals after the newest one. Where
            one component was measured, the second is a forecast of the frame before.

        Raises:
            DataError: wrong shape, values that are not finite, or another component than was measured.
        """
        given, asked = self._batched(context)
        return self._told(given)[asked]

    def _told(self, context: np.ndarray) -> np.ndarray:
        """Forecast from contexts (B, T, H, W, C) that were checked, with a warning where that is not finite."""
        made = self._forecast(context)
        if not np.isfinite(made).all():
            warn(
                f"expected a context near the support, got values up to {np.abs(context).max():.3g} whose forecast is "
                f"not finite (mean of the support {', '.join(f'{mean:.3g}' for mean in self.normalizer.mean)}); give "
                "it in the units of the support",
            )
        return made

    @in_float32
    @torch.no_grad()
    def _forecast(self, context: np.ndarray) -> np.ndarray:
        """Forecast from contexts (B, T, H, W, C) that were checked."""
        standard = channels_first(self.normalizer.standardize(context[:, -self.model.longest :]))
        pieces = torch.from_numpy(standard).split(at_once(self.device.type, standard.shape[-2] * standard.shape[-1]))
        made = (require_forecast(self.model(piece.to(self.device)), piece.shape, self.model) for piece in pieces)
        parts = [each.float().cpu().numpy() for each in made]
        return self.normalizer.restore(channels_last(np.concatenate(parts))).astype(np.float32)

    def rollout(self, context: np.ndarray, length: int) -> np.ndarray:
        """Forecast any number of frames, feeding those that were forecast back; see `rdjepa.adaptation.rollout`.

        Nothing says that it stays near the truth, or finite; if it is not stable (see `stable_frames`), a warning says
        from which frame, and the frames are returned all the same.

        Args:
            context: as for `forecast`.
            length: number N of frames.

        Returns:
            (N, H, W, C), or (B, N, H, W, C), float32; the first five are those of `forecast`.

        Raises:
            ArgumentError: no whole number of frames.
            DataError: as for `forecast`.
        """
        given, asked = self._batched(context)
        made = rollout(self._forecast, given, length)
        stable = min(self.stable_frames(*pair) for pair in zip(given, made, strict=True))
        if stable < length:
            warn(
                f"expected a stable rollout, got one that is not stable from frame {stable + 1} of {length}: it is not "
                "finite there, or leaves the range of the support by more than its width; use the frames before",
            )
        return made[asked]

    def stable_frames(self, context: np.ndarray, made: np.ndarray) -> int:
        """Return how many frames of a rollout (N, H, W, C) from a context (T, H, W, C) are stable, from the first.

        They are finite, and leave the range of support and context by at most its width. In files that do not say the
        range of the support, it is that within three standard deviations of the mean.

        Raises:
            DataError: several rollouts or contexts.
        """
        if np.ndim(made) != 4 or np.ndim(context) != 4:
            raise DataError(
                f"expected one rollout (N, H, W, C) from one context (T, H, W, C), got shapes {np.shape(made)} and "
                f"{np.shape(context)}; ask for those of a batch one by one"
            )
        mean, std = np.array(self.normalizer.mean), np.array(self.normalizer.scale)
        low, high = self.record.get("range", (mean - 3 * std, mean + 3 * std))
        given = np.asarray(context)
        return stable_frames(
            made, np.minimum(low, given.min(axis=(0, 1, 2))), np.maximum(high, given.max(axis=(0, 1, 2)))
        )

    def interval(self, context: np.ndarray, level: float = 0.9) -> Interval:
        """Forecast with a lower and an upper bound that hold the truth at a share `level` of points.

        What that promises, and what not, is in `rdjepa.adaptation.intervals`.

        Args:
            context: as for `forecast`; the newest four frames are made use of, as bounds are calibrated on such.
            level: between 0 and 1.

        Raises:
            ArgumentError: no calibration, or one on too little data for this level.
            DataError: as for `forecast`.
        """
        if self.calibration is None:
            raise ArgumentError(
                "expected a forecaster with a calibration, got one without; adapt again with --calibrate FILE "
                "(calibrate=) or --hold-out 0.4 (hold_out=)"
            )
        factors = self.calibration.factors(level)[:, None, None, :]
        given, asked = self._batched(context)
        made = self._told(given[:, -CONTEXT:])
        half = factors * scales(made, given[:, -1], self.normalizer)
        parts = (made, (made - half).astype(np.float32), (made + half).astype(np.float32))
        return Interval(*(part[asked] for part in parts))

    @in_float32
    @torch.no_grad()
    def novelty(self, context: np.ndarray) -> np.ndarray | None:
        """Return how unlike the support contexts are: above 1, more than anything known to be alike.

        It is the distance from the nearest window of the support, in the latent space of the encoder, in units of the
        largest such distance among windows that are known to be of the same kind; see `rdjepa.adaptation.novelty`.

        Args:
            context: as for `forecast`.

        Returns:
            (B,), or a scalar array for one context; None where `familiar` is None.

        Raises:
            DataError: as for `forecast`.
        """
        given, asked = self._batched(context)
        if self.familiar is None:
            return None
        latents = embed(self.model, given[:, -CONTEXT:], self.normalizer)
        assert latents is not None  # the model that the support was described with
        return self.familiar.novelty(latents)[asked]

    def _batched(self, context: Any) -> tuple[np.ndarray, Any]:
        """Return contexts (B, T, H, W, C) after a look at shape and values, and which of the answers is asked for.

        Raises:
            DataError: see `read_context`.
        """
        alone = self.record.get("measured") == 1
        found = read_context(context, self.model.grid, self.model.components, alone, self.names)
        return (found, ...) if found.ndim == 5 else (found[None], 0)

    def plot(self, fields: Any, start: int | None = None, component: int = 0) -> "Drawing":
        """Draw the forecast from four frames, with reference and error if five follow, as a figure for a notebook.

        Args:
            fields: one trajectory, in physical units, in any form that `rdjepa.evaluate` takes and read as there: at
                the frame stride of the adaptation, and with its components.
            start: first of the four frames, of those at that stride; when None the last start that five frames follow,
                or else the last one.
            component: shown.

        Raises:
            ArgumentError: no component of this number, or a start that is no whole number.
            DataError: several trajectories, too few frames, or another grid.
        """
        from rdjepa.viz import inline  # matplotlib, which forecasting does not need

        trajectory = self._one(fields)
        context, reference = self._example(trajectory.fields, start, component)
        return inline.forecast(reference, self.forecast(context), component, trajectory.spacing)

    def animate(self, fields: Any, start: int | None = None, component: int = 0) -> "Movie":
        """Play the four given frames and the forecast after them, beside the reference if there is one; see `plot`."""
        from rdjepa.viz import inline

        trajectory = self._one(fields)
        context, reference = self._example(trajectory.fields, start, component)
        panels = {} if reference is None else {"reference": np.concatenate([context, reference])[..., component]}
        made = np.concatenate([context, self.forecast(context)])[..., component]
        return inline.movie(panels | {"forecast": made}, trajectory.spacing)

    def _one(self, given: Any) -> Trajectory:
        """Read the trajectory that is to be shown.

        Raises:
            DataError: it cannot be used, or there are several.
        """
        found = load(given, limit=2, minimum_frames=CONTEXT, reading=self.reading())
        if len(found) > 1:
            raise DataError("expected one trajectory to show, got several; give one of them")
        self.require_fitting(found)
        return found[0]

    def _example(self, fields: np.ndarray, start: int | None, component: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return four frames to forecast from, and the five that follow if they are there.

        Raises:
            ArgumentError: no component of this number, or a start that is no whole number.
            DataError: too few frames.
        """
        require_component(component, self.model.components)
        length = CONTEXT + HORIZONS
        start = checked(start, int | None, "start")
        if start is None:
            start = len(fields) - (length if len(fields) >= length else CONTEXT)
        if not 0 <= start <= len(fields) - CONTEXT:
            raise DataError(f"expected four frames from start {start}, got {len(fields)} in all; give another start")
        future = fields[start + CONTEXT : start + length]
        return fields[start : start + CONTEXT], future if len(future) == HORIZONS else None

    def __repr__(self) -> str:
        """Return its name, what stands beside the network, and what it was adapted to, in one line."""
        count, made = len(self.record.get("frames", ())), len(self.losses)
        learned = f", adapted to {count} {'trajectory' if count == 1 else 'trajectories'}" if count else ""
        grid = self.model.grid or "any"
        return f"<Forecaster {self.model.name}, base {self.base}, grid {grid}, {made} updates{learned}>"

    def _repr_html_(self) -> str:
        """Show facts and the curve of the training loss in a notebook."""
        from rdjepa.viz import inline

        grid = self.model.grid
        facts = {
            "grid": "any" if grid is None else f"{grid} x {grid}, {self.model.components} components",
            "base": self.base,
            "support": ", ".join(self.record.get("support", ())) or "unknown",
            "updates": str(len(self.losses)),
        }
        if self.losses:
            facts["loss"] = f"{self.losses[0]:.4g} to {self.losses[-1]:.4g}"
        return inline.card(f"Forecaster {self.model.name}", facts, inline.curve(self.losses) if self.losses else None)

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the forecaster as one safetensors file, atomically; `force` lets it replace a file of another kind.

        Raises:
            ArgumentError: no other process could import the model's class; see `rdjepa.adaptation.saving`.
            OutputError: the file cannot be written, or would replace one of another kind.
        """
        from rdjepa.adaptation.saving import save  # which knows this class

        return save(self, path, force)


@contextmanager
def _of_a_record() -> Iterator[None]:
    """Blame the file for a value of its record that no argument could have."""
    try:
        yield
    except ArgumentError as error:
        raise CheckpointError(f"{error}; {REMEDY}") from error


def at_once(kind: str, points: int) -> int:
    """Return how many windows of so many points a forward pass takes on a kind of device: fewer large ones."""
    few = AT_ONCE.get(kind, 8)
    return max(1, min(few, few * POINTS // points))
