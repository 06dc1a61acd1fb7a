"""The learning curve, and frame strides and components that a forecaster keeps, through the public functions."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import rdjepa
from rdjepa import forecasters
from rdjepa.adaptation.adapt import fitted
from rdjepa.api.curve import _weights
from rdjepa.api.support import said_domain_of
from rdjepa.data import pace
from rdjepa.data.readers import Reading
from rdjepa.errors import ArgumentError, CheckpointError, DataError, Note, OutputError
from rdjepa.evaluation import curve_file
from rdjepa.evaluation.aggregate import per_horizon
from rdjepa.forecasters.combined import Combined
from rdjepa.forecasters.equation import Equation
from rdjepa.forecasters.fno import FNO, Config
from rdjepa.forecasters.persistence import persistence
from rdjepa.forecasters.scratch import Scratch
from rdjepa.forecasters.tiled import Tiled
from rdjepa.io import checkpoint
from rdjepa.models.rdjepa import RDJEPA

FIELDS = np.random.default_rng(0).standard_normal((4, 12, 16, 16, 2)).astype(np.float32)


class Linearly(FNO):
    name = "linear"  # taken by what every curve has beside the model


def small(seed=0):
    return forecasters.build("fno", Config(width=4, layers=1, modes=4, readout=4, grid=16), seed=seed)


def slow(frames=41):
    """Every point turns at a third of the pace of pretraining."""
    phase = 2 * np.pi * np.random.default_rng(1).uniform(size=(16, 16))
    angle = pace.of_sources().median / 3 * np.arange(frames)[:, None, None] + phase
    return np.stack([np.cos(angle), np.sin(angle)], -1).astype(np.float32)


@pytest.fixture
def quick(monkeypatch):
    """What stands beside the model and its control in a curve is persistence by other names."""
    monkeypatch.setattr("rdjepa.api.curve._simple", lambda *_: persistence)


def test_a_learning_curve_of_arrays_and_its_figure(tmp_path):
    lines = []
    curve = rdjepa.learning_curve(FIELDS, model=small(), steps=1, progress=lambda *line: lines.append(line))
    assert curve.counts == (1, 2, 3) and curve.names == (
        "persistence",
        "extrapolation",
        "fno",
        "linear",
        "autoregression",
        "equation",
    )
    assert len(lines) == lines[-1][0] == lines[-1][1] == 2 * (2 + 4 * 3)
    assert curve.notes[0] == "1 updates for every K; adapt takes up to 5000 by default"
    assert not curve.spans and curve.advice()
    nothing_trained = rdjepa.learning_curve(FIELDS[:2], model="linear", steps=1, draws=1)
    assert not any("updates for every K" in note for note in nothing_trained.notes)
    assert curve.draw(tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_model_that_is_called_as_a_fit_beside_it_stands_in_its_place(quick):
    model = Linearly(small().config)
    curve = rdjepa.learning_curve(FIELDS[:2], model=model, steps=1, draws=1)
    usual = rdjepa.learning_curve(FIELDS[:2], model=small(), steps=1, draws=1)
    assert curve.subject == "linear" and curve.summary("linear", 1) != usual.summary("linear", 1)
    assert set(curve.names) == set(usual.names) - {"fno"}


def test_a_curve_goes_on_from_its_file_unless_the_data_or_settings_changed(quick, tmp_path, monkeypatch):
    out, fitted = tmp_path / "rows.csv", []
    adapt = rdjepa.api.adapt

    def counted(model, support, **settings):
        fitted.append(len(support))
        return adapt(model, support, **settings)

    monkeypatch.setattr("rdjepa.api.curve.adapt", counted)
    first = rdjepa.learning_curve(FIELDS[:3], model=small(), steps=1, draws=1, out=out)
    assert fitted == [1, 2] and curve_file.read(out) == list(first.rows)
    assert rdjepa.learning_curve(FIELDS[:3], model=small(), steps=1, draws=1, out=out) == first and fitted == [1, 2]
    walls = {"reading": rdjepa.Reading(boundary="walls")}
    faster = forecasters.build("fno", Config(width=4, layers=1, modes=4, readout=4, grid=16, rate=0.3), seed=0)
    others: list[dict] = [{"model": small(1)}, {"model": faster}, {"trajectories": FIELDS[1:]}, walls]
    for change in ({"steps": 2}, *others):
        given = {"trajectories": FIELDS[:3], "model": small(), "steps": 1} | change
        rdjepa.learning_curve(given.pop("trajectories"), draws=1, out=out, **given)
        assert len(fitted) == 4
        del fitted[2:]


def test_no_row_of_a_curve_is_taken_for_that_of_other_code_or_other_weights(tiny, tmp_path):
    checkpoint.save(rdjepa.build("tiny", seed=0), tmp_path / "m", {"pretrained": ["encoder", "predictor"]}, "card")
    typed: dict = {"FNO": FNO, "__name__": "__main__"}
    exec("class Typed(FNO):\n    pass", typed)
    changed, kept = checkpoint.load(tmp_path / "m"), checkpoint.load(tmp_path / "m")
    with torch.no_grad():
        next(changed.encoder.parameters()).mul_(2)
    assert _weights(checkpoint.load(tmp_path / "m")) == _weights(kept) != _weights(changed)
    assert _weights(typed["Typed"](small().config)) != _weights(typed["Typed"](small().config))


def test_all_forecasters_of_a_curve_are_told_the_same_domain(monkeypatch):
    told, adapt = [], rdjepa.api.adapt

    def adapting(*given, **settings):
        told.append(settings["reading"].boundary)
        return adapt(*given, **settings)

    def fitting(model, domain, *_):
        told.append("walls" if domain.walls else "periodic")
        return persistence

    monkeypatch.setattr("rdjepa.api.curve.adapt", adapting)
    monkeypatch.setattr("rdjepa.api.curve._simple", fitting)
    for boundary in ("walls", "periodic"):
        rdjepa.learning_curve(FIELDS[:2], model=small(), steps=1, draws=1, reading=rdjepa.Reading(boundary=boundary))
        assert len(told) == 4 and set(told) == {boundary}
        told.clear()


def test_spans_of_a_recording_end_as_the_whole_recording_does(monkeypatch):
    seen: list[int] = []

    def said(given, boundary):
        seen.extend(len(each.fields) for each in given)
        return said_domain_of(given, boundary)

    monkeypatch.setattr("rdjepa.api.curve.said_domain_of", said)
    rdjepa.learning_curve(slow(45), model=small(), steps=1, draws=1)
    assert seen == [45]


def test_rivals_see_the_windows_that_the_forecaster_sees():
    """On its grid, with its stride and components, whatever those of the data are."""
    fine = slow(40).repeat(2, 1).repeat(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        forecaster = rdjepa.adapt(small(), fine, steps=1, stride=2, resample=True)
        seen = []

        def newest(context):
            seen.append(context.shape)
            return context[:, -1:].repeat(5, 1)

        rows = rdjepa.compare(forecaster, [fine, slow(30)], {"mine": newest}, resample=True)
        own = rdjepa.evaluate(forecaster, [fine, slow(30)], resample=True)
    assert list(rows) == ["fno", "mine", "persistence", "extrapolation"] and rows["fno"] == own
    assert rows["mine"] == rows["persistence"] and {each[2:] for each in seen} == {(16, 16, 2)}
    assert sorted({row.trajectory for row in own}) == [0, 1] and sum(each[0] for each in seen) == 12 + 7
    coarse = slow(40)[1::2]
    by_hand = rdjepa.evaluate(persistence, coarse)
    assert [row.value for row in rows["persistence"] if row.trajectory == 0] == [row.value for row in by_hand]


def test_a_forecaster_is_a_rival_too():
    forecaster, other = (rdjepa.adapt(small(seed), FIELDS[seed], steps=1) for seed in (0, 1))
    rows = rdjepa.compare(forecaster, FIELDS[2], {"other": other})
    assert rows["other"] == rdjepa.evaluate(other, FIELDS[2]) != rows["fno"]
    with pytest.warns(UserWarning, match="got 1 of 1 that it was adapted to"):
        rdjepa.compare(forecaster, FIELDS[1], {"other": other})


def test_a_rival_of_another_stride_is_refused_unless_the_stride_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        forecaster, slower = (rdjepa.adapt(small(), slow(40), steps=1, stride=stride) for stride in (1, 2))
        with pytest.raises(ArgumentError, match=r"the forecaster's frame stride, 1, got 2 of 'slower'; adapt it to"):
            rdjepa.compare(forecaster, slow(30), {"mean": persistence, "slower": slower})
        rows = rdjepa.compare(forecaster, slow(30), {"slower": slower}, reading=rdjepa.Reading(stride=2))
        assert rows["slower"] == rdjepa.evaluate(slower, slow(30))


def test_a_rival_of_other_components_is_refused_unless_they_are_said():
    fields = np.random.default_rng(0).standard_normal((12, 16, 16, 3)).astype(np.float32)

    def adapted(*components, names=()):
        return rdjepa.adapt(small(), fields, steps=1, reading=Reading(components=components, names=names))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forecaster, swapped, other = adapted(0, 1), adapted(1, 0), adapted(0, 2)
        for rival, words in ((swapped, "1, 0"), (other, "0, 2")):
            with pytest.raises(ArgumentError, match=rf"the forecaster's components, 0, 1, got {words} of 'rival'; "):
                rdjepa.compare(forecaster, fields, {"rival": rival})
        assert rdjepa.compare(forecaster, fields, {"rival": swapped}, reading=Reading(components=(0, 1)))["rival"]


def test_a_curve_begins_anew_for_another_preset_of_the_same_weights_and_another_name(tiny):
    """Both decide on rates and on the averaging of weights."""
    one, two = (forecasters.build("fno", preset, seed=0) for preset in ("nano", forecasters.fno.PRESETS["nano"]))
    assert all(map(torch.equal, one.parameters(), two.parameters())) and _weights(one) != _weights(two)
    model = rdjepa.build("tiny", seed=0)
    before = _weights(model)
    model.name = "nano"
    assert _weights(model) != before


def test_the_control_from_scratch_has_the_architecture_of_the_model(tiny, quick, monkeypatch, tmp_path):
    """Also where its sizes are no preset; other sizes are measured anew."""
    seen, out = [], tmp_path / "rows.csv"

    def adapting(given, *_):
        seen.append(given)
        return persistence

    monkeypatch.setattr("rdjepa.api.curve._adapted", adapting)
    fields = np.random.default_rng(0).standard_normal((2, 9, tiny.grid, tiny.grid, 2)).astype(np.float32)
    config = replace(tiny, without=("diffusion",), borders="periodic")
    for sizes, preset in ((config, "tiny"), (config, "custom"), (replace(config, width=2 * tiny.width), "custom")):
        model = RDJEPA(sizes, preset)
        rdjepa.learning_curve(fields, model=model, steps=1, draws=1, out=out)
        (control,) = {each for each in seen if each is not model}
        assert isinstance(control, Scratch) and control.config == sizes and control.preset == preset
        seen.clear()
    assert len({row.identity for row in curve_file.read(out) if row.forecaster == "scratch"}) == 3


def test_a_combination_is_compared_with_what_has_a_share_in_it(monkeypatch):
    network, contexts, fit = small(), [], Equation.fitted

    def counted(self, context):
        contexts.extend(context)
        return fit(self, context)

    shares = torch.full((5, 5, 2), 0.25)
    shares[4] = 0
    model = Combined(network, shares=shares)
    monkeypatch.setattr(Equation, "fitted", counted)
    normalizer = rdjepa.Normalizer.fit(FIELDS)
    rows = rdjepa.compare(rdjepa.Forecaster(model, normalizer), FIELDS[:2])
    assert list(rows) == ["fno", "rd-jepa-alone", "equation", "autoregression", "persistence", "extrapolation"]
    assert len(contexts) == 2 * 4  # every context once
    for name, each in {"fno": model, "rd-jepa-alone": network, "equation": model.equation}.items():
        expected = rdjepa.evaluate(rdjepa.Forecaster(each, normalizer), FIELDS[:2])
        assert [row.value for row in rows[name]] == pytest.approx([row.value for row in expected], rel=1e-5)


def test_nearly_zero_fields_to_compare_with_are_said_by_evaluation():
    fields = np.concatenate([FIELDS[0], 0 * FIELDS[0]])
    with pytest.warns(UserWarning, match="nearly zero ones in trajectory 0 from frame 12"):
        rdjepa.evaluate(persistence, fields)
    with pytest.warns(UserWarning, match="nearly zero ones in trajectory 1 from frame 12") as said:
        rdjepa.compare(rdjepa.adapt(small(), FIELDS[1], steps=1), [FIELDS[2], fields])
    assert len([each for each in said if not issubclass(each.category, Note)]) == 1


def test_what_cannot_be_compared_is_refused(tiny, monkeypatch):
    forecaster = rdjepa.adapt(small(), FIELDS[0], steps=1)
    with pytest.raises(ArgumentError, match=r"expected rivals with names of their own, got 'fno'; "):
        rdjepa.compare(forecaster, FIELDS[1], {"fno": persistence})
    with pytest.raises(ArgumentError, match="expected a forecaster to be a"):
        rdjepa.compare(persistence, FIELDS[1])  # type: ignore[arg-type]
    monkeypatch.setattr(rdjepa.Forecaster, "forecast", lambda *_: pytest.fail("computed"))
    for none, kind in ((forecaster.model, "FNO"), (rdjepa.build(tiny, seed=0), "RDJEPA"), (None, "NoneType")):
        with pytest.raises(
            ArgumentError, match=rf"expected a forecaster or a function, got {kind}; give what rdjepa\.ad"
        ):
            rdjepa.evaluate(none, FIELDS[1])  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match=rf"expected a forecaster or a function, got {kind}; "):
            rdjepa.compare(forecaster, FIELDS[1], {"other": none})  # type: ignore[dict-item]
    with pytest.raises(ArgumentError, match="expected rivals to be a Mapping, got"):
        rdjepa.compare(forecaster, FIELDS[1], [persistence])  # type: ignore[arg-type]
    finer = rdjepa.adapt(
        forecasters.build("fno", replace(small().config, grid=32)), FIELDS[0].repeat(2, 1).repeat(2, 2), steps=1
    )
    with pytest.raises(DataError, match="expected trajectories on the forecaster's grid of 32 x 32, got 16 x 16"):
        rdjepa.compare(forecaster, FIELDS[1], {"finer": finer})
    with pytest.raises(ArgumentError, match=r"expected a forecaster where fields are resampled.*rdjepa.compare"):
        rdjepa.evaluate(persistence, FIELDS[1], resample=True)


def test_a_curve_that_is_ended_early_loses_no_row_of_its_file(quick, tmp_path):
    out, given = tmp_path / "rows.csv", {"model": small(), "draws": 1}

    def ended(*_):
        raise KeyboardInterrupt

    first = rdjepa.learning_curve(FIELDS[:3], steps=1, out=out, **given)
    with pytest.raises(KeyboardInterrupt):
        rdjepa.learning_curve(FIELDS[:3], steps=1, out=out, progress=ended, **given)
    assert curve_file.read(out) == list(first.rows)
    second = rdjepa.learning_curve(FIELDS[:3], steps=2, out=out, **given)
    both = set(first.rows) | set(second.rows)
    assert set(curve_file.read(out)) == both and len(curve_file.read(out)) == len(both) > len(first.rows)
    assert {row.identity for row in second.rows if row.forecaster == "fno"}.isdisjoint(
        {row.identity for row in first.rows if row.forecaster == "fno"}
    )
    assert rdjepa.learning_curve(FIELDS[:3], steps=1, out=out, **given) == first
    assert set(curve_file.read(out)) == both


def test_a_curve_replaces_no_file_but_a_curve_unless_forced(quick, monkeypatch, tmp_path):
    data = tmp_path / "data.npz"
    np.savez(data, fields=FIELDS[:3])
    notes = tmp_path / "notes.txt"
    notes.write_text("three years of work")
    before = data.read_bytes()
    with monkeypatch.context() as without:
        without.delattr("rdjepa.api.curve.measure")
        for out, force in ((data, False), (str(data), False), (notes, False), (tmp_path, False), (tmp_path, True)):
            with pytest.raises(OutputError, match=r"expected a learning curve or no file at .*, got something else; "):
                rdjepa.learning_curve(data, model=small(), steps=1, draws=1, out=out, force=force)
        with pytest.raises(ArgumentError, match="expected out to be a"):
            rdjepa.learning_curve(data, model=small(), steps=1, draws=1, out=3)  # type: ignore[arg-type]
    assert data.read_bytes() == before and notes.read_text() == "three years of work"
    curve = rdjepa.learning_curve(data, model=small(), steps=1, draws=1, out=notes, force=True)
    assert curve_file.read(notes) == list(curve.rows)


def test_one_trajectory_is_cut_into_spans_and_that_is_said(quick):
    curve = rdjepa.learning_curve(np.concatenate(FIELDS[:3]), model=small(), steps=1, draws=1)
    assert curve.spans and curve.trajectories == 4 and "cut into 4 spans of time" in curve.notes[1]
    with pytest.raises(DataError, match="or one of 18 frames"):
        rdjepa.learning_curve(FIELDS[0], model=small(), steps=1)


def test_a_curve_of_another_grid_is_not_told_of_tiles(quick):
    with pytest.raises(DataError, match=r"with --resample \(resample=True\)$"):
        rdjepa.learning_curve(np.ones((2, 12, 24, 24, 2)) * np.arange(24.0)[:, None], model=small(), steps=1)


@pytest.mark.parametrize(
    "settings", [{"steps": 0}, {"draws": 0}, {"seed": -1}, {"stride": "half"}, {"stride": 0}, {"base": "cubic"}]
)
def test_bad_settings_of_a_curve_are_refused_and_nothing_is_written(tmp_path, settings):
    with pytest.raises(ArgumentError, match=r"expected .*, got .*; "):
        rdjepa.learning_curve(FIELDS, model=small(), out=tmp_path / "rows.csv", **{"steps": 1} | settings)
    assert not list(tmp_path.iterdir())


def test_a_suggested_stride_is_said_and_taken_only_when_asked_for():
    with pytest.warns(Note, match="frame stride 3 suggested") as said:
        given = rdjepa.adapt(small(), slow(), steps=1, calibrate=np.roll(slow(), 3, axis=1))
    assert sum("frame stride" in str(each.message) for each in said) == 1
    assert given.stride == given.record["stride"] == 1 and given.components is None
    with pytest.warns(Note, match="one of every 3 frames is taken, 14 of 41"):
        taken = rdjepa.adapt(small(), slow(), steps=1, stride="auto")
    assert taken.stride == 3
    same = rdjepa.adapt(small(), slow()[1::3], steps=1)
    context = slow()[-10::3]
    np.testing.assert_array_equal(taken.forecast(context), same.forecast(context))


def test_who_asks_for_the_suggested_stride_is_not_told_of_another():
    side = 64
    waves = np.sin(np.arange(41)[:, None] / 20 + np.arange(side) / 10)
    noisy = np.stack([np.broadcast_to(waves[:, None], (41, side, side))] * 2, axis=-1)
    noisy = (noisy + 0.2 * np.random.default_rng(0).standard_normal(noisy.shape)).astype(np.float32)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        taken = rdjepa.adapt(small(), noisy, steps=1, resample=True, stride="auto")
    assert taken.stride == 1 and not [each for each in said if "suggested" in str(each.message)]


@pytest.mark.filterwarnings("ignore:one of every")
def test_the_stride_of_a_forecaster_comes_back_and_is_taken_in_evaluation(tmp_path):
    path = rdjepa.adapt(small(), slow(), steps=1, stride=2).save(tmp_path / "mine.safetensors")
    forecaster = rdjepa.load_forecaster(path)
    assert forecaster.stride == 2
    other = np.roll(slow(), 3, axis=1)
    by_hand = rdjepa.evaluate(forecaster.forecast, other[::2])
    assert rdjepa.evaluate(forecaster, other) == by_hand
    with pytest.warns(UserWarning, match="not seen, got 1 of 1"):
        rdjepa.evaluate(forecaster, slow())


@pytest.mark.parametrize("chosen", [(1, 0), ("w", "u")])
def test_chosen_components_come_back_in_their_order_and_are_taken_in_evaluation(tmp_path, chosen):
    def source(name, frames):
        fields = np.random.default_rng(frames).standard_normal((frames, 16, 16, 2)).astype(np.float32)
        named = {"u": fields[..., 0], "w": fields[..., 1]}
        return {"fields": fields} if chosen == (1, 0) else named

    def saved(name, frames):
        np.savez(tmp_path / name, **source(name, frames))
        return tmp_path / name

    reading = Reading(components=chosen)
    path = rdjepa.adapt(small(), saved("a.npz", 12), steps=1, reading=reading).save(tmp_path / "mine.safetensors")
    forecaster = rdjepa.load_forecaster(path)
    assert forecaster.components == chosen
    other = saved("b.npz", 13)
    with pytest.warns(Note, match=f"components {chosen[0]}, {chosen[1]} are taken, as in adaptation"):
        taken = rdjepa.evaluate(forecaster, other)
    same, as_stored = (
        rdjepa.evaluate(forecaster, other, reading=Reading(components=each)) for each in (chosen, chosen[::-1])
    )
    assert taken == same != as_stored


@pytest.mark.parametrize("components", ["u", [], ["u", "u"], [1.5], [0, 1, 2]])
def test_impossible_components_in_a_record_are_refused(components):
    forecaster = rdjepa.Forecaster(small(), rdjepa.Normalizer.fit(FIELDS), {"components": components})
    with pytest.raises(CheckpointError, match="components"):
        rdjepa.evaluate(forecaster, FIELDS[1])


@pytest.mark.parametrize("stride", ["2", 0, 1.5, None])
def test_an_impossible_stride_in_a_record_is_refused(stride):
    forecaster = rdjepa.Forecaster(small(), rdjepa.Normalizer.fit(FIELDS), {"stride": stride})
    with pytest.raises(CheckpointError, match="expected stride to be"):
        rdjepa.evaluate(forecaster, FIELDS[1])


@pytest.mark.parametrize("fields", [FIELDS, np.concatenate(FIELDS)])
def test_a_first_look_measures_on_what_it_held_out_and_forecasts_beyond_the_end(fields):
    look = rdjepa.first_look(fields, model=small(), steps=1, level=0.9, reading=rdjepa.Reading(spacing=(1.0, 2.0)))
    assert list(look.errors) == ["fno", "linear", "autoregression", "equation", "persistence", "extrapolation"]
    assert all(list(errors) == [1, 2, 3, 4, 5] for errors in look.errors.values())
    last = fields[-1] if fields.ndim == 5 else fields
    assert np.array_equal(look.context, last[-4:]) and np.array_equal(look.reference, last[-5:])
    assert np.array_equal(look.future.forecast, look.forecaster.forecast(last[-4:]))
    assert (look.future.lower < look.future.upper).all() and look.level == 0.9
    assert list(look.times - len(last)) == [0, 1, 2, 3, 4]
    assert look.draw()._repr_png_().startswith(b"\x89PNG") and look.draw().axes[0].get_aspect() == 0.5
    wrong: list[Any] = [2, -1, "u"]
    for component in wrong:
        with pytest.raises(ArgumentError, match="component"):
            look.draw(component)
    held = last[-19:] if fields.ndim == 4 else None  # 0.4 of 48 frames
    if held is not None:
        assert look.errors["persistence"] == per_horizon_of(held)


@pytest.mark.parametrize("share", ["half", None, 0])
def test_a_first_look_holds_out_a_number(share):
    with pytest.raises(ArgumentError, match="expected the share held out to be a number"):
        rdjepa.first_look(FIELDS[0], model=small(), hold_out=share)


def test_a_first_look_has_the_pretrained_model_beside_it(tiny):
    model = rdjepa.build("tiny", seed=0)
    model.pretrained = ("encoder", "predictor", "decoder")
    fields = np.random.default_rng(0).standard_normal((2, 9, tiny.grid, tiny.grid, 2)).astype(np.float32)
    look = rdjepa.first_look(fields, model=model, steps=1)
    combined = look.forecaster.base == "combined"
    others = ["rd-jepa-zero-shot", "linear", "autoregression", "equation", "persistence", "extrapolation"]
    assert list(look.errors) == ["rd-jepa", *["rd-jepa-alone"][: 1 * combined], *others]
    normalizer = look.forecaster.normalizer
    expected = {
        "rd-jepa": look.forecaster,
        "rd-jepa-zero-shot": rdjepa.Forecaster(forecasters.model_class("rd-jepa-zero-shot")(model), normalizer),
        "equation": rdjepa.Forecaster(fitted(Equation(), [fields[0]], normalizer), normalizer),
    }
    for name, forecaster in expected.items():
        rows = rdjepa.evaluate(forecaster.forecast, fields[-1:], metrics=("relative_l2",))
        assert look.errors[name] == pytest.approx(per_horizon(rows, "relative_l2"))
    assert combined == (np.diff([*look.forecaster.record["on_others"].values()])[0] <= 0)


def per_horizon_of(held):
    rows = rdjepa.evaluate(persistence, held, metrics=("relative_l2",))
    return per_horizon(rows, "relative_l2")


def test_a_first_look_corrects_a_linear_forecast_where_asked():
    assert rdjepa.first_look(FIELDS, model=small(), steps=1, base="linear").forecaster.base == "linear"
    assert rdjepa.first_look(FIELDS, model=small(), steps=1).forecaster.base == "none"  # not all was pretrained


def test_a_first_look_says_nothing_of_updates_and_grids_that_nobody_asked_for(recwarn):
    look = rdjepa.first_look(slow(), model="equation")
    assert not [each for each in recwarn if "no update" in str(each.message) or "any grid" in str(each.message)]
    assert look.forecaster.record["forecaster"] == "equation" and not look.forecaster.losses


def test_a_first_look_lowers_the_level_to_what_the_calibration_gives():
    with pytest.warns(Note, match=r"intervals are of \d\d%, since what is held out is too little for 0\.999") as said:
        look = rdjepa.first_look(FIELDS, model=small(), steps=1, level=0.999)
    calibration = look.forecaster.calibration
    assert calibration and look.level == int(100 * calibration.highest) / 100 < 0.999
    assert any(f"{look.level:.0%}" in str(each.message) for each in said)


def test_a_first_look_refuses_a_level_before_it_adapts(monkeypatch):
    monkeypatch.delattr("rdjepa.api.looking.adapt")
    for level in (0.0, 1.0, float("nan"), float("inf")):
        with pytest.raises(ArgumentError, match="interval"):
            rdjepa.first_look(FIELDS, model=small(), steps=1, level=level)


def test_a_first_look_takes_fields_to_the_grid_of_the_model_at_the_suggested_stride():
    fine = slow(60).repeat(3, 1).repeat(3, 2)
    with pytest.warns(Note, match="one of every 3 frames"):
        look = rdjepa.first_look(fine, model=small(), steps=1, hold_out=0.5)
    assert look.context.shape == (4, 16, 16, 2) and look.forecaster.stride == 3
    assert np.allclose(np.diff(look.times), 3) and look.times[0] == 62
    look = rdjepa.first_look(
        fine, model=small(), steps=1, hold_out=0.5, reading=rdjepa.Reading(stride=2)
    )  # it was asked for
    assert look.forecaster.stride == 2 and np.allclose(np.diff(look.times), 2)


@pytest.mark.parametrize("points", [(16, 16), (16, 24), (24, 24), (32, 32), (33, 33)])
def test_a_first_look_tiles_square_fields_of_up_to_twice_the_points_of_the_model(points):
    fields = np.random.default_rng(0).standard_normal((2, 12, *points, 2)).astype(np.float32)
    look = rdjepa.first_look(fields, model=small(), steps=1)
    tiled = points in ((24, 24), (32, 32))
    assert isinstance(look.forecaster.model, Tiled) == tiled
    assert look.reference.shape == look.future.forecast.shape == (5, *(points if tiled else (16, 16)), 2)
    if tiled:
        assert np.array_equal(look.reference, fields[-1, -5:])


@pytest.mark.parametrize(("boundary", "base"), [("periodic", "none"), ("walls", "auto")])
def test_a_tiled_first_look_measures_the_pretrained_model_in_tiles_too(tiny, boundary, base):
    model = rdjepa.build("tiny", seed=0)
    model.pretrained = ("encoder", "predictor", "decoder")
    side = 5 * tiny.grid // 4
    fields = np.random.default_rng(0).standard_normal((2, 9, side, side, 2)).astype(np.float32)
    look = rdjepa.first_look(fields, model=model, steps=1, base=base, reading=Reading(boundary=boundary))
    assert look.forecaster.model.grid == side and ("on_others" in look.forecaster.record) == (base == "auto")
    unadapted = Tiled(forecasters.model_class("rd-jepa-zero-shot")(model), side, walls=boundary == "walls")
    forecast = rdjepa.Forecaster(unadapted, look.forecaster.normalizer).forecast
    rows = rdjepa.evaluate(forecast, fields[-1:], metrics=("relative_l2",))
    assert look.errors["rd-jepa-zero-shot"] == pytest.approx(per_horizon(rows, "relative_l2"))


def test_a_reading_that_is_none_is_refused():
    wrong: Any = {"axes": "t y x c"}
    forecaster = rdjepa.adapt(small(), FIELDS[0], steps=1)
    for action in (
        lambda: rdjepa.adapt(small(), FIELDS[0], reading=wrong),
        lambda: rdjepa.evaluate(forecaster, FIELDS[1], reading=wrong),
        lambda: rdjepa.evaluate(persistence, FIELDS[1], reading=wrong),
        lambda: rdjepa.compare(forecaster, FIELDS[1], reading=wrong),
        lambda: rdjepa.inspect(FIELDS[0], reading={}),  # type: ignore[arg-type]
        lambda: rdjepa.first_look(FIELDS[0], model=small(), reading=wrong),
        lambda: rdjepa.learning_curve(FIELDS, model=small(), reading=wrong),
    ):
        with pytest.raises(ArgumentError, match="expected reading to be a "):
            action()


@pytest.mark.parametrize("stride", [3, "auto"])
def test_two_strides_are_refused(stride):
    with pytest.raises(ArgumentError, match=f"expected one stride, got {stride} and 2 in reading"):
        rdjepa.adapt(small(), slow(60), steps=1, stride=stride, reading=rdjepa.Reading(stride=2))
    assert rdjepa.adapt(small(), slow(60), steps=1, reading=rdjepa.Reading(stride=2)).stride == 2


def test_a_first_look_takes_a_smaller_stride_where_the_suggested_one_would_leave_too_few_frames():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="frame stride")  # it has no such option
        look = rdjepa.first_look(slow(40), model=small(), steps=1)
    assert look.forecaster.stride == 1  # three would leave 14 frames, of which 6 would be held out
    look = rdjepa.first_look(slow(45), model=small(), steps=1)
    assert look.forecaster.stride == 2 and look.forecaster.record["held_out"] == {"frames": 9}


def test_a_boundary_of_a_damaged_record_is_refused():
    forecaster = rdjepa.Forecaster(small(), rdjepa.Normalizer.fit(FIELDS), {"boundary": "mirrors"})
    with pytest.raises(CheckpointError, match="boundary periodic or walls, got 'mirrors'"):
        forecaster.reading()
