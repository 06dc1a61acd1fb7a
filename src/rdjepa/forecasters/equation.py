"""A forecast by the reaction-diffusion equation that a context obeys: fitted to its four frames, then integrated.

    dx_c/dt = sum_i k[c, i] m_i(x) + D[c] Laplacian x_c

m_i are all monomials of the components up to third order, D is not negative, and time is in frame intervals, length in
grid spacings. The coefficients are those of one context. They have the least sum of squares of what is missed when the
equation is integrated from every frame to the next (multiple shooting; Bock, 1981), by the method of Levenberg (1944)
and Marquardt (1963), whose derivatives are integrated along the way: so what happens between frames, such as a front
that passes several points, is no loss. A step that would make a D negative ends where it is 0, and the other
coefficients take what is best with that (an active set; Nocedal and Wright, Numerical Optimization, 2006, 16.5).

What the support has of these squares, around its own least, is added with a weight: the one with which, in the end, it
is three times what chance adds to those of the context, which follows from how differently the parts of a context pull
at the coefficients (a sandwich estimate; White, Econometrica 50, 1982). To take a weight from what is found with it is
empirical Bayes (MacKay, Neural Computation 4, 1992). So the support decides what four frames leave open, such as the
kinetics of states that none of their points has been in yet, and has little say where they tell a law of their own.
Where the context alone, the support's weight being a millionth, would forecast something else, the equation is unsure.

The equation is integrated on the points of the frames, or on finer ones, of which the values of a frame are means
(`rdjepa.forecasters.cubic`): on those with which windows of the support are forecast with less error. Rates are never
differenced in time: a first fit compares steps with integrals of the terms over the frames (Schaeffer and McCalla,
Physical Review E 96, 2017). The library is that of sparse regression (Brunton, Proctor and Kutz, PNAS 113, 2016),
without a threshold: a forecast needs no few terms.

It knows what no network here does: that the law is local, autonomous, the same everywhere, and close to a cubic. Where
that holds and values are precise it is hard to beat. Noise makes it many times worse, and so do kinetics that no cubic
is near to. Not part of the paper.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.apart import apart
from rdjepa.forecasters.autoregression import solved
from rdjepa.forecasters.base import CONTEXT, HORIZONS
from rdjepa.forecasters.cubic import ORDER, STEPS, Advance, monomials_of, terms
from rdjepa.forecasters.domain import PLAIN, Domain
from rdjepa.forecasters.simple import Simple
from rdjepa.forecasters.squares import Squares, squares

PULL = 3.0  # times what chance adds to the context's squares: the support's
FIRST = 1e-4  # weight of the support's squares, before the one is known with which they are
ALONE = 1e-6  # weight where the context speaks alone
ITERATIONS = 8
DAMPING = 1e-2  # at first, of coefficients whose derivatives are of unit size; a tenth after a success, else ten times
RIDGE = 1e-9  # the least damping: the terms of a nearly uniform field are alike
LEAST = 0.0  # of a diffusivity
ENOUGH = 1e-3  # of the squares: a context that an iteration improves by less is left
FINER = (1, 2)  # points for each of a frame, along each side: those with which the support is forecast better
TRIALS = 4  # windows of the support that tell this, at most, evenly spread
GAIN = 0.1  # of their mean square error: less is no reason to go on with derivatives that go through
MARGIN = 0.1  # of the range of a component in support and context, on either side of it
STRETCHES = 16  # of three frames, at most, in which the support is read, evenly spread
TOGETHER = 9  # stretches, and contexts, fitted at a time on a CPU on the points of the frames, for its cache
LONGEST = 16  # frames of a context: the time that a fit takes grows with them
REMEMBERED = 208 * 2**20  # bytes, of contexts and what was found for them: 256 of 64 x 64 points
CONSTANTS = {
    "order": ORDER, "pull": PULL, "first": FIRST, "alone": ALONE, "iterations": ITERATIONS, "damping": DAMPING,
    "ridge": RIDGE, "enough": ENOUGH, "least": LEAST, "steps": STEPS, "finer": [*FINER], "margin": MARGIN,
    "stretches": STRETCHES, "trials": TRIALS, "begin": "corrected", "gain": GAIN,
}  # fmt: skip


Found = TypeVar("Found")


class Fitted(NamedTuple):
    """What the equations of some contexts make of them, float64.

    Attributes:
        forecast: (B, 5, C, H, W), integrated from the newest frame.
        variance: (B, 5, C, H, W), of the forecast, as far as its coefficients are uncertain.
        missed: (B, C, H, W), the newest frame less what is integrated from the oldest of the newest four.
    """

    forecast: Tensor
    variance: Tensor
    missed: Tensor


class Equation(Simple):
    """The forecast by the equation of each context, in standardized units.

    Args:
        components: field components C.
        domain: how it ends, where fields are mirrored or go on periodically, and how far points lie apart; on how fine
            ones it is integrated, `fit` decides.

    Attributes:
        gram: (q, q) of the support's squares around their least, 0 without one.
        center: (C, n) coefficients of the support; the last of each component is that of the Laplacian.
        low, high: (C,) range of the support.
    """

    name = "equation"
    longest = LONGEST
    constants = CONSTANTS
    gram: Tensor
    center: Tensor
    low: Tensor
    high: Tensor

    def __init__(self, components: int = 2, domain: Domain = PLAIN) -> None:
        super().__init__(components)
        self.domain = domain
        count = len(monomials_of(components)) + 1
        self.register_buffer("gram", torch.zeros(2 * (components * count,), dtype=torch.float64))
        self.register_buffer("center", torch.zeros(components, count, dtype=torch.float64))
        self.register_buffer("low", torch.full((components,), torch.inf))
        self.register_buffer("high", torch.full((components,), -torch.inf))

    @classmethod
    def fit(cls, support: Sequence[Tensor], domain: Domain = PLAIN) -> Self:
        """Keep what standardized trajectories (T, C, H, W) say of the coefficients; nothing where that is not finite.

        They are fitted on points as fine as each of `FINER`, and on finer ones once more, from there on, with
        derivatives that go through the states where intervals begin. Windows of them, forecast, tell what is kept.

        Raises:
            ArgumentError: no trajectories, or one of fewer than three frames.
        """
        shortest = min((len(fields) for fields in support), default=0)
        if shortest < 3:
            raise ArgumentError(f"expected trajectories of at least 3 frames, got {shortest}; give longer")
        models = [cls._of(support, replace(domain, finer=finer)) for finer in FINER]
        tried = _spread(support, CONTEXT + HORIZONS, TRIALS)
        if not tried:
            return models[0]
        through = [cls._of(support, model.domain, model.center) for model in models if model.domain.finer > 1]
        errors = {model: model._error(torch.stack(tried)) for model in models + through}
        before, best = (min(each, key=errors.__getitem__) for each in (models, through))
        return best if errors[best] < (1 - GAIN) * errors[before] else before

    @classmethod
    def _of(cls, support: Sequence[Tensor], domain: Domain, begin: Float[Tensor, "C n"] | None = None) -> Self:
        """Return what is fitted to trajectories on as fine points as the domain says.

        From given coefficients on, with derivatives that go through the states where intervals begin.
        """
        model = cls(support[0].shape[1], domain).to(support[0].device)
        model.low = torch.stack([fields.amin((0, 2, 3)) for fields in support]).amin(0)
        model.high = torch.stack([fields.amax((0, 2, 3)) for fields in support]).amax(0)
        most = STRETCHES if begin is None else STRETCHES // 2  # each takes twice the time
        parts = torch.stack(_spread(support, 3, most)).double().split(_few(domain))

        def mean(found: Sequence[Sequence[Tensor]]) -> list[Tensor]:
            return [torch.cat(each).mean(0, keepdim=True) for each in zip(*found, strict=True)]

        def missed(weights: Tensor) -> Squares:
            through = begin is not None
            return Squares(*mean(apart(lambda x: squares(x, weights, model._bounds(x), domain, through), parts)))

        if begin is None:
            gram, cross = mean([_moments(*_simpson(part, domain)) for part in parts])
            start = _step(gram, cross, RIDGE, _room(torch.zeros_like(cross)))
        else:
            start = begin[None]
        weights, least = _least(missed, start)
        gram, center = least.summed()[0][0], weights[0]
        if gram.isfinite().all() and center.isfinite().all():  # in noise alone derivatives grow beyond all numbers
            model.gram, model.center = gram, center
        return model

    def _error(self, windows: Float[Tensor, "B 9 C H W"]) -> float:
        """Return the mean square error of the forecasts of windows; infinite where it is not finite."""
        missed = self(windows[:, :CONTEXT]) - windows[:, CONTEXT:]
        return missed.square().mean().nan_to_num(torch.inf).item()

    def settings(self) -> dict[str, Any]:
        """Return the number of components, and the domain."""
        return {"components": self.components, **self.domain.settings()}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Build it from what `settings` returned; what it was fitted to is in its state."""
        return cls(settings["components"], Domain.of(settings))

    def fitted_to(self, support: Sequence[Tensor], domain: Domain = PLAIN) -> Self:
        """Return `fit` of the support."""
        return self.fit(support, domain)

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W) from context (B, T, C, H, W), T at least 3, in float64 within."""
        (context,) = features
        return torch.cat(self._each(self._forecast, context)).to(context.dtype)

    def coefficients(self, context: Float[Tensor, "B T C H W"]) -> Float[Tensor, "B C n"]:
        """Return the coefficients of the terms in each context: monomials as `monomials_of` has them, then D."""
        return torch.cat(self._each(lambda frames: self._fit(frames, self._bounds(frames))[0], context))

    def fitted(self, context: Float[Tensor, "B T C H W"]) -> Fitted:
        """Fit the equation of every context, T at least 3; integrate its newest frame, and one before up to there.

        That is the oldest of the newest four.

        The variance has two parts. One is that of the jackknife (Quenouille, 1956; Tukey, 1958) of the equation of the
        context alone: the newest frame is integrated also by the equations that are left when half of the rows of one
        interval at a time has no say, in single precision. The other is the square of what the support changes.
        """
        return Fitted(*map(torch.cat, zip(*self._each(self._fitted, context), strict=True)))

    def _each(self, function: Callable[[Tensor], Found], context: Tensor) -> list[Found]:
        """Return what a function makes of contexts in float64, on a CPU of a few of them at a time."""
        frames = context.double()
        if frames.device.type != "cpu" or torch.compiler.is_compiling():
            return [function(frames)]
        return apart(function, frames.split(_few(self.domain)))

    def _forecast(self, frames: Tensor) -> Tensor:
        """Return what `predict` does."""
        bounds = self._bounds(frames)
        weights, _ = self._fit(frames, bounds)
        return self._integrated(frames[:, -1], weights, bounds, HORIZONS)

    def _fitted(self, frames: Tensor) -> Fitted:
        """Return what `fitted` does."""
        bounds = self._bounds(frames)
        weights, _ = self._fit(frames, bounds)
        forecast = self._integrated(frames[:, -1], weights, bounds, HORIZONS)
        back = min(frames.shape[1], CONTEXT) - 1
        again = self._integrated(frames[:, -1 - back], weights, bounds, back)[:, -1]
        own, parts = self._fit(frames, bounds, alone=True)
        alone = self._integrated(frames[:, -1], own, bounds, HORIZONS)
        others = _without_part(own, parts)
        count = others.shape[1]
        newest, low, high = (each.float().repeat_interleave(count, 0) for each in (frames[:, -1], *bounds))
        made = self._integrated(newest, others.flatten(0, 1).float(), (low, high), HORIZONS)
        others = made.unflatten(0, (-1, count)) - alone[:, None]
        variance = others.square().sum(1) * (count - 1) / count + (forecast - alone).square()
        whole = (bounds[1] - bounds[0]).square()[:, None]
        variance = torch.where(variance.isfinite(), variance, whole)  # derivatives grow beyond all numbers in noise
        return Fitted(forecast, variance, frames[:, -1] - again)

    def _integrated(self, frame: Tensor, weights: Tensor, bounds: tuple[Tensor, Tensor], intervals: int) -> Tensor:
        """Return frames (B, C, H, W) after 1 to so many intervals, (B, intervals, C, H, W)."""
        advance, found = Advance(weights, bounds, frame.shape[-2:], self.domain), []
        state = advance.refined(frame)
        for _ in range(intervals):
            state = advance.interval(state)
            found.append(advance.means(state))
        return torch.stack(found, dim=1)

    def _fit(
        self, frames: Tensor, bounds: tuple[Tensor, Tensor], alone: bool = False
    ) -> tuple[Float[Tensor, "B C n"], Squares]:
        """Return coefficients of contexts in bounds (B, C, 1, 1), and their squares, last the support's.

        The support pulls at them, or lets the context speak alone.
        """
        center, behind = self.center.double(), self.gram.double()
        weight, pull = (ALONE, None) if alone else (FIRST, PULL)

        def missed(weights: Tensor) -> Squares:
            own, away = squares(frames, weights, bounds, self.domain), (center - weights).flatten(1)
            pull = away @ behind
            support = behind.expand(pull.shape[0], -1, -1), pull, (pull * away).sum(1)
            return Squares(*(torch.cat([one, other[:, None]], dim=1) for one, other in zip(own, support, strict=True)))

        block = behind.unflatten(0, center.shape).unflatten(2, center.shape).diagonal(dim1=0, dim2=2)
        block = weight * block.movedim(-1, 0)
        gram, cross = _moments(*_simpson(frames, self.domain))
        cross = cross + (block @ center[..., None])[..., 0]
        start = _step(gram + block, cross, RIDGE, _room(torch.zeros_like(cross)))
        return _least(missed, start, center.expand_as(start), weight=weight, pull=pull)

    def _bounds(self, frames: Float[Tensor, "B T C H W"]) -> tuple[Tensor, Tensor]:
        """Return the range of each context and the support together, widened, (B, C, 1, 1)."""
        low, high = torch.minimum(frames.amin((1, 3, 4)), self.low), torch.maximum(frames.amax((1, 3, 4)), self.high)
        room = MARGIN * (high - low)
        return (low - room)[..., None, None], (high + room)[..., None, None]


class Remembering(Equation):
    """An equation that keeps what it found for the first contexts that it was given, for those who give them again."""

    @classmethod
    def of(cls, equation: Equation) -> Self:
        """Return the same equation, with a memory."""
        found = cls(equation.components, equation.domain).to(equation.low.device)
        found.load_state_dict(equation.state_dict())
        return found

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W) from context (B, T, C, H, W)."""
        (context,) = features
        return self.fitted(context).forecast.to(context.dtype)

    def fitted(self, context: Float[Tensor, "B T C H W"]) -> Fitted:
        """Fit the contexts that are new, as `Equation` does."""
        if torch.compiler.is_compiling():
            return super().fitted(context)
        seen: dict[bytes, Fitted] = self.__dict__.setdefault("seen", {})
        keys = [each.cpu().numpy().tobytes() for each in context]
        new = [i for i, key in enumerate(keys) if key not in seen]
        found = dict(seen)
        if new:
            fitted = super().fitted(context[new])
            found |= {keys[i]: Fitted(*each) for i, *each in zip(new, *fitted, strict=True)}
            size = len(keys[0]) + sum(each[0].nbytes for each in fitted)
            seen.update({keys[i]: found[keys[i]] for i in new[: max(REMEMBERED // size - len(seen), 0)]})
        return Fitted(*(torch.stack(each) for each in zip(*(found[key] for key in keys), strict=True)))


def _few(domain: Domain) -> int:
    """Return how many are fitted at a time."""
    return max(1, TOGETHER // domain.finer**2)


def _spread(support: Sequence[Tensor], length: int, most: int) -> list[Tensor]:
    """Return stretches of so many frames from trajectories, evenly spread over all that there are."""
    every = [fields[i : i + length] for fields in support for i in range(len(fields) - length + 1)]
    places = np.linspace(0, len(every) - 1, min(most, len(every))).round().astype(int)
    return [every[i] for i in places]


def _least(
    missed: Callable[[Tensor], Squares],
    *starts: Float[Tensor, "B C n"],
    weight: float = 1.0,
    pull: float | None = None,
) -> tuple[Tensor, Squares]:
    """Return coefficients that miss less than those of the best start, and what they miss (Levenberg, Marquardt).

    The last part of what is missed has a weight; with a pull, in the end the one with which it is as many times what
    chance adds to the others.
    """
    weights, here = starts[0], missed(starts[0])
    last = torch.full_like(here.value[:, 0], weight)
    for start in starts[1:]:
        there = missed(start)
        own, other = (each.weighted(last).value.sum(1) for each in (here, there))
        weights, here = _chosen((other < own) | ~own.isfinite(), start, there, weights, here)
    damping = torch.full_like(last, DAMPING)
    left = torch.zeros_like(last, dtype=torch.bool)
    for _ in range(ITERATIONS):
        if not torch.compiler.is_compiling() and left.all():
            break
        gram, cross, value = here.weighted(last).summed()
        tried = weights + _step(gram, cross, damping[:, None, None], _room(weights).flatten(1)).view_as(weights)
        there = missed(tried)
        reached = there.weighted(last).value.sum(1)
        better = (reached < value) & ~left
        enough = reached > (1 - ENOUGH) * value
        weights, here = _chosen(better, tried, there, weights, here)
        damping = torch.where(better, damping / 10, damping * 10).clamp(min=RIDGE)
        if pull is not None:
            balanced = _balance(here, last, pull)
            enough = enough & (balanced < 2 * last) & (last < 2 * balanced)
            last = torch.where(better, balanced, last)
        left = left | (better & enough)
    return weights, here.weighted(last)


def _balance(parts: Squares, weight: Tensor, pull: float) -> Tensor:
    """Return the weight (B,), below 1, with which the last part is so many times what chance adds to the others.

    Chance moves coefficients as the parts differ in where they pull them, with a weight (B,) of the last one.
    """
    pulls, (gram, _, _) = parts.cross[:, :-1], parts.weighted(weight).summed()
    apart, count = pulls - pulls.mean(1, keepdim=True), pulls.shape[1]
    moved = _solution(gram[:, None].expand(-1, count, -1, -1), apart, RIDGE)
    chance, last = pull * (apart * moved).sum((1, 2)) * count / (count - 1), parts.value[:, -1]
    return chance / (chance + last).clamp(min=torch.finfo(last.dtype).tiny)


def _without_part(weights: Float[Tensor, "B C n"], parts: Squares) -> Float[Tensor, "B P-1 C n"]:
    """Return the coefficients that all parts but one have, for each part but the last, near those that all have.

    A diffusivity that all parts together keep at its least stays there.
    """
    gram, cross, _ = parts.summed()
    room = _room(weights).flatten(1)
    kept = torch.where(room > 0, 0, cross)[:, None] - parts.cross[:, :-1]
    change = _step(gram[:, None] - parts.gram[:, :-1], kept, RIDGE, room[:, None].expand_as(kept))
    return weights[:, None] + change.unflatten(2, weights.shape[1:])


def _room(weights: Float[Tensor, "*B n"]) -> Float[Tensor, "*B n"]:
    """Return by how much each coefficient may fall: a diffusivity down to its least, others by any number."""
    free = torch.full_like(weights[..., :-1], torch.inf)
    return torch.cat([free, weights[..., -1:] - LEAST], dim=-1)


def _step(
    gram: Float[Tensor, "*B q q"], cross: Float[Tensor, "*B q"], damping: Tensor | float, room: Float[Tensor, "*B q"]
) -> Float[Tensor, "*B q"]:
    """Return the change of coefficients, each damped in the unit that its derivative gives it.

    Those that would fall by more than their room fall by it, and the others change as is best with that.
    """
    change = _solution(gram, cross, damping)
    over = change < -room
    if not torch.compiler.is_compiling() and not over.any():
        return change
    bound = torch.where(over, -room, 0)
    rest = (cross - (gram @ bound[..., None])[..., 0]).masked_fill(over, 0)
    free = gram.masked_fill(over[..., None] | over[..., None, :], 0)
    return torch.maximum(bound + _solution(free, rest, damping), -room)


def _solution(gram: Float[Tensor, "*B q q"], cross: Float[Tensor, "*B q"], damping: Tensor | float) -> Tensor:
    """Return the change of coefficients without bounds; 0 of those without products."""
    size = _sizes(gram)
    unit = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    scaled = gram / size[..., None] / size[..., None, :] + damping * unit
    right = (cross / size)[..., None]
    return solved(scaled.flatten(0, -3), right.flatten(0, -3))[..., 0].view_as(cross) / size


def _chosen(
    which: Tensor, weights: Tensor, there: Squares, others: Tensor, here: Squares
) -> tuple[Float[Tensor, "B C n"], Squares]:
    """Return the first where `which` (B,) says so, else the others."""
    weights, gram, cross, value = (
        torch.where(which.view(-1, *(one.ndim - 1) * [1]), one, other)
        for one, other in zip((weights, *there), (others, *here), strict=True)
    )
    return weights, Squares(gram, cross, value)


def _sizes(gram: Float[Tensor, "*B n n"]) -> Float[Tensor, "*B n"]:
    """Return the sizes of what products are of."""
    return gram.diagonal(dim1=-2, dim2=-1).clamp(min=1e-12).sqrt()


def _simpson(frames: Float[Tensor, "B T C H W"], domain: Domain) -> tuple[Tensor, Tensor]:
    """Return terms (B, C, n, p) and steps (B, C, p), means over two intervals, by Simpson's rule on the frames."""
    each = terms(frames.flatten(0, 1), domain).unflatten(0, frames.shape[:2])
    columns = (each[:, :-2] + 4 * each[:, 1:-1] + each[:, 2:]) / 6
    steps = (frames[:, 2:] - frames[:, :-2]) / 2
    return columns.movedim(1, 3).flatten(3), steps.transpose(1, 2).flatten(2)


def _moments(columns: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean products of terms (B, C, n, n), and of terms and steps (B, C, n)."""
    points = columns.shape[-1]
    return columns @ columns.transpose(2, 3) / points, (columns @ steps[..., None])[..., 0] / points
