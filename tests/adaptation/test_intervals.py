"""The coverage that split-conformal prediction promises, on data for which it promises it, and what it refuses."""

import tracemalloc

import numpy as np
import pytest

from rdjepa.adaptation import intervals
from rdjepa.adaptation.intervals import (
    BLOCK,
    FLOOR,
    PARTS,
    Calibration,
    calibrate,
    hold_out,
    pooled,
    scales,
    warn_of_stillness,
)
from rdjepa.data.statistics import Normalizer
from rdjepa.errors import ArgumentError, DataError

UNIT = Normalizer((0.0, 0.0), (1.0, 1.0), "support")


def blocks(rng, count, points, repeats):
    """Scores (1, repeats, 1, points, 1) of exchangeable blocks, of which each has its own scale in every repeat."""
    scale = np.exp(rng.normal(size=(count, 1, repeats, 1, 1, 1)))
    return list(scale * np.abs(rng.standard_normal((count, 1, repeats, 1, points, 1))))


@pytest.mark.parametrize(("count", "level"), [(19, 0.9), (9, 0.9), (39, 0.5)])
def test_one_score_a_block_is_covered_as_promised_and_hardly_more(count, level):
    repeats = 4_000
    *known, new = blocks(np.random.default_rng(1), count + 1, 1, repeats)
    inside = new[0, :, 0, :, 0] <= pooled(known).factors(level)
    error = 3.5 * np.sqrt(level * (1 - level) / repeats)
    assert level - error <= inside.mean() <= level + 1 / (count + 1) + error


def test_many_dependent_scores_a_block_are_covered_at_least_as_promised():
    repeats, level = 1_000, 0.8
    *known, new = blocks(np.random.default_rng(2), 16, 50, repeats)
    shares = (new[0, :, 0, :, 0] <= pooled(known).factors(level)).mean(axis=1)
    # counted one by one, the 15 x 50 scores would get nearly no correction, and a coverage below the level
    assert level - 3.5 * np.std(shares) / np.sqrt(repeats) <= shares.mean() <= level + 1 / 16 + 0.02


def test_every_block_has_the_same_weight_whatever_it_holds():
    few, many = np.ones((1, 1, 1, 2, 1)), np.full((1, 1, 1, 900, 1), 5.0)
    found = pooled([few, few, few, many])
    assert found.factors(0.59)[0, 0] == 1 and found.factors(0.61)[0, 0] == 5


@pytest.mark.parametrize("points", [300, 150, 7])
def test_a_quantile_is_the_least_score_that_its_share_of_a_block_does_not_exceed(points):
    scores = np.random.default_rng(4).permutation(np.arange(1.0, points + 1)).reshape(1, 1, 1, points, 1)
    found = pooled([scores]).scores[0, 0]
    shares = np.arange(1, intervals.QUANTILES + 1)
    assert found.tolist() == np.ceil(shares * points / intervals.QUANTILES).tolist()


def test_factors_rise_with_the_level_and_are_per_horizon_and_component():
    rng = np.random.default_rng(3)
    scores = np.abs(rng.standard_normal((40, 9, 5, 4, 4, 2))) * np.arange(1, 6).reshape(5, 1, 1, 1)
    found = pooled(list(scores))
    low, high = found.factors(0.5), found.factors(0.9)
    assert low.shape == (5, 2) and (low < high).all() and (np.diff(high, axis=0) > 0).all()


def test_the_scale_is_the_local_change_above_a_floor_and_in_the_units_of_each_component():
    newest, made = np.zeros((1, 12, 12, 2)), np.zeros((1, 5, 12, 12, 2))
    made[0, 2, :6] = 3.0
    normalizer = Normalizer((1.0, 2.0), (1.0, 10.0), "support")
    found = scales(made, newest, normalizer)
    assert np.allclose(found[0, 0], [FLOOR, 10 * FLOOR])
    assert np.allclose(found[0, 2, 0, 0], [np.hypot(3.0, FLOOR), 10 * np.hypot(0.3, FLOOR)])
    assert np.allclose(found[0, 2, -1, 0], [FLOOR, 10 * FLOOR])


def noisy(seed, frames=2 * BLOCK + 8, side=16):
    return np.random.default_rng(seed).standard_normal((frames, side, side, 2)).astype(np.float32)


def test_windows_are_cut_into_blocks_of_time_and_space():
    found = calibrate(lambda context: np.zeros((len(context), 5, 16, 16, 2), np.float32), UNIT, [noisy(0), noisy(1)])
    assert (found.trajectories, found.blocks) == (2, 2 * 2 * PARTS**2)
    assert found.scores.shape == (5, 2, 64 * intervals.QUANTILES)
    # a context of one window only, as short as it may be
    assert calibrate(lambda c: np.zeros((len(c), 5, 16, 16, 2)), UNIT, [noisy(0, 9)]).blocks == PARTS**2


