import re

import pandas as pd
import pytest

from rdjepa.errors import ArgumentError, Note
from rdjepa.study import registry
from rdjepa.study.profiles import PROFILES
from rdjepa.study.registry import CONTROL, Study
from rdjepa.study.report import runs, summary
from rdjepa.study.report.labels import focus
from rdjepa.study.report.material import Material
from rdjepa.study.report.write import write_figures, write_report, write_tables


def ids(texts):
    return {run for text in texts.dropna() for run in str(text).split()}


@pytest.mark.parametrize("name", ["heldout", "source", "boundary", "scratch"])
def test_every_value_of_every_table_leads_to_runs_that_exist(made_study, tmp_path, name):
    rows, records, spectra = made_study(name, trajectories=2)
    paths = write_tables(rows, records, spectra, tmp_path / "new" / "tables", name)
    assert paths[0].name == "tables.md" and all(path.stat().st_size for path in paths)
    known = set(records["id"])
    for path in (path for path in paths if path.suffix == ".csv"):
        table = pd.read_csv(path, dtype={"seeds": str})
        column = table["runs"] if "runs" in table else table["run"]
        assert ids(column) <= known and len(ids(column)) > 1, path
        if "mean" in table:
            assert (table["runs"].notna() == table["mean"].notna()).all(), path
    names = {path.name for path in paths}
    wanted = {"heldout": (2, 3, 4), "source": (1,), "boundary": (5,), "scratch": (4,)}[name]
    assert {n for n in names if n.startswith("supp")} == {f"supplementary-data-{number}.csv" for number in wanted}


def test_supplementary_data_hold_the_runs_behind_the_tables(source, tmp_path):
    rows, records, spectra = source
    write_tables(rows, records, spectra, tmp_path, "source")
    data = pd.read_csv(tmp_path / "supplementary-data-1.csv", dtype={"horizon": str})
    assert (
        len(data) == 5 * 3 * 3 * 3 * 4 * 4 * 6
    )  # systems, K, selections, forecasters, metrics, regimes and all, horizons
    assert list(data["system"].unique()) == list(dict.fromkeys(rows["system"]))
    table = pd.read_csv(tmp_path / "table-s7.csv", dtype={"horizon": str}).set_index(summary.DIMENSIONS)
    place = ("brusselator", 10, "no-latent", "relative_l2", "3", "all")
    chosen = data.set_index(summary.DIMENSIONS).sort_index().loc[place]
    assert 100 * chosen["value"].mean() == pytest.approx(table.loc[place, "mean"])
    assert 100 * chosen["value"].std() == pytest.approx(table.loc[place, "sd"])
    assert set(chosen["run"]) == set(table.loc[place, "runs"].split())


def test_captions_say_what_the_rows_are(made_study, tmp_path):
    rows, records, spectra = made_study("scratch", trajectories=1)
    write_tables(rows, records, spectra[:0], tmp_path, "scratch")
    text = (tmp_path / "table-s14.md").read_text()
    assert "Profile nano, 200 updates, 1 test trajectory per system, support seeds 777, 778, 779" in text
    assert "`table-s14.csv`" in text and not (tmp_path / "spectra.csv").exists()


def test_the_papers_numbers_are_those_of_its_profile():
    paper = PROFILES[runs.PAPER]
    assert (paper.adapt.steps, paper.test, paper.adapt.averaging) == (runs.UPDATES, runs.TESTS, 0)


@pytest.mark.parametrize(
    ("profile", "recorded", "tests", "unlike"),
    [
        ("nano", {"updates": 5_000}, 1, "profile nano is not the paper's"),
        ("paper", {"updates": 200}, 1, "200 updates, not the paper's 5,000"),
        ("paper", {"updates": 5_000, "config": {"averaging": 0.99}}, 1, "averaged weights, not the paper's last ones"),
        ("paper", {"updates": 5_000}, 300, "1 test trajectory per system, not the paper's 300"),
        ("paper", {"updates": 5_000}, 1, ""),
    ],
)
def test_differences_need_all_that_the_paper_has(made_study, tmp_path, monkeypatch, profile, recorded, tests, unlike):
    monkeypatch.setattr(runs, "TESTS", tests)
    rows, records, spectra = made_study("scratch", trajectories=1, profile=profile)
    records = records.assign(**{name: [value] * len(records) for name, value in recorded.items()})
    write_tables(rows, records, spectra[:0], tmp_path, "scratch")
    text = (tmp_path / "table-s14.md").read_text()
    assert text.count("\n| --- |") == (2 if unlike else 3)
    assert f"as published{f'; {unlike}, so no difference is formed' if unlike else ''}." in text
    table = pd.read_csv(tmp_path / "table-s14.csv").dropna(subset=["mean", "published_mean"])
    assert len(table) and table["difference"].isna().all() == bool(unlike)
    expected = table["mean"] - table["published_mean"] if not unlike else table["difference"]
    pd.testing.assert_series_equal(table["difference"], expected, check_names=False, atol=0.006)


