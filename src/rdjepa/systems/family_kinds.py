"""The kinds of equations in the family: ranges of what is drawn for each, and the scales of time and length.

The rate of an equation is the root mean square of its Jacobian over the states of the initial condition. Time is scaled
so that it has the value that was drawn, per saved interval, and D_u so that a field of that rate spreads over the drawn
number of grid cells. Where the explicit step would not be stable, time is slowed down and lengths are kept.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rdjepa.pde.sampling import Box
from rdjepa.systems import family_forms as forms

SPACING = 2.0 / 128
DT = 0.01
DIFFUSION_NUMBER = 0.2  # largest D dt / dx^2; explicit Euler is stable up to 0.25

Ranges = dict[str, tuple[float, float]]


def _symmetric(*names: str, width: float = 1.0) -> Ranges:
    return dict.fromkeys(names, (-width, width))


def _jacobian(form: forms.Form, evaluate: Callable[..., tuple]) -> float:
    """Return the root mean square, over states within reach, of the Frobenius norm of the Jacobian."""
    p = forms.kinetics_of(form.terms)
    grid = np.linspace(-0.9, 0.9, 7)
    u, v = (base + reach * x for base, reach, x in zip(form.base, form.reach, np.meshgrid(grid, grid), strict=True))
    total = np.zeros_like(u)
    for du, dv in ((1e-4 * form.reach[0], 0.0), (0.0, 1e-4 * form.reach[1])):
        ahead, behind = evaluate(u + du, v + dv, **p), evaluate(u - du, v - dv, **p)
        total += sum(((a - b) / (2 * (du + dv))) ** 2 for a, b in zip(ahead, behind, strict=True))
    return float(np.sqrt(total.mean()))


class Scales(NamedTuple):
    """Ranges of rate (per saved interval), diffusion length (grid cells) and D_v / D_u."""

    rate: tuple[float, float]
    cells: tuple[float, float]
    ratio: tuple[float, float] | None = None

    @property
    def ranges(self) -> Ranges:
        """The same as ranges of a box, in natural logarithms."""
        spans = {"ln_rate": self.rate, "ln_cells": self.cells} | ({"ln_ratio": self.ratio} if self.ratio else {})
        return {name: (float(np.log(low)), float(np.log(high))) for name, (low, high) in spans.items()}


def _kind(
    name: str,
    build: Callable[[forms.Drawn], forms.Form],
    scales: Scales,
    ranges: Ranges,
    evaluate: Callable[..., tuple],
) -> Box:
    def derive(drawn: forms.Drawn) -> dict[str, float]:
        form = build(drawn)
        ratio = form.ratio or float(np.exp(drawn["ln_ratio"]))
        cells = float(np.exp(drawn["ln_cells"]))
        rate = min(float(np.exp(drawn["ln_rate"])), DIFFUSION_NUMBER / (DT * cells**2 * max(1.0, ratio)))
        speed = rate / _jacobian(form, evaluate)
        terms = forms.kinetics_of(form.terms)
        diffusivity = rate * (cells * SPACING) ** 2
        return {
            **{key: value * speed if key in forms.RATES else value for key, value in terms.items()},
            **{"D_u": diffusivity, "D_v": diffusivity * ratio},
            **dict(zip(forms.LEVELS, (*form.base, *form.reach), strict=True)),
        }

    return Box(ranges | scales.ranges, name, derive)


def kinds(evaluate: Callable[..., tuple]) -> tuple[Box, ...]:
    """Return the kinds of the family, one box each.

    Args:
        evaluate: the kinetics of the family.
    """
    every = ("f10", "f01", "g10", "g01", "f20", "f11", "f02", "g20", "g11", "g02")
    cubic = tuple(side + n for side in "fg" for n in ("30", "21", "12", "03"))
    table: tuple[tuple[str, Callable[[forms.Drawn], forms.Form], Scales, Ranges], ...] = (
        (
            "damped cubic",
            forms.cubic,
            Scales((0.5, 2.5), (0.8, 2.5), (0.2, 5)),
            {
                **_symmetric(*every, *cubic),
                **{"f01": (-1.5, -0.2), "g10": (0.2, 1.5), "growth": (0.1, 0.6), "margin": (0.3, 1)},
                **_symmetric("u_0", "v_0", width=0.5),
            },
        ),
        (
            "excitable",
            forms.excitable,
            Scales((2, 7), (0.7, 1.4), (0.05, 1)),
            {
                **{"a": (0.02, 0.15), "strength": (1.3, 5), "mixed": (0, 1), "slowness": (0.01, 0.06)},
                **{"linear": (0.2, 1), "square": (-0.3, 0.8)},
            },
        ),
        (
            "oscillatory",
            forms.oscillatory,
            Scales((0.6, 2), (0.7, 2.2), (0.2, 5)),
            {
                **{"growth": (0.3, 1), "rotation": (0.4, 2), "skew": (0.4, 2), "delay": (-0.3, 0.4)},
                **{"damping_u": (0.4, 1.5), "damping_v": (0.1, 1), "mixed": (0, 1)},
                **_symmetric("f20", "f11", "f02", "g20", "g11", "f21", width=0.6),
            },
        ),
        (
            "bistable",
            forms.bistable,
            Scales((0.8, 4), (1.5, 3), (0.3, 8)),
            {
                **{"bias": (-0.2, 0.2), "square": (-0.4, 0.4), "coupling": (-1, 0.3), "mixed": (-0.3, 0.3)},
                **{"slowness": (0.02, 0.5), "gain": (0.3, 1.6), "bend": (-0.4, 0.4)},
            },
        ),
        (
            "activator-inhibitor",
            forms.activator_inhibitor,
            Scales((0.8, 4), (1.0, 2)),
            {
                **{"growth": (0.4, 1), "loss": (1.1, 2), "excess": (0.1, 0.8), "drive": (0.5, 2)},
                **{"square": (-0.8, 0.8), "mixed": (-0.3, 0.3), "above": (1.2, 2.5)},
            },
        ),
        (
            "substrate-depletion",
            forms.substrate_depletion,
            Scales((0.8, 4), (1.0, 2.5), (2, 20)),
            {"supply_u": (0.01, 0.12), "supply_v": (0.4, 1.0), "spontaneous": (0, 0.05), "saturation": (0, 0.2)},
        ),
        (
            "saturated activator",
            forms.saturated_activator,
            Scales((0.8, 4), (1.0, 2), (6, 20)),
            {"supply": (0.01, 0.15), "saturation": (0, 0.3), "division": (3, 30), "turnover": (1.05, 3)},
        ),
        (
            "consumer-resource",
            forms.consumer_resource,
            Scales((0.5, 3), (0.7, 2), (0.3, 3)),
            {
                **{"equilibrium": (0.1, 0.45), "efficiency": (0.2, 1), "feeding": (2, 6)},
                **{"h": (2, 7), "k": (0, 4)},
            },
        ),
        (
            "substrate inhibition",
            forms.substrate_inhibition,
            Scales((0.6, 2.5), (0.8, 2), (1, 16)),
            {"supply": (8, 14), "share": (3.5, 4.5), "turnover": (0.8, 6), "h": (0, 0.3)},
        ),
    )
    return tuple(_kind(*row, evaluate) for row in table)
