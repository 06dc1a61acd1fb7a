"""Schedules of pretraining as pure functions of the step (S2.5 and the optimization table)."""

import math


def cosine(start: float, end: float, progress: float) -> float:
    """Follow half a cosine from `start` at progress 0 to `end` at progress 1, constant outside."""
    return end + (start - end) * 0.5 * (1 + math.cos(math.pi * min(max(progress, 0.0), 1.0)))


def learning_rate(step: int, steps: int, warmup: int, peak: float, minimum: float) -> float:
    """Return the learning rate: linear warm-up, then a cosine to `minimum` at the last step.

    Args:
        step: index of the optimizer step, from 0.
        steps: length of the run.
        warmup: steps of the warm-up, from peak / warmup to peak.
        peak: largest rate.
        minimum: rate of the last step.
    """
    if step < warmup:
        return peak * (step + 1) / warmup
    return cosine(peak, minimum, (step - warmup) / max(steps - 1 - warmup, 1))


def ema_momentum(step: int, steps: int, start: float, end: float) -> float:
    """Return the averaging coefficient m_s, on a cosine from `start` to `end` over the run."""
    return cosine(start, end, step / max(steps - 1, 1))
