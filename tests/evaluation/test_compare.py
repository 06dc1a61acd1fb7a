"""Paired comparisons find the difference that was put in, and say how sure they are."""

import numpy as np
import pandas as pd
import pytest

from rdjepa.evaluation.compare import compare, pairs, skill


def rows(errors: dict[str, np.ndarray], system: str = "barkley") -> pd.DataFrame:
    """Rows from contender -> errors (supports, trajectories); horizons differ by a factor whose mean is 1."""
    lines = [
        ("heldout", "nano", system, 1, 777 + s, name, "id", "mse", horizon, t, value * factor)
        for name, table in errors.items()
        for (s, t), value in np.ndenumerate(table)
        for horizon, factor in ((1, 0.5), (2, 1.5))
    ]
    columns = [
        "study",
        "profile",
        "system",
        "k",
        "support_seed",
        "contender",
        "regime",
        "metric",
        "horizon",
        "trajectory",
        "value",
    ]
    return pd.DataFrame(lines, columns=columns)


def tables(rng, difference, supports=8, trajectories=40):
    """Two contenders on crossed supports and trajectories, each with an effect of its own on the difference."""
    shared = 5 + rng.standard_normal((supports, trajectories))
    effect = rng.standard_normal((supports, 1)) * 0.3 + rng.standard_normal(trajectories) * 0.5
    return {"a": shared + difference + effect, "b": shared}


def test_a_constant_difference_is_found_without_doubt():
    base = np.random.default_rng(0).uniform(1, 2, (3, 7))
    [line] = compare(rows({"a": base - 0.25, "b": base}), "a", "b", "mse", draws=200).to_dict("records")
    assert (line["low"], line["difference"], line["high"]) == pytest.approx((-0.25, -0.25, -0.25))
    assert (line["won"], line["supports"], line["trajectories"]) == (1.0, 3, 7)


def test_reductions_are_means_of_matched_ratios():
    a, b = np.array([[1.0, 3.0], [1.0, 1.0]]), np.array([[4.0, 4.0], [2.0, 8.0]])
    [line] = compare(rows({"a": a, "b": b}), "a", "b", "mse", draws=50).to_dict("records")
    assert line["reduction"] == pytest.approx(np.mean([50, 80]))
    assert line["reduction_sd"] == pytest.approx(np.std([50, 80], ddof=1))
    assert line["won"] == 1 and line["reduction_low"] <= line["reduction"] <= line["reduction_high"]


def test_the_two_sides_mirror_each_other():
    table = rows(tables(np.random.default_rng(1), 0.2))
    [there] = compare(table, "a", "b", "mse").to_dict("records")
    [back] = compare(table, "b", "a", "mse").to_dict("records")
    assert there["difference"] == pytest.approx(-back["difference"])
    assert (there["low"], there["high"]) == pytest.approx((-back["high"], -back["low"]))
    assert there["won"] == pytest.approx(1 - back["won"])


def test_intervals_cover_the_true_difference_about_as_often_as_they_say():
    rng = np.random.default_rng(2)
    covered = []
    for _ in range(150):
        [line] = compare(rows(tables(rng, 1.0)), "a", "b", "mse", draws=300).to_dict("records")
        covered.append(line["low"] <= 1.0 <= line["high"])
    assert 0.86 <= np.mean(covered) <= 0.995


def test_supports_widen_the_interval():
    rng = np.random.default_rng(3)
    shared = 5 + rng.standard_normal((4, 30))
    noisy = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    widths = []
    for effect in (0 * noisy, noisy):
        trajectory = rng.standard_normal(30) * 0.1
        [line] = compare(rows({"a": shared + effect + trajectory, "b": shared}), "a", "b", "mse").to_dict("records")
        widths.append(line["high"] - line["low"])
    assert widths[1] > 5 * widths[0]


def test_only_matched_supports_count_and_other_trajectories_are_refused():
    base = np.ones((3, 4))
    table = pd.concat([rows({"a": base[:2] / 2}), rows({"b": base})])
    assert set(pairs(table, "a", "b", "mse").support_seed) == {777, 778}
    with pytest.raises(ValueError, match="on the same trajectories"):
        pairs(pd.concat([rows({"a": base[:, :3]}), rows({"b": base})]), "a", "b", "mse")
    with pytest.raises(ValueError, match="run both"):
        compare(table, "a", "c", "mse")
    with pytest.raises(ValueError, match="got two"):
        pairs(pd.concat([table, table]), "a", "b", "mse")


def test_every_setting_is_compared_on_its_own():
    base = np.ones((2, 3))
    table = pd.concat([rows({"a": base, "b": 2 * base}), rows({"a": 3 * base, "b": 2 * base}, "oregonator")])
    found = compare(table, "a", "b", "mse", draws=10).set_index("system")
    assert found.won.to_dict() == {"barkley": 1.0, "oregonator": 0.0}


def test_skill_is_one_for_perfect_none_for_equal_negative_for_worse():
    still = np.array([[2.0, 4.0], [1.0, 1.0]])
    errors = {"perfect": 0 * still, "equal": still, "double": 2 * still, "half": still / 2, "persistence": still}
    found = skill(rows(errors), "mse", ["persistence"]).set_index("contender")
    assert found.skill.to_dict() == {"perfect": 1, "equal": 0, "double": -1, "half": 0.5}
    assert (found.sd == 0).all() and (found.supports == 2).all() and set(found.baseline) == {"persistence"}
    with pytest.raises(ValueError, match="extrapolation"):
        skill(rows(errors), "mse")
