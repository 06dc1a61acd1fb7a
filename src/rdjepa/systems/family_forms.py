"""The kinds of equations in the family: the coefficients that follow from the numbers drawn, in natural units.

Every function takes the numbers drawn for its kind, by name; `family_kinds` has their ranges and sets the scales.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

POLYNOMIAL = tuple(f"{i}{j}" for degree in range(4) for j in range(degree + 1) for i in (degree - j,))
RATIONAL = ("p", "q", "r")  # factors of the three rational terms
SHAPES = ("h", "k", "n")  # constants of their denominators; with 0 there is none
RATES = tuple(f"{side}{term}" for side in "fg" for term in (*POLYNOMIAL, *RATIONAL))
LEVELS = ("u_0", "v_0", "u_1", "v_1")

Drawn = Mapping[str, float]


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


def cubic(d: Drawn) -> Form:
    """Return any polynomial up to cubic with a linear part that grows and a damping that outweighs the cubic terms."""
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


def excitable(d: Drawn) -> Form:
    """Return a fast u that makes excursions from rest, and a slow v that ends them.

    f = u (1 - u) (u - a) - v (c + w u), where v goes to a linear and a quadratic term of u.
    """
    slow = d["slowness"]
    excited = 0.8 * d["linear"] + 0.64 * d["square"]  # where v goes while u is 0.8, the edge of the excited branch
    inhibition = d["strength"] * 0.14 / excited  # 0.14 is the largest of u (1 - u) (u - a); more ends the excursion
    terms = {
        **{"f10": -d["a"], "f20": 1 + d["a"], "f30": -1.0},
        **{"f01": -(1 - d["mixed"]) * inhibition, "f11": -d["mixed"] * inhibition / 0.8},
        **{"g10": slow * d["linear"], "g20": slow * d["square"], "g01": -slow},
    }
    return Form(terms, (0.0, 0.0), (1.0, 0.14 / inhibition))


def oscillatory(d: Drawn) -> Form:
    """Return a focus that grows, with quadratic terms and a damping of its own in each component."""
    terms = {"f10": d["growth"], "f01": -d["rotation"], "g10": d["rotation"] * d["skew"], "g01": d["delay"]}
    terms |= {name: d[name] for name in ("f20", "f11", "f02", "g20", "g11", "f21")}
    terms |= {"f30": -d["damping_u"], "f12": -d["mixed"], "g03": -d["damping_v"], "g21": -d["mixed"]}
    size = float(np.sqrt(d["growth"] / d["damping_u"]))
    return Form(terms, (0.0, 0.0), (1.5 * size, 1.5 * size))


def bistable(d: Drawn) -> Form:
    """Return a u with two stable states, and a v that follows it and pushes back or along."""
    terms = {
        **{"f00": d["bias"], "f10": 1.0, "f20": d["square"], "f30": -1.0, "f01": d["coupling"], "f11": d["mixed"]},
        **{"g10": d["slowness"] * d["gain"], "g20": d["slowness"] * d["bend"], "g01": -d["slowness"]},
    }
    return Form(terms, (0.0, 0.0), (1.1, d["gain"]))


def activator_inhibitor(d: Drawn) -> Form:
    """Return a cubic activator and a linear inhibitor, stable without diffusion, with D_v / D_u above critical."""
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


def substrate_depletion(d: Drawn) -> Form:
    """Return an activator u that is made from a substrate v at a rate u^2 v / (1 + k u^2)."""
    base_u = d["supply_u"] + d["supply_v"]
    terms = {
        **{"f00": d["supply_u"], "f10": -1.0, "f01": d["spontaneous"], "fq": 1.0, "k": d["saturation"]},
        **{"g00": d["supply_v"], "g01": -d["spontaneous"], "gq": -1.0},
    }
    base_v = d["supply_v"] / (d["spontaneous"] + base_u**2 / (1 + d["saturation"] * base_u**2))
    return Form(terms, (base_u, base_v), (0.6 * base_u, 0.6 * base_v))


def saturated_activator(d: Drawn) -> Form:
    """Return an activator made at a rate u^2 / ((1 + k u^2) (1 + n v)), and an inhibitor v made from its square."""
    make = (1 - d["supply"]) * (1 + d["saturation"]) * (1 + d["division"])  # so that (1, 1) is an equilibrium
    terms = {
        **{"f00": d["supply"], "f10": -1.0, "fr": make, "k": d["saturation"], "n": d["division"]},
        **{"g20": d["turnover"], "g01": -d["turnover"]},
    }
    return Form(terms, (1.0, 1.0), (0.6, 0.6))


def consumer_resource(d: Drawn) -> Form:
    """Return a resource that grows to a limit, and a consumer whose feeding saturates."""
    u = d["equilibrium"]
    denominator = 1 + d["h"] * u + d["k"] * u * u
    death = d["efficiency"] * d["feeding"] * u / denominator
    terms = {
        **{"f10": 1.0, "f20": -1.0, "fp": -d["feeding"], "h": d["h"], "k": d["k"]},
        **{"gp": d["efficiency"] * d["feeding"], "g01": -death},
    }
    v = (1 - u) * denominator / d["feeding"]
    return Form(terms, (u, v), (0.9 * u, 0.9 * v))


def substrate_inhibition(d: Drawn) -> Form:
    """Return a reaction u v / (1 + h u + k u^2) that too much of u slows down; both are supplied, v by u."""
    u = d["supply"] / (1 + d["share"])
    terms = {
        **{"f00": d["supply"], "f10": -1.0, "fp": -d["share"], "h": d["h"], "k": 1.0},
        **{"g10": d["turnover"], "gp": -d["turnover"]},
    }
    v = 1 + d["h"] * u + u * u
    return Form(terms, (u, v), (0.6 * u, 0.6 * v))