def test_figures_are_written_twice(made_study, made_example, tmp_path):
    rows, records, spectra = made_study("scratch", trajectories=1)
    paths = write_figures(rows, records, spectra[:0], made_example, tmp_path / "figures", "scratch")
    stems = ("scratch-fields", "scratch-errors")
    assert [path.name for path in paths] == [f"{stem}.{kind}" for stem in stems for kind in ("pdf", "png")]


def test_the_page_needs_no_other_file(made_study, made_example, tmp_path):
    rows, records, spectra = made_study("scratch", trajectories=2)
    path = write_report(rows, records, spectra[:0], made_example, tmp_path, "scratch")
    text = path.read_text(encoding="utf-8")
    for source in re.findall(r'(?:src|href)="([^"]*)"', text):
        assert source.startswith(("data:image/png;base64,", "data:image/gif;base64,", "#")), source[:60]
    assert not re.search(r"https?:|url\(|<script|<link|@import", text)
    anchors = set(re.findall(r'href="#([^"]+)"', text))
    assert anchors == {"findings", "figures", "forecasts", "tables", "provenance"}
    assert anchors <= set(re.findall(r'id="([^"]+)"', text))
    assert text.count("data:image/gif") == 3 and text.count("data:image/png") == 2
    assert all(run in text for run in records["id"])
    for fact in ("RD-JEPA is lowest in", "(paper: 18 of 18)", "200 updates", "As published", "prefers-color-scheme"):
        assert fact in text


def test_the_page_says_what_is_not_there(made_study, tmp_path, unsaved):
    rows, records, _ = made_study("scratch", trajectories=2)
    few = rows[(rows["system"] == "barkley") & (rows["forecaster"] == "rd-jepa")]
    spectra = pd.DataFrame()
    text = write_report(few, records, spectra, lambda run: None, tmp_path, "scratch").read_text(encoding="utf-8")
    assert "no setting is complete enough" in text and "data:image/gif" not in text and "#forecasts" not in text


def test_uneven_selections_are_told_with_the_tables_and_with_the_figures(made_study, made_example, tmp_path, unsaved):
    rows, records, spectra = made_study("scratch", trajectories=1)
    every = write_tables(rows, records, spectra[:0], tmp_path, "scratch")[0].read_text()
    lacking = (rows["support_seed"] == 778) & (rows["system"] == "barkley") & (rows["forecaster"] == "scratch")
    fewer = rows[~(lacking & (rows["k"] == 5))]
    told = "not all have the same at Barkley with K = 5;"
    assert told not in every and told in write_tables(fewer, records, spectra[:0], tmp_path, "scratch")[0].read_text()
    with pytest.warns(Note, match=told):
        write_figures(fewer, records, spectra[:0], made_example, tmp_path, "scratch")


def test_a_run_without_a_record_is_refused(made_study, tmp_path):
    rows, records, spectra = made_study("scratch", trajectories=1)
    with pytest.raises(ValueError, match=f"expected a record of every run, got none of {records['id'].iloc[0]};"):
        write_tables(rows, records[1:], spectra, tmp_path / "x", "scratch")
    assert not (tmp_path / "x").exists()


def test_one_of_a_thing_is_counted_in_the_singular(made_study):
    rows, records, _ = made_study("scratch", trajectories=1)
    one = rows["support_seed"] == 777
    text = runs.sentence(rows[one], records.assign(updates=1))
    assert text == "Profile nano, 1 update, 1 test trajectory per system, support seed 777"
    reduced = records.assign(updates=1, **{"config.precision": "bfloat16", "config.averaging": 0.99})
    assert runs.sentence(rows[one], reduced).startswith("Profile nano, 1 update in bfloat16, averaged weights, 1 test")
    reduced.loc[reduced.index[0], "config.precision"] = "float32"
    assert "1 update in bfloat16 or float32, averaged" in runs.sentence(rows[one], reduced)
    for devices, said in ((["cpu"], ", averaged"), (["cpu", "cuda:0", "cuda:1"], " on cpu or cuda, averaged")):
        placed = reduced.assign(**{"software.accelerator": [devices[i % len(devices)] for i in range(len(reduced))]})
        assert f"in bfloat16 or float32{said}" in runs.sentence(rows[one], placed)


