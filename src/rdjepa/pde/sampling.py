"""Random streams addressed by a trajectory's key, and the boxes from which coefficients are drawn."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np


def stream(*address: str | int) -> np.random.Generator:
    """Return the random generator that belongs to an address, such as (family, split, regime, index, attempt, use).

    Equal addresses give equal streams in every process; different ones give independent streams. A number is not equal
    to its text, but to the same number of NumPy.
    """
    parts = (f"str:{part}" if isinstance(part, str) else f"int:{int(part)}" for part in address)
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return np.random.default_rng(np.random.SeedSequence(list(np.frombuffer(digest, dtype="<u4"))))


@dataclass(frozen=True)
class Box:
    """A range (low, high) for every coefficient; each is drawn uniformly and independently, in the order given.

    A coefficient that is fixed has low equal to high.

    Attributes:
        ranges: name -> (low, high).
        name: kind of equation, where the boxes of a regime are kinds, each with a name; "" otherwise.
        derive: turns the numbers drawn into the coefficients, where these depend on one another; None where the numbers
            are the coefficients.
    """

    ranges: Mapping[str, tuple[float, float]]
    name: str = ""
    derive: Callable[[Mapping[str, float]], dict[str, float]] | None = None

    def draw(self, rng: np.random.Generator) -> dict[str, float]:
        """Draw one value for every coefficient."""
        drawn = {name: float(low + (high - low) * rng.random()) for name, (low, high) in self.ranges.items()}
        return self.derive(drawn) if self.derive else drawn


def around(value: float, share: float) -> tuple[float, float]:
    """Return the range (low, high) of values that differ from `value` by up to the fraction `share`."""
    return value * (1 - share), value * (1 + share)