@pytest.mark.parametrize("side", [2, 3])
def test_a_grid_of_few_points_has_fewer_parts(side):
    found = calibrate(lambda c: np.zeros((len(c), 5, side, side, 2)), UNIT, [noisy(0, 9, side), noisy(1, 9, side)])
    assert found.blocks == 2 * side**2


def test_memory_is_bounded_by_one_trajectory_and_one_block_of_windows():
    """Blocks are kept as their quantiles: other trajectories, and longer ones, take no more."""

    def peak(*given):
        tracemalloc.start()
        calibrate(lambda c: np.zeros((len(c), 5, 48, 48, 2), np.float32), UNIT, given)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    one, many, long = noisy(0, side=48), [noisy(seed, side=48) for seed in range(4)], noisy(0, 12 * BLOCK, 48)
    peak(one)  # what is imported on the way
    assert peak(*many) < 1.2 * peak(one) and peak(long) < 1.5 * peak(one)


def test_a_small_level_has_a_narrow_interval():
    found = Calibration(np.sort(np.random.default_rng(0).random((5, 2, 800))), 8, 1)
    assert (found.factors(1e-13) == found.scores[..., 0]).all()


def test_a_level_that_the_blocks_cannot_give_and_one_that_is_none_are_refused():
    found = Calibration(np.ones((5, 2, 800)), 8, 1)
    assert (found.factors(8 / 9) == 1).all()
    with pytest.raises(ArgumentError, match=r"at most 0\.888.*8 blocks.*got 0\.9; calibrate on more"):
        found.factors(0.9)
    levels: list = [0, 1, 90, -0.5, float("nan"), "wide"]
    for level in levels:
        with pytest.raises(ArgumentError, match=r"expected the level of an interval \(--level, level=\) "):
            found.factors(level)


def test_nothing_to_calibrate_on_and_forecasts_that_are_not_finite_are_refused():
    with pytest.raises(DataError, match="at least one window"):
        calibrate(lambda context: context, UNIT, [])
    with pytest.raises(DataError, match="expected finite forecasts"):
        calibrate(lambda context: np.full((len(context), 5, 16, 16, 2), np.nan), UNIT, [noisy(0)])


def test_what_hardly_moves_is_said_to_tell_little_of_what_does(recwarn):
    moving, still = noisy(0, 12), noisy(1, 9)
    still[1:] = still[0] + 0.05 * noisy(2, 8)
    warn_of_stillness([moving], [moving[:9], still])
    warn_of_stillness([still], [moving])
    still[..., 1] = noisy(3, 9)[..., 1]  # something moves
    warn_of_stillness([moving], [still])
    assert not recwarn
    still[..., 1] = 2.0
    with pytest.warns(UserWarning, match=r"got frames that change 0\.0\d+ times as much"):
        warn_of_stillness([moving], [still])


def test_the_last_trajectories_are_held_out_or_the_end_of_a_single_one():
    several = [noisy(seed, 9) for seed in range(5)]
    for share, kept in ((0.4, 2), (0.01, 1), (0.99, 4)):
        adapted, held = hold_out(several, share)
        assert [*map(id, adapted), *map(id, held)] == [*map(id, several)] and len(held) == kept
    (start,), (end,) = hold_out([noisy(0, 30)], 0.4)
    assert (len(start), len(end)) == (18, 12)
    assert np.array_equal(np.concatenate([start, end]), noisy(0, 30))


@pytest.mark.parametrize(
    ("share", "kind", "words"),
    [(0.0, ArgumentError, "share held out"), (1.0, ArgumentError, "between 0 and 1"), (0.9, DataError, "got 3 and 27")],
)
def test_a_share_that_leaves_no_window_on_a_side_is_refused(share, kind, words):
    with pytest.raises(kind, match=words):
        hold_out([noisy(0, 30)], share)


def test_the_scale_is_a_mean_over_five_points_along_both_sides():
    made = np.zeros((1, 5, 12, 12, 2))
    made[0, 0, 6, 4] = 1.0
    near = np.zeros((12, 12), dtype=bool)
    near[4:9, 2:7] = True
    found = scales(made, np.zeros((1, 12, 12, 2)), UNIT)[0, 0, ..., 0]
    assert np.allclose(found[near], np.hypot(1 / 5, FLOOR)) and np.allclose(found[~near], FLOOR)


def test_scores_are_in_units_of_the_change_since_the_newest_frame():
    fields = noisy(0, 9)
    found = calibrate(lambda context: np.repeat(context[:, -1:], 5, axis=1), UNIT, [fields])  # nothing changes
    expected = (np.abs(fields[4:] - fields[3]) / FLOOR).max(axis=(1, 2))
    assert np.allclose(found.scores[..., -1], expected, rtol=1e-5)