def test_a_study_is_about_the_subject_that_it_names(registrations, made_study, made_example, tmp_path, unsaved):
    registry.register(Study("mine", "From scratch", ("barkley",), CONTROL, cells="heldout", subject="scratch"))
    rows, records, spectra = made_study("scratch", trajectories=2)
    rows = rows[rows["system"] == "barkley"]
    tables = write_tables(rows, records, spectra[:0], tmp_path, "mine")[0].read_text()
    assert tables.startswith("# Tables: From scratch\n")
    assert "All forecasters: Architecture-matched scratch is lowest in" in tables
    assert "of Architecture-matched scratch minus that of another" in tables
    page = write_report(rows, records, spectra[:0], made_example, tmp_path, "mine").read_text(encoding="utf-8")
    assert "<title>From scratch</title>" in page
    animated = Material.of(summary.prepare(rows), spectra[:0], made_example, "mine")
    assert animated.subject == "scratch" and ("barkley", 1, "scratch/rd-jepa") in {key[:3] for key in animated.known}


def test_a_table_that_the_paper_lacks_is_refused(registrations, made_study, tmp_path):
    registry.register(Study("mine", "Mine", ("barkley",), CONTROL, cells="heldout", published=("99",)))
    rows, records, spectra = made_study("scratch", trajectories=1)
    with pytest.raises(ArgumentError, match=r"expected a published table among 1, S6, .*, got '99'"):
        write_tables(rows, records, spectra[:0], tmp_path, "mine")


def test_provenance_joins_what_is_the_same_and_lists_what_is_not(made_study):
    rows, records, _ = made_study("scratch", trajectories=1)
    software = [{"torch": "2.13"}] * len(records)
    records = records.assign(software=software, created=[f"2030-01-{1 + i % 9:02}" for i in range(len(records))])
    records = records.assign(trajectories=[f"{i:04}" for i in range(len(records))], checkpoint="")
    records["config"] = [{"seed": 777} if i else {} for i in range(len(records))]
    flat = runs.of_rows(rows, records)
    facts = {name: (text, values) for name, text, values in runs.facts(flat)}
    assert facts["software.torch"] == ("2.13", [])
    assert facts["created"] == ("2030-01-01 to 2030-01-09", [])
    assert facts["config.seed"] == ("777", [])
    text, values = facts["trajectories"]
    assert text == "54 different" and len(values) == 54
    assert "checkpoint" not in facts and "id" not in facts
    costs = runs.costs(flat.assign(**{"seconds.adapt": 1.25, "parameters": 1234567}))
    assert [labels for labels, _ in costs.rows] == [("RD-JEPA",), ("Architecture-matched scratch",)]
    assert [text.text for text in costs.rows[0][1]] == ["27", "1,234,567", "200", "1.2"]


def test_the_tables_say_where_every_cell_ran(made_study, tmp_path):
    rows, records, spectra = made_study("scratch", trajectories=1)
    pretrained = records["forecaster"] == "rd-jepa"
    there = {"device": "NVIDIA H200", "source": "0123"}
    records["software"] = [there if one else {"device": "AMD EPYC", "source": "4567"} for one in pretrained]
    records["config"] = [{"precision": "bfloat16"} if one else {} for one in pretrained]
    paths = write_tables(rows, records, spectra[:0], tmp_path, "scratch")
    text = paths[0].read_text(encoding="utf-8")
    assert "| RD-JEPA | NVIDIA H200 | bfloat16 | 1 | 27 |" in text
    assert "| Architecture-matched scratch | AMD EPYC | — | 1 | 27 |" in text
    lines = pd.read_csv(tmp_path / "devices.csv", dtype=str, keep_default_na=False)
    assert set(lines["run"]) == set(records["id"]) and len(lines) == len(records)
    devices = records.set_index("id")["software"].map(lambda each: each["device"])
    assert (lines.set_index("run")["device"] == devices.loc[lines["run"]]).all()
    records["software"] = [{"device": "AMD EPYC"}] * len(records)  # early records have no code
    text = write_tables(rows, records, spectra[:0], tmp_path, "scratch")[0].read_text(encoding="utf-8")
    assert "| RD-JEPA | AMD EPYC | bfloat16 | — | 27 |" in text
    first = lines[["forecaster", "system", "k", "support_seed"]].iloc[0].tolist()
    assert first == ["rd-jepa", "lambda-omega", "1", "777"]


def test_a_report_is_about_another_pretrained_forecaster_until_there_are_rows_of_its_subject():
    assert focus(["scratch", "rd-jepa", "rd-jepa-auto"], "rd-jepa-auto") == "rd-jepa-auto"
    assert focus(["scratch", "rd-jepa-auto"], "rd-jepa-decoder") == "rd-jepa-auto"
    assert focus(["scratch", "persistence"], "rd-jepa-decoder") == "scratch"
