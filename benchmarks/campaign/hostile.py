"""Hostile input: arrays, files, JSON, names, arguments of functions and options of commands that nobody should give.

Each is read in a fork with limits on memory and time. One sentence is well, and so is taking a value that makes sense;
what makes none (a mask that is ignored, a number that is not finite) counts as accepted in silence.
"""

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from campaign import bombs, draws, examples, options, sandbox, takers
from campaign.answers import of_reader
from campaign.trial import SILENT, WELL, Trial

PART = "hostile"
# Trials of a whole campaign, by kind of input; "files" are every one of their list.
OPTIONS = 0.35  # share of the options' list, which takes a quarter of an hour
SHARES = {"arrays": 250, "times": 60, "JSON": 200, "names": 200, "arguments": 250}


def trials(work: Path, seed: int, share: float = 1.0, names: tuple[str, ...] = ()) -> Iterator[Trial]:
    """Give hostile input to everything that takes input.

    Args:
        work: folder for everything that the trials write.
        seed: of what is drawn.
        share: of the trials of `SHARES`, and of the lists of files and options.
        names: kinds of input; all when empty.
    """
    inputs = work / "inputs"
    examples.make(inputs)
    said = work / "said"
    for name, number in SHARES.items():
        if names and name not in names:
            continue
        count = max(1, round(number * share))
        for value in drawn(draws.STRATEGIES[name], count, seed):
            take = takers.TAKING[name]
            yield judged(name, repr(value), sandbox.forked(partial(answered, take, inputs, value), said))
    rng = random.Random(seed)
    if not names or "files" in names:
        yield from bombs.trials(work, rng, share)
    if not names or "options" in names:
        yield from options.trials(work, rng, share * OPTIONS)


def drawn(strategy: st.SearchStrategy, count: int, seed: int) -> list[Any]:
    """Return values of a strategy, always the same for a seed."""
    found: list[Any] = []

    @seeded(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


def answered(take: Callable[[Path, Any], str | None], inputs: Path, value: Any) -> str:
    """Give a value to a function; return "refused" and the sentence, or "accepted" and why it should not have been."""
    from rdjepa.errors import RdjepaError

    try:
        wrong = take(inputs, value)
    except RdjepaError as error:
        return f"refused\n{error}"
    return f"accepted: {wrong}" if wrong else "accepted"


def judged(name: str, done: str, ended: sandbox.Ended) -> Trial:
    """Return the trial of an answer."""
    outcome, said = of_reader(ended)
    wrong = [line for line in ended.text.splitlines() if line.startswith("accepted: ")]
    if outcome == WELL and wrong:
        outcome, said = SILENT, wrong[-1]
    return Trial(PART, name, done[:400], outcome, said, round(ended.seconds, 3), {"megabytes": ended.megabytes})
