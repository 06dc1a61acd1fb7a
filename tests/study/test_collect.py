"""Rows come from cells that are what their names say, or from the few files made of them, the same way."""

import hashlib
import json
import os
import shutil
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rdjepa.errors import Note, StudyError
from rdjepa.io import sealed
from rdjepa.io.atomic import write_arrays
from rdjepa.study import collect, registry
from rdjepa.study.directory import Directory
from rdjepa.study.fingerprints import identifier
from rdjepa.study.mixtures import refuse_other_references
from rdjepa.study.record import read_record

COLUMNS = "study profile system k support_seed forecaster regime metric horizon trajectory value run"


@pytest.fixture
def copied(tmp_path, finished):
    shutil.copytree(finished, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture(scope="module")
def exported(tmp_path_factory, finished):
    """An export of all cells; tests only read it."""
    out = tmp_path_factory.mktemp("exported")
    collect.export(finished, out)
    return out


@pytest.fixture
def export(tmp_path, exported):
    """An export that a test may change."""
    return shutil.copytree(exported, tmp_path / "export")


@pytest.fixture
def trained(copied):
    """The record of the cell that has updates."""
    return next(record for record in collect.read_records(copied) if record["forecaster"] == "riesz-no")


def rewrite(folder, **changes):
    """Changes a record by someone who knows how to seal it."""
    record = json.loads((folder / "record.json").read_text())
    sealed.write(
        folder / "record.json", {key: value for key, value in (record | changes).items() if key != sealed.SEAL}
    )


def twin(root, record, cell, **identity):
    """Copies a cell to one of another identity, and returns the folder of that."""
    content = record["identity"] | {"cell": record["identity"]["cell"] | cell} | identity
    other = root / "cells" / identifier(content)
    shutil.copytree(root / "cells" / record["id"], other)
    rewrite(other, id=other.name, identity=content, **cell)
    return other


@pytest.mark.parametrize("name", ["rows.parquet", "spectra.parquet", "examples.npz", "records.json"])
def test_a_terabyte_of_holes_in_an_export_is_refused(export, name):
    os.truncate(export / name, 2**40)
    with pytest.raises(StudyError, match=f"expected at most .* bytes (of JSON )?in .*{name}, got 1099511627776"):
        (collect.records if name == "records.json" else collect.spectra if name[0] == "s" else collect.collect)(export)
        collect.examples(export)(str(collect.records(export)["id"][0]))


def test_columns_and_runs(finished):
    rows = collect.collect(finished)
    assert " ".join(rows.columns) == COLUMNS
    assert set(rows.run) == set(collect.records(finished)["id"]) == set(collect.spectra(finished).run)
    assert collect.collect(finished, "source").empty and collect.collect(finished, profile="paper").empty
    assert len(collect.collect(finished, "heldout", "nano")) == len(rows)


def test_spectra_add_up_to_the_mean_square_error(finished):
    spectra, rows = collect.spectra(finished), collect.collect(finished)
    records = {record["id"]: record for record in collect.read_records(finished)}
    for (run, horizon), part in spectra.groupby(["run", "horizon"]):
        mse = rows[(rows.run == run) & (rows.horizon == horizon) & (rows.metric == "mse")].value.item()
        low, high = sorted(std**2 for std in records[run]["normalizer"]["std"])
        assert mse / high * 0.999 <= part.error.sum() <= mse / low * 1.001


def test_a_curve_has_the_errors_of_last_and_averaged_weights_and_ends_with_those_of_the_rows(finished):
    curve, rows = collect.curve(finished), collect.collect(finished)
    assert set(curve.forecaster) == {"riesz-no"} and set(curve.updates) == {1}
    places = ["forecaster", "metric", "horizon", "trajectory", "regime"]
    final = rows.set_index(places)["value"]
    for weights in ("last", "averaged"):  # the average of one update is its weights
        part = curve[curve.weights == weights].set_index(places)["value"]
        assert len(part) == 2 * 5 and part.eq(final.reindex(part.index)).all()


def test_a_cell_that_was_shortened_before_the_first_measurement_has_no_curve(finished):
    record: Any = dict(next(each for each in collect.read_records(finished) if each["identity"].get("curve")))
    record |= {"identity": {**record["identity"], "curve": [200, 4]}, "updates": 2_000, "made": 2_000}
    assert collect._curved(record)
    record["made"] = 100
    assert not collect._curved(record)
    del record["made"]  # records of early versions have none
    assert collect._curved(record)


def test_the_scratch_study_is_a_view_of_the_held_out_cells(registrations, finished):
    scratch = registry.get("scratch")
    assert scratch.forecasters == ("rd-jepa", "scratch") and scratch.cells == "heldout"
    registry.register(replace(scratch, name="view", forecasters=("persistence",), budgets=(1,), seeds=(777,)))
    rows = collect.collect(finished, "view")
    assert set(rows.study) == {"view"} and set(rows.forecaster) == {"persistence"}
    registry.register(replace(scratch, name="elsewhere", systems=("barkley",), forecasters=None))
    assert collect.collect(finished, "elsewhere").empty


def test_a_study_that_names_no_forecasters_has_every_one_but_those_that_keep_a_pretrained_decoder():
    cell = {"study": "heldout", "system": "barkley", "k": 1, "support_seed": 777}
    heldout, decoder = registry.get("heldout"), registry.get("decoder")
    for name in (*heldout.compared(), "of-another-session"):
        assert heldout.has(cell | {"forecaster": name})
    assert not heldout.has(cell | {"forecaster": "rd-jepa-decoder"})
    ablation = registry.get("ablation")
    assert ablation.has(cell | {"study": "ablation", "forecaster": "of-another-session"})
    assert not ablation.has(cell | {"study": "ablation", "forecaster": "fno"})
    assert decoder.has(cell | {"forecaster": "rd-jepa-decoder"}) and not decoder.has(cell | {"forecaster": "fno"})


def test_exported_examples_are_those_of_the_cells_in_half_precision(finished, exported):
    examples = [collect.examples(root) for root in (finished, exported)]
    for record in collect.read_records(finished):
        kept, small = (example(record["id"]) for example in examples)
        assert kept is not None and small is not None and kept.keys() == small.keys()
        for name, fields in kept.items():
            assert small[name].dtype == np.float32
            np.testing.assert_allclose(small[name], fields, rtol=1e-3, atol=1e-3)
    assert collect.examples(exported)("0" * 16) is None


def test_fields_that_half_precision_does_not_resolve_are_exported_in_single(tmp_path, copied):
    run = min(path.name for path in (copied / "cells").iterdir())
    ramp = np.broadcast_to(np.linspace(0, 1, 64, dtype=np.float32)[None, None, :, None], (5, 64, 64, 2))
    for scale, offset in ((1, 0), (1e5, 0), (1e-9, 0), (1, 300)):
        fields = {"newest": scale * ramp[0] + offset, "reference": scale * ramp + offset}
        content = write_arrays(copied / "cells" / run / "example.npz", **fields, forecast=ramp).read_bytes()
        files = read_record(copied / "cells" / run)["files"] | {"example.npz": hashlib.sha256(content).hexdigest()}
        rewrite(copied / "cells" / run, files=files)
        out = tmp_path / f"{scale} {offset}"
        collect.export(copied, out, [f"forecaster={read_record(copied / 'cells' / run)['forecaster']}"])
        found = collect.examples(out)(run)
        assert found is not None
        np.testing.assert_allclose(found["reference"], fields["reference"], rtol=0, atol=scale / 256)
        with np.load(out / "examples.npz") as arrays:
            kinds = {name.split()[-1]: arrays[name].dtype for name in arrays}
        assert kinds["forecast"] == "float16" and (kinds["reference"] == "float16") == ((scale, offset) == (1, 0))


def test_an_export_says_how_many_settings_have_no_fields(tmp_path, copied):
    other = twin(copied, read_record(min((copied / "cells").iterdir())), {"support_seed": 778})
    with warnings.catch_warnings():
        warnings.simplefilter("error", Note)
        collect.export(copied, tmp_path / "first")
        collect.export(tmp_path / "first", tmp_path / "again")
        collect.export(copied, tmp_path / "second", ["support_seed=778"])
    with pytest.warns(Note, match="1 of 1 settings are exported without example fields, such as heldout nano"):
        collect.export(tmp_path / "first", tmp_path / "lost", ["support_seed=778"])
    assert collect.examples(tmp_path / "second")(other.name) and not collect.examples(tmp_path / "lost")(other.name)


def test_exported_rows_read_the_same(finished, exported):
    for read in (collect.collect, collect.curve, collect.spectra):
        kept, small = read(finished), read(exported)
        pd.testing.assert_frame_equal(kept, small, check_dtype=False, rtol=1e-6)
    assert collect.read_records(exported) == collect.read_records(finished)
    assert pd.read_parquet(exported / "rows.parquet").metric.dtype == "category"


@pytest.mark.parametrize("seed", [32_767, 32_768, 2**32 - 1])
def test_an_export_keeps_every_seed(tmp_path, copied, seed):
    for record in collect.read_records(copied):
        twin(copied, record, {"support_seed": seed})
    collect.export(copied, tmp_path / "out")
    collect.export(tmp_path / "out", tmp_path / "again")
    for read in (collect.collect, collect.curve, collect.spectra):
        kept, small, again = (read(root) for root in (copied, tmp_path / "out", tmp_path / "again"))
        assert set(small.support_seed) == {777, seed}
        pd.testing.assert_frame_equal(kept, small, check_dtype=False, rtol=1e-6)
        pd.testing.assert_frame_equal(small, again)
    assert pd.read_parquet(tmp_path / "out" / "rows.parquet").horizon.dtype == "int16"


@pytest.mark.parametrize("backwards", [False, True])  # one of the two cells has no curve
def test_a_study_that_was_computed_in_parts_is_exported_whole(tmp_path, exported, copied, backwards):
    first, second = sorted((copied / "cells").iterdir(), reverse=backwards)
    shutil.copytree(copied, tmp_path / "other")
    shutil.rmtree(second)
    shutil.rmtree(tmp_path / "other" / "cells" / first.name)
    collect.export(copied, tmp_path / "first")
    collect.export([tmp_path / "first", copied, tmp_path / "other"], tmp_path / "joined")  # twice the first cell
    whole, joined = exported, tmp_path / "joined"
    for read in (collect.collect, collect.curve, collect.spectra):
        tables = [read(root).pipe(lambda found: found.sort_values(list(found))) for root in (whole, joined)]
        pd.testing.assert_frame_equal(*(table.reset_index(drop=True) for table in tables))
    assert {record["id"] for record in collect.read_records(joined)} == {first.name, second.name}
    for run in (first.name, second.name):
        kept, small = (collect.examples(root)(run) for root in (whole, joined))
        assert kept is not None and small is not None
        np.testing.assert_array_equal(kept["forecast"], small["forecast"])


def test_an_export_of_some_cells_has_these_alone(tmp_path, finished):
    every = collect.collect(finished)
    name = str(every.forecaster.iloc[0])
    collect.export(finished, tmp_path / "some", [f"forecaster={name}"])
    some = collect.collect(tmp_path / "some")
    assert set(some.forecaster) == {name} != set(every.forecaster)
    assert len(some) == (every.forecaster == name).sum()
    with pytest.raises(StudyError, match=r"expected forecaster among .*, got 'nobody'"):
        collect.export(finished, tmp_path / "none", ["forecaster=nobody"])
    assert not (tmp_path / "none").exists()


def test_an_export_is_not_written_over_what_it_reads(export, finished):
    before = {path.name: path.read_bytes() for path in export.iterdir()}
    with pytest.raises(StudyError, match="that is not read too"):
        collect.export([finished, export], export)
    assert before == {path.name: path.read_bytes() for path in export.iterdir()}


@pytest.mark.parametrize("name", ["rows.parquet", "spectra.parquet", "curve.parquet", "example.npz"])
def test_files_of_another_cell_are_refused(copied, name):
    first, second = sorted((copied / "cells").iterdir())
    (second / name).write_bytes((first / name).read_bytes()[:-1])
    with pytest.raises(StudyError, match=f"{name} as its record says, got other bytes"):
        for read in (collect.collect, collect.spectra, collect.curve):
            read(copied)
        collect.examples(copied)(second.name)


@pytest.mark.parametrize("name", ["rows.parquet", "spectra.parquet", "curve.parquet", "examples.npz", "records.json"])
def test_a_changed_export_is_refused(export, name):
    run = collect.read_records(export)[0]["id"]
    path = export / name
    path.write_bytes(path.read_bytes().replace(b"1", b"2"))
    with pytest.raises(StudyError, match=r"other bytes|match their seal|readable record"):
        for read in (collect.collect, collect.spectra, collect.curve):
            read(export)
        collect.examples(export)(run)


@pytest.mark.parametrize("name", ["rows.parquet", "spectra.parquet", "examples.npz"])
def test_damage_to_an_export_without_checksums_is_one_sentence(export, name):
    records = collect.read_records(export)
    (export / "records.json").write_text(json.dumps(records))
    assert len(collect.collect(export)) and collect.examples(export)(records[0]["id"])
    (export / name).write_bytes((export / name).read_bytes()[:-1])
    with pytest.raises(StudyError, match="got a damaged file"):
        collect.collect(export)
        collect.spectra(export)
        collect.examples(export)(records[0]["id"])


def test_a_record_under_another_name_is_refused(copied):
    first = min((copied / "cells").iterdir())
    first.rename(first.with_name("0" * 16))
    with pytest.raises(StudyError, match="a record of another name"):
        collect.collect(copied)


def test_a_record_of_other_settings_is_refused(copied):
    first = min((copied / "cells").iterdir())
    identity = json.loads((first / "record.json").read_text())["identity"]
    rewrite(first, identity=identity | {"test": 7})
    with pytest.raises(StudyError, match="other settings than its name says"):
        collect.collect(copied)


def test_cells_of_different_settings_are_not_averaged(copied):
    first = min((copied / "cells").iterdir())
    other = twin(copied, read_record(first), {}, test=7)
    both = rf"one run of .*, got (cells/{first.name}|cells/{other.name}) of .* which differ in test; move one"
    with pytest.raises(StudyError, match=both):
        collect.collect(copied)
    shutil.rmtree(first)
    with pytest.raises(StudyError, match=r"same protocol .* differ in test"):
        collect.collect(copied)


def test_cells_that_were_tested_on_other_fields_are_refused_and_last_bits_are_not(tmp_path, copied):
    folder = min((copied / "cells").iterdir())
    energies = pd.read_parquet(folder / "spectra.parquet")

    def scaled(factor):
        energies.assign(reference=energies["reference"] * factor).to_parquet(folder / "spectra.parquet", index=False)
        digest = hashlib.sha256((folder / "spectra.parquet").read_bytes()).hexdigest()
        files = json.loads((folder / "record.json").read_text())["files"]
        rewrite(folder, files=files | {"spectra.parquet": digest})

    scaled(1 + 1e-6)
    assert len(collect.spectra(copied))
    smallest = energies["wavenumber"] == energies["wavenumber"].max()
    weight = 1 + 1e-6 * energies["reference"].sum() / energies.loc[smallest, "reference"].sum()
    scaled(smallest.map({True: weight, False: 1.0}))  # of a smooth field the largest wavenumbers have nothing but this
    assert len(collect.spectra(copied))
    scaled(1.01)
    with pytest.raises(StudyError, match=f"same test fields for all cells of .*{folder.name}"):
        collect.spectra(copied)
    with pytest.raises(StudyError, match="same test fields"):
        collect.export(copied, tmp_path / "out")


def test_fields_that_share_a_large_mean_alone_are_others():
    energies = pd.DataFrame({"wavenumber": [0, 1, 2], "reference": [1e6, 1.0, 0.1]})
    energies = energies.assign(profile="nano", system="barkley", regime="id", horizon=1)
    other = energies.assign(reference=[1e6, 1.001, 0.1], run="b")
    refuse_other_references(pd.concat([energies.assign(run="a"), energies.assign(run="b")]))
    with pytest.raises(StudyError, match="same test fields"):
        refuse_other_references(pd.concat([energies.assign(run="a"), other]))


def test_forecasters_that_were_trained_for_different_times_are_not_compared(copied, trained):
    longer = trained["identity"]["adapt"] | {"steps": 2_000}
    rewrite(twin(copied, trained, {"forecaster": "fno"}, adapt=longer), updates=2_000)
    with pytest.raises(StudyError, match=r"same updates .* differ in updates"):
        collect.collect(copied)


@pytest.mark.parametrize(("changed", "fits"), [({"precision": "bfloat16"}, True), ({"clip": 2.0}, False)])
def test_cells_of_a_forecaster_may_differ_in_precision_alone(copied, trained, changed, fits):
    twin(copied, trained, {"support_seed": 778}, adapt=trained["identity"]["adapt"] | changed)
    if fits:
        assert set(collect.collect(copied)["support_seed"]) == {777, 778}
    else:
        with pytest.raises(StudyError, match=r"same settings .* differ in adapt\.clip"):
            collect.collect(copied)


@pytest.mark.parametrize("decides", ["base", "constants", "retained", "augmented", "familiar", "predictor", "class"])
def test_cells_of_a_forecaster_whose_forecasts_were_decided_otherwise_are_not_averaged(copied, trained, decides):
    twin(copied, trained, {"support_seed": 778}, **{decides: {"reach": 4}})
    with pytest.raises(StudyError, match=f"same settings .* differ in {decides}; move"):
        collect.collect(copied)


def test_rows_are_not_written_into_a_study_directory_that_would_hide_them(tmp_path, copied):
    (tmp_path / "begun" / "cells").mkdir(parents=True)
    with pytest.raises(StudyError, match=r"for the rows, got the study directory .*begun; write to another"):
        collect.export(copied, tmp_path / "begun")


def test_a_mixture_refuses_what_it_is_in_alone(tmp_path, copied, trained):
    other = twin(copied, trained, {"support_seed": 778}, base={"reach": 4})
    kept = f"forecaster={trained['forecaster']}", "support_seed=777"
    with pytest.raises(StudyError, match=r"same settings .*/778/.*/777/|same settings .*/777/.*/778/"):
        collect.export(copied, tmp_path / "all")
    collect.export(copied, tmp_path / "chosen", only=kept)
    assert set(collect.collect(tmp_path / "chosen")["run"]) == {trained["id"]}
    assert collect.collect(copied, "scratch", "paper").empty
    assert {record["id"] for record in collect.read_records(copied)} >= {trained["id"], other.name}


def test_how_a_choice_by_the_last_trajectory_is_made_matters_where_there_is_one(copied, trained):
    twin(copied, trained, {"support_seed": 778, "k": 5}, withheld={"first": 5})
    assert len(collect.collect(copied))
    twin(copied, trained, {"support_seed": 779, "k": 5}, withheld={"first": 6})
    with pytest.raises(StudyError, match=r"same decision .* differ in withheld"):
        collect.collect(copied)


def test_of_a_cell_in_two_precisions_the_first_root_has_a_say(tmp_path, copied, trained):
    collect.export(copied, tmp_path / "first")
    twin(copied, trained, {}, adapt=trained["identity"]["adapt"] | {"precision": "bfloat16"})
    shutil.rmtree(copied / "cells" / trained["id"])
    collect.export([tmp_path / "first", copied], tmp_path / "both")
    assert len(collect.read_records(tmp_path / "both")) == len(collect.read_records(tmp_path / "first"))
    assert trained["id"] in {record["id"] for record in collect.read_records(tmp_path / "both")}


def test_cells_that_rehearsed_other_trajectories_are_not_averaged(copied, trained):
    for seed, count in ((778, 40), (779, 80)):
        twin(copied, trained, {"support_seed": seed}, rehearsed={"trajectories": count})
    with pytest.raises(StudyError, match="same rehearsal"):
        collect.collect(copied)


def test_a_root_that_is_named_twice_is_exported_once(tmp_path, finished, exported):
    collect.export([finished, os.path.relpath(finished)], tmp_path)
    assert collect.collect(tmp_path).equals(collect.collect(exported))


def test_exported_rows_of_other_runs_are_refused(export):
    rows = pd.read_parquet(export / "rows.parquet").astype({"run": str})
    rows.assign(run="f" * 16).to_parquet(export / "rows.parquet")
    (export / "records.json").write_text(json.dumps(collect.read_records(export)))  # as early versions wrote it
    with pytest.raises(StudyError, match=r"expected the runs of records\.json"):
        collect.collect(export)


def test_nothing_to_collect_names_the_command(tmp_path):
    with pytest.raises(StudyError, match="rdjepa study run STUDY --root"):
        collect.collect(tmp_path / "nowhere")


def test_a_study_without_a_finished_cell_is_one_and_is_joined_to_others(tmp_path, finished, exported, brief):
    Directory(tmp_path / "begun").claim(brief.name, brief.settings())
    assert collect.read_records(tmp_path / "begun") == []
    for read in (collect.collect, collect.curve, collect.spectra, collect.records):
        assert read(tmp_path / "begun").empty
    collect.export([tmp_path / "begun", finished], tmp_path / "joined")
    for read in (collect.collect, collect.curve, collect.spectra):
        pd.testing.assert_frame_equal(read(tmp_path / "joined"), read(exported))


def test_a_root_that_no_file_system_takes_is_refused():
    with pytest.raises(ValueError, match="a study directory with names of at most 255 bytes"):
        collect.read_records("a" * 300)
