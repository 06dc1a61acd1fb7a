"""The short form of the campaign, for the test suite: a few trials of every part, always the same, in a minute."""

import random
from collections.abc import Iterator
from pathlib import Path

from campaign import bombs, damage, hostile, kills, kinds, options, resources
from campaign.trial import Trial

SEED = 0
# What does not go well yet, by part and target or its beginning; each is tried by the whole campaign.
UNMENDED: dict[str, tuple[str, ...]] = {
    "damage": (
        "trajectory", "record of a trajectory", "manifest", "recipe", "support sets", "weights",
        "configuration of a checkpoint", "data of a checkpoint", "run state", "data of a run", "metrics of a run",
        "frames of a run", "statistics of the frames", "forecaster", "settings of a study", "statistics of a study",
        "record of a cell", "spectra of a cell", "curve of a cell", "example of a cell", "exported", "npz", "PDEBench",
    ),
    "hostile": ("times", "JSON", "names", "arguments", "arrays", "files", "options"),
}  # fmt: skip


def trials(work: Path) -> Iterator[Trial]:
    """Make the trials of every part, without those of `UNMENDED`."""
    rng = random.Random(SEED)
    yield from damage.trials(work, SEED, 3, tuple(k.name for k in kinds.kinds() if _mended("damage", k.name)))
    if inputs := tuple(name for name in hostile.SHARES if _mended("hostile", name)):
        yield from hostile.trials(work, SEED, 0.06, inputs)
    if _mended("hostile", "files"):
        yield from bombs.trials(work, rng, 0.02)
    if _mended("hostile", "options"):
        yield from options.trials(work, rng, 0.01)
    yield from kills.trials(work, SEED, 0.03, ("simulate", "data build", "study run"))
    yield from resources.trials(work, SEED, 1, ("simulate",))


def _mended(part: str, target: str) -> bool:
    return not target.startswith(UNMENDED.get(part, ()))
