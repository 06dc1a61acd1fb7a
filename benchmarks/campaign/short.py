"""The short form of the campaign, for the test suite: a few trials of every part, always the same, in two minutes."""

import random
from collections.abc import Iterator
from pathlib import Path

from campaign import bombs, damage, hostile, kills, load, options, resources
from campaign.trial import Trial

SEED = 0


def trials(work: Path) -> Iterator[Trial]:
    """Make a few trials of every part."""
    rng = random.Random(SEED)
    yield from damage.trials(work, SEED, 3)
    yield from hostile.trials(work, SEED, 0.06, tuple(hostile.SHARES))
    yield from bombs.trials(work, rng, 0.02)
    yield from options.trials(work, rng, 0.004)
    yield from kills.trials(work, 28, 0.02, ("simulate", "data build", "study run"))  # each by another signal
    yield from resources.trials(work, SEED, 1, ("simulate",))
    yield from load.trials(work, cells=40, keys=40, files=20)
