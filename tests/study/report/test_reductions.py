from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rdjepa.study import changes
from rdjepa.study.changes import Change
from rdjepa.study.report import reductions, summary, write
from rdjepa.study.report.ablation import SELECTED, WITH_FAMILY, _points, equations
from rdjepa.study.report.ablation import reductions as drawn
from rdjepa.study.report.material import Material
from rdjepa.study.report.reductions import against_control, spread


def rows(errors):
    """forecaster -> (supports, trajectories) errors at two horizons, of one system at K = 1."""
    found = []
    for forecaster, table in errors.items():
        for (support, trajectory), value in np.ndenumerate(np.asarray(table, dtype=float)):
            for horizon, share in ((1, 0.5), (2, 1.5)):
                run = f"{forecaster}{support}"
                found.append(("barkley", 1, 777 + support, forecaster, "id", horizon, trajectory, share * value, run))
    names = ["system", "k", "support_seed", "forecaster", "regime", "horizon", "trajectory", "value", "run"]
    return pd.DataFrame(found, columns=names).assign(metric="mse")


CONTROL = np.random.default_rng(0).uniform(1, 2, (3, 20))


def test_a_constant_ratio_has_no_interval_whatever_the_control_does():
    table = rows({"scratch": CONTROL, "reference": 0.8 * CONTROL, "family": 1.5 * CONTROL})
    found = against_control(table, "scratch", ("mse",)).set_index("forecaster")
    assert found.loc["reference", ["reduction", "low", "high"]].tolist() == pytest.approx([0.2, 0.2, 0.2])
    assert found.loc["family", ["reduction", "low", "high"]].tolist() == pytest.approx([-0.5, -0.5, -0.5])
    assert found.loc["reference", ["group", "supports", "trajectories"]].tolist() == ["objectives", 3, 20]
    assert set(found.loc["reference", "runs"].split()) == {
        f"{n}{s}" for n in ("scratch", "reference") for s in range(3)
    }


def test_the_interval_is_that_of_the_ratio_of_means():
    """To first order the deviation of a ratio is that of its residuals over the mean of the control."""
    random = np.random.default_rng(1)
    control = random.uniform(1, 2, (1, 400))
    error = 0.7 * control + random.normal(0, 0.2, control.shape)
    found = against_control(rows({"scratch": control, "family": error}), "scratch", ("mse",), resamples=4000).iloc[0]
    ratio = error.mean() / control.mean()
    expected = 2 * 1.96 * (error - ratio * control).std(ddof=1) / 20 / control.mean()
    assert found["reduction"] == pytest.approx(1 - ratio) and found["low"] < found["reduction"] < found["high"]
    assert found["high"] - found["low"] == pytest.approx(expected, rel=0.06)


def test_every_selection_counts_as_much_however_large_its_errors_are():
    """S3.4: a mean of matched reductions, not a ratio that is formed after pooling."""
    control = np.stack([CONTROL[0], 100 * CONTROL[1]])
    error = control * np.array([[0.4], [1.2]])
    found = against_control(rows({"scratch": control, "family": error}), "scratch", ("mse",)).iloc[0]
    assert found["reduction"] == pytest.approx((0.6 - 0.2) / 2)
    assert found["low"] == pytest.approx(-0.2) and found["high"] == pytest.approx(0.6)


def test_only_matched_forecasts_count_and_one_of_them_has_no_interval():
    table = rows({"scratch": [[2.0], [9.0]], "family": [[1.0]]})
    found = against_control(table, "scratch", ("mse",)).iloc[0]
    assert found["reduction"] == 0.5 and np.isnan(found["low"]) and found["supports"] == 1
    text = reductions.sheet(against_control(table, "scratch", ("mse",)), "mse", "caption").rows[0][1][0]
    assert (text.text, text.bold) == ("50.0 [—]", False)


def test_an_interval_is_the_same_whatever_stands_beside_it():
    one = rows({"scratch": CONTROL, "family": CONTROL**2})
    last = one.assign(k=5)
    table = pd.concat([last, one, one.assign(system="brusselator")])
    found, alone = (against_control(each, "scratch", ("mse",)) for each in (table, last))
    place = (found["system"] == "barkley") & (found["k"] == 5)
    pd.testing.assert_frame_equal(found[place].reset_index(drop=True), alone)


def test_without_the_control_there_is_no_reduction():
    assert against_control(rows({"family": [[1.0]]}), "scratch", ("mse",)).empty


def test_the_table_has_the_changes_in_their_groups_and_marks_what_is_above_zero():
    noise = np.random.default_rng(2).normal(0, 0.5, CONTROL.shape)
    errors = {"scratch": CONTROL, "tuned-as-scratch": CONTROL + noise, "family": 0.5 * CONTROL, "reference": CONTROL}
    sheet = reductions.sheet(against_control(rows(errors), "scratch", ("mse",)), "mse", "caption")
    assert [labels for labels, _ in sheet.rows] == [
        ("What the encoder learns from", "Predictive latent (reference)"),
        ("Which equations it sees", "Random equations alone"),
        ("How it is adapted", "All tuned as from scratch"),
    ]
    assert [texts[0].bold for _, texts in sheet.rows] == [False, True, False]
    assert sheet.columns == (("Barkley", "K = 1"),)


