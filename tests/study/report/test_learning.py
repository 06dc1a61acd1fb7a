import numpy as np
import pandas as pd
import pytest

from rdjepa.study.report import learning


@pytest.fixture
def curve():
    """Errors of two forecasters under two selections: 10 % for one and 20 % for the other at first, then halved."""
    rows = [
        {
            "system": "barkley", "k": 1, "support_seed": seed, "forecaster": name, "weights": weights,
            "updates": updates, "metric": metric, "horizon": horizon, "trajectory": 0,
            "value": first * (100 / updates) + seed_step,
        }
        for name, first in (("scratch", 0.2), ("rd-jepa", 0.1))
        for seed, seed_step in ((777, 0.0), (778, 0.02))
        for weights in ("last", "averaged")
        for updates in (100, 200)
        for metric in ("relative_l2", "gradient_l1")
        for horizon in (1, 2)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_means_are_over_selections(curve):
    found = learning.means(curve).set_index(["forecaster", "weights", "updates"])
    assert found["mean"]["rd-jepa", "last", 200] == pytest.approx(0.06)
    assert found["sd"]["scratch", "averaged", 100] == pytest.approx(np.std([0.2, 0.22], ddof=1))
    assert set(found["n"]) == {2}


def test_only_selections_that_all_forecasters_have_are_compared(curve, tmp_path):
    behind = curve[(curve["forecaster"] == "rd-jepa") | (curve["support_seed"] == 777)]
    found = learning.means(behind).set_index(["forecaster", "weights", "updates"])
    assert set(found["n"]) == {1}
    assert found["mean"]["rd-jepa", "last", 200] == pytest.approx(0.05)
    apart = curve[(curve["forecaster"] == "rd-jepa") == (curve["support_seed"] == 777)]
    assert learning.write_curve(apart, tmp_path, "Held out") == []


def test_an_adaptation_that_ended_early_for_one_selection_has_no_mean_after_that(curve):
    early = curve[(curve["forecaster"] != "rd-jepa") | (curve["support_seed"] != 777) | (curve["updates"] == 100)]
    found = learning.means(early)
    assert set(found["n"]) == {2}
    assert set(found.loc[found["forecaster"] == "rd-jepa", "updates"]) == {100}
    (_, ours), (_, theirs) = learning.table(found).rows
    assert [text.bold for text in ours] == [True, False, True, False] and not any(text.bold for text in theirs)


def test_a_table_has_a_column_per_weights_and_updates_and_marks_the_lowest(curve):
    sheet = learning.table(learning.means(curve))
    assert sheet.columns == tuple((w, f"{n} updates") for w in ("averaged", "last") for n in (100, 200))
    (_, ours), (_, theirs) = sheet.rows
    assert [text.bold for text in ours] == [True] * 4 and not any(text.bold for text in theirs)
    assert ours[0].text == "11.00 ± 1.41"


def test_systems_are_in_the_order_of_tables(curve, tmp_path):
    both = pd.concat([curve, curve.assign(system="lambda-omega"), curve.assign(system="of-my-own")])
    found = learning.means(both)
    assert list(dict.fromkeys(found["system"])) == ["lambda-omega", "barkley", "of-my-own"]
    assert [names[0] for names, _ in learning.table(found).rows[::2]] == ["Lambda–Omega", "Barkley", "of-my-own"]
    learning.write_curve(both, tmp_path, "Held out")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "curve.csv"), found, check_dtype=False)


def test_files_are_written_and_an_empty_curve_writes_none(curve, tmp_path):
    paths = learning.write_curve(curve, tmp_path, "Held out")
    assert {path.name for path in paths} >= {"curve.md", "curve.csv", "curve.pdf", "curve.png"}
    assert all(path.stat().st_size for path in paths)
    assert learning.write_curve(curve.iloc[:0], tmp_path / "none", "Held out") == []
    assert not (tmp_path / "none").exists()


def test_settings_without_rows_have_no_panel(curve):
    found = learning.means(pd.concat([curve, curve.assign(system="oregonator"), curve.assign(k=5)]))
    panels = learning._figure(found).axes
    shown = [panel for panel in panels if panel.axison]
    assert len(panels) == 4 and [panel.get_title() for panel in shown] == [
        "Barkley, K = 1", "Barkley, K = 5", "Oregonator, K = 1",
    ]  # fmt: skip
    assert [bool(panel.get_xlabel()) for panel in shown] == [False, True, True]
    assert [bool(panel.get_ylabel()) for panel in shown] == [True, False, True]
