from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rdjepa.data.trajectory import Key, Trajectory

FIRST = Key("gray_scott")


@pytest.fixture
def make() -> Callable[..., Trajectory]:
    """Build a small trajectory of random fields on an oblong grid, so that exchanged axes show."""

    def build(key: Key | None = FIRST, shape: tuple[int, ...] = (12, 6, 8, 2), **changes: Any) -> Trajectory:
        rng = np.random.default_rng(shape[0] + (key.index if key else 0))
        values: dict[str, Any] = {
            "fields": rng.normal(size=shape).astype(np.float32),
            "times": np.arange(shape[0]) / 3.0,
            "coefficients": {"feed": 0.1, "kill": 1 / 3},
            "key": key,
            "attempt": 2,
            "rejected": ("stationary", "spread below 0.02"),
            "initial_condition": "spots",
            "length": 2.5,
            "boundary": "periodic",
            "software": {"numpy": np.__version__},
        }
        return Trajectory(**(values | changes))

    return build