def test_the_spread_between_pretrainings_is_told_from_that_between_supports():
    base = np.array([[1.0, 3.0], [3.0, 5.0]])  # means 2 and 4 over trajectories
    table = rows({"reference": base, "seed-2": base + 1, "seed-3": base + 2, "family": 9 * base})
    found = spread(table, "mse").iloc[0]
    assert found["pretrainings"] == 3 and found["error"] == pytest.approx(4)
    assert found["between_pretrainings"] == pytest.approx(1.0)  # 3, 4, 5
    assert found["between_supports"] == pytest.approx(np.sqrt(2))  # 2 and 4, shifted
    assert spread(rows({"reference": base}), "mse").empty
    fewer = spread(rows({"reference": base, "seed-2": base[:1] + 1}), "mse").iloc[0]
    assert fewer["error"] == pytest.approx(2.5) and set(fewer["runs"].split()) == {"reference0", "seed-20"}


def test_a_reduction_of_fewer_selections_says_so():
    errors = {"scratch": CONTROL, "family": 0.5 * CONTROL, "reference": 0.5 * CONTROL[:1]}
    sheet = reductions.sheet(against_control(rows(errors), "scratch", ("mse",)), "mse", "caption")
    reference, family = (texts[0].text for _, texts in sheet.rows)
    assert reference.endswith("] (1)") and family.endswith("]")


def test_points_of_the_figure_are_numbers_of_equations_seen(registrations):
    assert _points("barkley") == {
        **{"one-equation": 1, "two-equations": 2, "three-equations": 3, "four-equations": 4},
        **{"reference": 5, "sources-and-family": 6},
    }
    changes.register(Change("two-without-tubes", "Two, no tubes", "parts", sources=2, without=("tubes",)))
    assert "two-without-tubes" not in _points("barkley")
    left_out = _points("brusselator")
    assert left_out["reference"] == 4 and "four-equations" not in left_out


def test_a_begun_ablation_has_tables_figures_and_a_page(tmp_path, made_study, made_example, unsaved):
    made, records, spectra = made_study("ablation", trajectories=2)
    first = made["system"].eq("brusselator") & made["forecaster"].isin(["scratch", "reference", "masked-fields"])
    begun = made[first]
    material = (begun, records[records["id"].isin(begun["run"])], spectra[spectra["run"].isin(begun["run"])])
    written = {path.name for path in write.write_tables(*material, tmp_path, "ablation")}
    assert {"tables.md", "reductions.md", "reductions.csv", "paired.csv"} <= written and "spread.md" not in written
    text = (tmp_path / "tables.md").read_text()
    assert "Masked reconstruction of fields" in text and text.index("Reduction of the error") < text.index("Paired")
    page = write.write_report(*material, made_example, tmp_path, "ablation").read_text()
    assert "Reduction of the error by every change" in page and "As published" not in page


def test_a_whole_ablation_has_every_change_in_its_table_and_few_in_its_spectra(made_study, made_example):
    made, _, spectra = made_study("ablation", trajectories=2)
    prepared = summary.prepare(made)
    material = Material.of(prepared, spectra, made_example, "ablation")
    assert set(material.few) == {"reference", "scratch"} and material.subject == "reference"
    assert set(material.reductions["forecaster"]) == set(prepared["forecaster"]) - {"scratch"}
    assert not spread(prepared, "relative_l2").empty


def test_an_ablation_with_more_selections_than_markers_is_drawn(made_study, made_example):
    made, _, spectra = made_study("ablation", trajectories=2)
    material = Material.of(summary.prepare(made), spectra, made_example, "ablation")
    parts = [material.reductions.assign(support_seed=777 + n) for n in range(len(SELECTED) + 1)]
    figure = drawn(replace(material, reductions=pd.concat(parts)))
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(texts) == len(parts) * material.reductions["k"].nunique() and len(set(texts)) == len(texts)


def test_lines_over_the_number_of_equations_begin_at_the_control_and_leave_out_random_ones(made_study, made_example):
    made, _, spectra = made_study("ablation", trajectories=2)
    material = Material.of(summary.prepare(made), spectra, made_example, "ablation")
    found = material.reductions.query("support_seed == 777")
    figure = equations(replace(material, reductions=found))
    for axes, system in zip(figure.axes, material.systems, strict=True):
        points = _points(system)
        names = ["one-equation", "reference"]
        assert [points[name] < WITH_FAMILY for name in (*names, "sources-and-family")] == [True, True, False]
        lines = [line.get_xydata() for line in axes.lines if len(line.get_xydata()) == len(names) + 1]
        lines = [line for line in lines if line[0].tolist() == [0, 0]]
        assert len(lines) == found["k"].nunique() == 2
        for k, line in zip((1, 5), lines, strict=True):
            values = found[(found["system"] == system) & (found["k"] == k)].set_index("forecaster")["reduction"]
            assert line[1:] == pytest.approx(np.array([[points[name], 100 * values[name]] for name in names]))


def test_another_seed_draws_another_interval():
    table = rows({"scratch": CONTROL, "family": CONTROL**2})
    lows = [against_control(table, "scratch", ("mse",), seed=seed)["low"].iloc[0] for seed in (5, 5, 6)]
    assert lows[0] == lows[1] != lows[2]
