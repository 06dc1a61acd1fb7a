"""The kinds of equations in the family: what is drawn for each, and the coefficients that follow from it.

A kind is written in its natural units. `_kind` then sets the scales: time, so that the Jacobian over the states of the
initial condition has the root mean square that was drawn, per saved interval; and length, so that a field of that rate
diffuses over the drawn number of grid cells. Where the explicit step would not be stable, time is slowed down and
lengths are kept.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from rdjepa.pde.sampling import Box

SPACING = 2.0 / 128
DT = 0.01
DIFFUSION_NUMBER = 0.2  # largest D dt / dx^2; explicit Euler is stable up to 0.25

POLYNOMIAL = tuple(f"{i}{j}" for degree in range(4) for j in range(degree + 1) for i in (degree - j,))
RATIONAL = ("p", "q", "r")  # factors of the three rational terms
SHAPES = ("h", "k", "n")  # constants of their denominators; with 0 there is none
RATES = tuple(f"{side}{term}" for side in "fg" for term in (*POLYNOMIAL, *RATIONAL))
LEVELS = ("u_0", "v_0", "u_1", "v_1")

Drawn = Mapping[str, float]
Ranges = dict[str, tuple[float, float]]


class Form(NamedTuple):
    """An equation in natural units.

    Attributes:
        terms: the coefficients of the kinetics that are not zero, by name.
        base: a state (u, v) around which, or out of which, trajectories begin.
        reach: how far initial states go from there in u and v, in either direction.
        ratio: D_v / D_u where it follows from the kinetics; else it is drawn.
    """

    terms: dict[str, float]
    base: tuple[float, float]
    reach: tuple[float, float]
    ratio: float | None = None


def kinetics_of(terms: Mapping[str, float]) -> dict[str, float]:
    """Return all coefficients of the kinetics, those that are not given at the value at which they do nothing."""
    return dict.fromkeys((*RATES, *SHAPES), 0.0) | dict(terms)


def _symmetric(*names: str, width: float = 1.0) -> Ranges:
    return dict.fromkeys(names, (-width, width))


def _cubic(d: Drawn) -> Form:
    """Any polynomial up to cubic, a linear part that grows, and a damping that outweighs the cubic terms far out."""
    jacobian = np.array([[d["f10"], d["f01"]], [d["g10"], d["g01"]]])
    shift = d["growth"] - float(np.linalg.eigvals(jacobian).real.max())
    names = ("30", "21", "12", "03")
    angle = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    powers = np.stack([np.cos(angle) ** int(n[0]) * np.sin(angle) ** int(n[1]) for n in names])
    cubic = np.array([[d[side + n] for n in names] for side in "fg"]) @ powers
    damping = max(0.0, float((cubic[0] * np.cos(angle) + cubic[1] * np.sin(angle)).max())) + d["margin"]
    terms = {side + n: d[side + n] for side in "fg" for n in ("10", "01", "20", "11", "02", *names)}
    for side, own, cross in (("f", "30", "12"), ("g", "03", "21")):
        terms[side + own] -= damping
        terms[side + cross] -= damping
    terms["f10"] += shift
    terms["g01"] += shift
    size = float(np.sqrt(np.abs(jacobian).max() / d["margin"]))
    return Form(terms, (d["u_0"] * size, d["v_0"] * size), (size, size))


def _excitable(d: Drawn) -> Form:
    """A fast u that returns to rest after an excursion, and a slow v that ends it: f = u (1 - u) (u - a) - v (c + w u)."""
    slow = d["slowness"]
    excited = 0.8 * d["linear"] + 0.64 * d["square"]  # where v goes while u is 0.8, the edge of the excited branch
    inhibition = d["strength"] * 0.14 / excited  # 0.14 is the largest of u (1 - u) (u - a); more ends the excursion
    terms = {
        **{"f10": -d["a"], "f20": 1 + d["a"], "f30": -1.0},
        **{"f01": -(1 - d["mixed"]) * inhibition, "f11": -d["mixed"] * inhibition / 0.8},
        **{"g10": slow * d["linear"], "g20": slow * d["square"], "g01": -slow},
    }
    return Form(terms, (0.0, 0.0), (1.0, 0.14 / inhibition))


def _oscillatory(d: Drawn) -> Form:
    """A focus that grows, with quadratic terms and a damping of its own in each component."""
    terms = {"f10": d["growth"], "f01": -d["rotation"], "g10": d["rotation"] * d["skew"], "g01": d["delay"]}
    terms |= {name: d[name] for name in ("f20", "f11", "f02", "g20", "g11", "f21")}
    terms |= {"f30": -d["damping_u"], "f12": -d["mixed"], "g03": -d["damping_v"], "g21": -d["mixed"]}
    size = float(np.sqrt(d["growth"] / d["damping_u"]))
    return Form(terms, (0.0, 0.0), (1.5 * size, 1.5 * size))


def _bistable(d: Drawn) -> Form:
    """A u with two stable states, and a v that follows it and pushes back or along."""
    terms = {
        **{"f00": d["bias"], "f10": 1.0, "f20": d["square"], "f30": -1.0, "f01": d["coupling"], "f11": d["mixed"]},
        **{"g10": d["slowness"] * d["gain"], "g20": d["slowness"] * d["bend"], "g01": -d["slowness"]},
    }
    return Form(terms, (0.0, 0.0), (1.1, d["gain"]))


def _activator_inhibitor(d: Drawn) -> Form:
    """A cubic activator and a linear inhibitor, stable without diffusion, patterned with D_v / D_u above critical."""
    a, loss = d["growth"], d["growth"] * d["loss"]
    determinant = a * loss * d["excess"]
    cross = a * loss + determinant  # minus f01 times g10
    terms = {
        **{"f10": a, "f01": -cross / d["drive"], "f20": d["square"], "f11": d["mixed"], "f30": -1.0},
        **{"g10": d["drive"], "g01": -loss},
    }
    critical = ((np.sqrt(determinant) + np.sqrt(cross)) / a) ** 2
    size = float(np.sqrt(a))
    return Form(terms, (0.0, 0.0), (size, size * d["drive"] / loss), float(critical * d["above"]))


def _substrate_depletion(d: Drawn) -> Form:
    """An activator u that is made from a substrate v, u^2 v / (1 + k u^2), at a rate that may saturate."""
    base_u = d["supply_u"] + d["supply_v"]
    terms = {
        **{"f00": d["supply_u"], "f10": -1.0, "f01": d["spontaneous"], "fq": 1.0, "k": d["saturation"]},
        **{"g00": d["supply_v"], "g01": -d["spontaneous"], "gq": -1.0},
    }
    base_v = d["supply_v"] / (d["spontaneous"] + base_u**2 / (1 + d["saturation"] * base_u**2))
    return Form(terms, (base_u, base_v), (0.6 * base_u, 0.6 * base_v))


def _saturated_activator(d: Drawn) -> Form:
    """An activator that is inhibited by division, u^2 / ((1 + k u^2) (1 + n v)), and an inhibitor made from its square."""
    make = (1 - d["supply"]) * (1 + d["saturation"]) * (1 + d["division"])  # so that (1, 1) is an equilibrium
    terms = {
        **{"f00": d["supply"], "f10": -1.0, "fr": make, "k": d["saturation"], "n": d["division"]},
        **{"g20": d["turnover"], "g01": -d["turnover"]},
    }
    return Form(terms, (1.0, 1.0), (0.6, 0.6))


def _consumer_resource(d: Drawn) -> Form:
    """A resource that grows to a limit, and a consumer whose feeding saturates."""
    u = d["equilibrium"]
    denominator = 1 + d["h"] * u + d["k"] * u * u
    death = d["efficiency"] * d["feeding"] * u / denominator
    terms = {
        **{"f10": 1.0, "f20": -1.0, "fp": -d["feeding"], "h": d["h"], "k": d["k"]},
        **{"gp": d["efficiency"] * d["feeding"], "g01": -death},
    }
    v = (1 - u) * denominator / d["feeding"]
    return Form(terms, (u, v), (0.9 * u, 0.9 * v))


def _substrate_inhibition(d: Drawn) -> Form:
    """A reaction u v / (1 + h u + k u^2) that too much of u slows down; both are supplied, v by u."""
    u = d["supply"] / (1 + d["share"])
    terms = {
        **{"f00": d["supply"], "f10": -1.0, "fp": -d["share"], "h": d["h"], "k": 1.0},
        **{"g10": d["turnover"], "gp": -d["turnover"]},
    }
    v = 1 + d["h"] * u + u * u
    return Form(terms, (u, v), (0.6 * u, 0.6 * v))


def _jacobian(form: Form, evaluate: Callable[..., tuple]) -> float:
    """Return the root mean square, over states within reach, of the Frobenius norm of the Jacobian."""
    p = kinetics_of(form.terms)
    grid = np.linspace(-0.9, 0.9, 7)
    u, v = (base + reach * x for base, reach, x in zip(form.base, form.reach, np.meshgrid(grid, grid), strict=True))
    total = np.zeros_like(u)
    for du, dv in ((1e-4 * form.reach[0], 0.0), (0.0, 1e-4 * form.reach[1])):
        ahead, behind = evaluate(u + du, v + dv, **p), evaluate(u - du, v - dv, **p)
        total += sum(((a - b) / (2 * (du + dv))) ** 2 for a, b in zip(ahead, behind, strict=True))
    return float(np.sqrt(total.mean()))


class Scales(NamedTuple):
    """Ranges of the logarithms of rate (per saved interval), diffusion length (grid cells) and D_v / D_u."""

    rate: tuple[float, float]
    cells: tuple[float, float]
    ratio: tuple[float, float] | None = None

    @property
    def ranges(self) -> Ranges:
        """As ranges of a box, in natural logarithms."""
        spans = {"ln_rate": self.rate, "ln_cells": self.cells} | ({"ln_ratio": self.ratio} if self.ratio else {})
        return {name: (float(np.log(low)), float(np.log(high))) for name, (low, high) in spans.items()}


def _kind(
    name: str, build: Callable[[Drawn], Form], scales: Scales, ranges: Ranges, evaluate: Callable[..., tuple]
) -> Box:
    def derive(drawn: Drawn) -> dict[str, float]:
        form = build(drawn)
        ratio = form.ratio or float(np.exp(drawn["ln_ratio"]))
        cells = float(np.exp(drawn["ln_cells"]))
        rate = min(float(np.exp(drawn["ln_rate"])), DIFFUSION_NUMBER / (DT * cells**2 * max(1.0, ratio)))
        speed = rate / _jacobian(form, evaluate)
        terms = kinetics_of(form.terms)
        diffusivity = rate * (cells * SPACING) ** 2
        return {
            **{key: value * speed if key in RATES else value for key, value in terms.items()},
            **{"D_u": diffusivity, "D_v": diffusivity * ratio},
            **dict(zip(LEVELS, (*form.base, *form.reach), strict=True)),
        }

    return Box(ranges | scales.ranges, name, derive)


def kinds(evaluate: Callable[..., tuple]) -> tuple[Box, ...]:
    """Return the kinds of the family, one box each.

    Args:
        evaluate: the kinetics of the family.
    """
    every = ("f10", "f01", "g10", "g01", "f20", "f11", "f02", "g20", "g11", "g02")
    cubic = tuple(side + n for side in "fg" for n in ("30", "21", "12", "03"))
    table: tuple[tuple[str, Callable[[Drawn], Form], Scales, Ranges], ...] = (
        (
            "damped cubic",
            _cubic,
            Scales((0.5, 2.5), (1.0, 3), (0.2, 5)),
            {
                **_symmetric(*every, *cubic),
                **{"f01": (-1.5, -0.2), "g10": (0.2, 1.5), "growth": (0.1, 0.6), "margin": (0.3, 1)},
                **_symmetric("u_0", "v_0", width=0.5),
            },
        ),
        (
            "excitable",
            _excitable,
            Scales((2, 6), (0.8, 1.6), (0.05, 1)),
            {
                **{"a": (0.02, 0.15), "strength": (1.3, 5), "mixed": (0, 1), "slowness": (0.01, 0.06)},
                **{"linear": (0.2, 1), "square": (-0.3, 0.8)},
            },
        ),
        (
            "oscillatory",
            _oscillatory,
            Scales((0.4, 2), (0.8, 3), (0.2, 5)),
            {
                **{"growth": (0.3, 1), "rotation": (0.4, 2), "skew": (0.4, 2), "delay": (-0.3, 0.4)},
                **{"damping_u": (0.4, 1.5), "damping_v": (0.1, 1), "mixed": (0, 1)},
                **_symmetric("f20", "f11", "f02", "g20", "g11", "f21", width=0.6),
            },
        ),
        (
            "bistable",
            _bistable,
            Scales((0.8, 4), (1.5, 3), (0.3, 8)),
            {
                **{"bias": (-0.2, 0.2), "square": (-0.4, 0.4), "coupling": (-1, 0.3), "mixed": (-0.3, 0.3)},
                **{"slowness": (0.02, 0.5), "gain": (0.3, 1.6), "bend": (-0.4, 0.4)},
            },
        ),
        (
            "activator-inhibitor",
            _activator_inhibitor,
            Scales((0.8, 4), (1.0, 2)),
            {
                **{"growth": (0.4, 1), "loss": (1.1, 2), "excess": (0.1, 0.8), "drive": (0.5, 2)},
                **{"square": (-0.8, 0.8), "mixed": (-0.3, 0.3), "above": (1.2, 2.5)},
            },
        ),
        (
            "substrate-depletion",
            _substrate_depletion,
            Scales((0.8, 4), (1.0, 2.5), (2, 20)),
            {"supply_u": (0.01, 0.12), "supply_v": (0.4, 1.0), "spontaneous": (0, 0.05), "saturation": (0, 0.2)},
        ),
        (
            "saturated activator",
            _saturated_activator,
            Scales((0.8, 4), (1.0, 2), (6, 20)),
            {"supply": (0.01, 0.15), "saturation": (0, 0.3), "division": (3, 30), "turnover": (1.05, 3)},
        ),
        (
            "consumer-resource",
            _consumer_resource,
            Scales((0.5, 3), (0.8, 2.2), (0.3, 3)),
            {
                **{"equilibrium": (0.1, 0.45), "efficiency": (0.2, 1), "feeding": (2, 6)},
                **{"h": (2, 7), "k": (0, 4)},
            },
        ),
        (
            "substrate inhibition",
            _substrate_inhibition,
            Scales((0.6, 2.5), (0.8, 2), (1, 16)),
            {"supply": (8, 14), "share": (3.5, 4.5), "turnover": (0.8, 6), "h": (0, 0.3)},
        ),
    )
    return tuple(_kind(*row, evaluate) for row in table)
