"""A calibrated forecaster: its intervals, and what it refuses."""

import warnings

import numpy as np
import pytest

import rdjepa
from rdjepa import forecasters
from rdjepa.adaptation.forecaster import at_once
from rdjepa.adaptation.intervals import FLOOR, Calibration
from rdjepa.data import readers
from rdjepa.data.fields import with_second
from rdjepa.errors import ArgumentError, DataError, Note
from rdjepa.forecasters.combined import Combined
from rdjepa.forecasters.equation import LONGEST
from rdjepa.forecasters.fno import Config
from rdjepa.forecasters.persistence import Persistence


def movie(seed, frames=20, side=16):
    """White noise: the best forecast is the mean, and all points and frames are alike."""
    return np.random.default_rng(seed).standard_normal((frames, side, side, 2)).astype(np.float32)


def adapt(support, **settings):
    model = forecasters.build("fno", Config(width=4, layers=1, modes=4, readout=4, grid=16), seed=0)
    return rdjepa.adapt(model, support, steps=1, device="cpu", **settings)


class Shorter(Persistence):
    def predict(self, *features):
        return super().predict(*features)[:, :4]


def test_a_forecast_of_another_number_of_frames_is_refused():
    forecaster = rdjepa.Forecaster(Shorter(), rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0)))
    with pytest.raises(
        ArgumentError, match=r"from `predict` of Shorter, got shape \(1, 4, 2, 16, 16\); return all hor"
    ):
        forecaster.forecast(movie(0)[:4])


@pytest.fixture(scope="module")
def calibrated():
    return adapt(movie(0), calibrate=[movie(seed) for seed in (1, 2, 3)])


def test_intervals_hold_the_stated_share_of_new_points(calibrated):
    fields = movie(9, 60)
    context = np.stack([fields[i : i + 4] for i in range(40)])
    truth = np.stack([fields[i + 4 : i + 9] for i in range(40)])
    widths = []
    for level in (0.5, 0.9):
        found = calibrated.interval(context, level)
        inside = (found.lower <= truth) & (truth <= found.upper)
        assert inside.mean(axis=(0, 2, 3)) == pytest.approx(level, abs=0.04)  # (5, 2): for every horizon and component
        widths.append((found.upper - found.lower).mean())
    assert widths[0] < widths[1]


def test_an_interval_is_around_the_forecast_for_one_context_as_for_several(calibrated):
    context = movie(9)[:4]
    one, several = calibrated.interval(context, 0.8), calibrated.interval(context[None], 0.8)
    assert np.array_equal(one.forecast, calibrated.forecast(context))
    assert np.allclose(one.upper - one.forecast, one.forecast - one.lower, atol=1e-5)
    for alone, among in zip(one, several, strict=True):
        assert alone.shape == (5, 16, 16, 2) and alone.dtype == np.float32 and np.allclose(alone, among[0], atol=1e-5)


def test_what_is_held_out_is_not_adapted_to():
    movies = [movie(seed) for seed in range(3)]
    held = adapt(movies, hold_out=0.3)
    assert held.losses == adapt(movies[:2]).losses and held.normalizer == adapt(movies[:2]).normalizer
    assert (held.record["frames"], held.record["held_out"], held.calibration.trajectories) == (
        [20, 20],
        {"trajectories": 1},
        1,
    )
    same = adapt(movies[:2], calibrate=movies[2])
    assert np.array_equal(held.calibration.scores, same.calibration.scores) and not same.record["held_out"]
    single = adapt(movie(0, 30), hold_out=0.4)
    assert single.losses == adapt(movie(0, 30)[:18]).losses and single.record["held_out"] == {"frames": 12}
    for seen in (movie(0, 30), movie(0, 30)[:18]):
        with pytest.warns(UserWarning, match="got 1 of 1 that it was adapted to"):
            rdjepa.evaluate(single, seen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rdjepa.evaluate(held, movies[2])
    assert len(held.record["support"]) == 2


def test_a_calibration_on_the_support_and_two_calibrations_are_refused():
    with pytest.raises(DataError, match="got 1 of 2 that are both; keep some back"):
        adapt(movie(0), calibrate=[movie(1), movie(0)])
    with pytest.raises(ArgumentError, match="got both; leave one out"):
        adapt(movie(0), calibrate=movie(1), hold_out=0.4)
    with pytest.raises(DataError, match="trajectories that differ, got 1 of 3 that repeat another"):
        adapt([movie(0), movie(1), movie(0)], hold_out=0.4)
    with pytest.raises(DataError, match="16 x 16 grid, got 8 x 8"):
        adapt(movie(0), calibrate=movie(1, side=8))


def test_the_range_of_the_support_is_recorded():
    movies = [movie(0), 2 * movie(1) + 1]
    low, high = adapt(movies).record["range"]
    assert np.allclose(low, np.stack(movies).min(axis=(0, 1, 2, 3))) and len(low) == 2
    assert np.allclose(high, np.stack(movies).max(axis=(0, 1, 2, 3)))


def test_a_forecaster_says_in_a_line_what_it_is():
    adapted = adapt([movie(0), movie(1)])
    told = f"{adapted.model.name}, base none, grid {adapted.model.grid}, {len(adapted.losses)} updates, adapted to 2 "
    assert repr(adapted) == f"<Forecaster {told}trajectories>"


def test_the_novelty_of_a_context_survives_the_file(tiny, tmp_path):
    support = np.cumsum(movie(0, 10, tiny.grid), axis=0) / 3
    forecaster = rdjepa.adapt(rdjepa.build("tiny", seed=0), support, steps=1, device="cpu")
    context = np.stack([support[:4], 50 + 20 * support[:4]])
    novelty = forecaster.novelty(context)
    assert novelty is not None and novelty.shape == (2,) and novelty[0] < 1e-3 < novelty[1]
    loaded = rdjepa.load_forecaster(forecaster.save(tmp_path / "f.safetensors"))
    again = loaded.novelty(context)
    assert again is not None and np.array_equal(again, novelty)
    assert loaded.novelty(context[1]) == pytest.approx(novelty[1], rel=1e-3)


def test_frames_before_the_newest_are_of_use_to_what_is_fitted_to_a_context():
    fields = np.random.default_rng(0).standard_normal((20, 8, 8, 2)).astype(np.float32).cumsum(axis=0)
    unit, network = rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0)), Persistence()
    alone, both = (rdjepa.Forecaster(model, unit) for model in (network, Combined(network)))
    assert np.array_equal(alone.forecast(fields), alone.forecast(fields[-4:]))
    assert np.array_equal(both.forecast(fields), both.forecast(fields[-LONGEST:]))
    assert not np.allclose(both.forecast(fields), both.forecast(fields[-LONGEST + 1 :]), atol=1e-4)
    several = np.stack([fields[:9], fields[5:14]])
    assert np.allclose(both.forecast(several)[1], both.forecast(fields[5:14]), atol=1e-4)


def test_a_forecast_that_is_not_finite_is_said(calibrated):
    context = movie(9)[:4] * np.float32(3e37)
    with pytest.warns(UserWarning, match="the units of the support") as caught:
        made = calibrated.forecast(context)
    assert len(caught) == 1 and not np.isfinite(made).all() and made.shape == (5, 16, 16, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(calibrated.forecast(movie(9)[:4])).all()


def test_trajectories_on_another_grid_are_refused(calibrated):
    with pytest.raises(DataError, match=r"grid of 16 x 16, got 8 x 8; .*--resample"):
        rdjepa.evaluate(calibrated, movie(1, side=8))


def test_one_measured_component_and_two_are_not_taken_for_each_other(tmp_path):
    one, two = adapt(movie(0)[..., 0]), adapt(movie(0))
    assert (one.record["measured"], two.record["measured"]) == (1, 2)
    assert rdjepa.evaluate(one, movie(1)[..., :1]) and rdjepa.evaluate(two, movie(1))
    with pytest.raises(DataError, match=r"trajectories of 1 measured component, as those .* got 2; choose"):
        rdjepa.evaluate(rdjepa.load_forecaster(one.save(tmp_path / "one.safetensors")), movie(1))
    with pytest.raises(DataError, match=r"trajectories of 2 measured components, as those .* got 1; choose"):
        rdjepa.evaluate(two, movie(1)[..., 0])
    with pytest.raises(DataError, match="got some of one and some of two"):
        adapt([movie(0), rdjepa.Trajectory(with_second(movie(1)[..., :1]), np.arange(20.0))])
    for support, others in ((movie(0), movie(1)[..., :1]), (movie(0)[..., :1], movie(1))):
        with pytest.raises(DataError, match="got some of one and some of two"):
            adapt(support, calibrate=others)


RANGE = {"range": [[-4.0, -4.0], [4.0, 4.0]]}


def timed(seed, interval, **known):
    return rdjepa.Trajectory(movie(seed), np.arange(20.0) * interval, **known)


def notes(action):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        action()
    return [str(each.message) for each in said if issubclass(each.category, Note)]


def test_another_frame_interval_than_that_of_adaptation_is_said(tmp_path):
    forecaster = rdjepa.load_forecaster(adapt(timed(0, 0.1)).save(tmp_path / "a.safetensors"))
    assert forecaster.record["interval"] == pytest.approx(0.1)
    for look in (rdjepa.evaluate, rdjepa.compare):
        assert not notes(lambda look=look: look(forecaster, [timed(1, 0.104), movie(2)]))
        (said,) = notes(lambda look=look: look(forecaster, [timed(1, 0.1), timed(2, 5.0)]))
        assert said.startswith("frames lie 5 apart in time, 0.1 in adaptation")
    uncounted = adapt(movie(0))
    assert "interval" not in uncounted.record and not notes(lambda: rdjepa.evaluate(uncounted, timed(1, 5.0)))
    halved = adapt(timed(0, 0.1), stride=2)
    assert halved.record["interval"] == pytest.approx(0.2)
    assert not any("apart" in each for each in notes(lambda: rdjepa.evaluate(halved, [timed(1, 0.1), movie(2)])))


@pytest.mark.parametrize(
    ("scale", "shift", "said"), [(1, 0, 0), (1, 9, 0), (1, 50, 1), (20, 0, 0), (1000, 0, 1), (0.001, 0, 1)]
)
def test_values_of_another_unit_are_said(scale, shift, said):
    other, words = shift + scale * movie(1), "and between -"
    forecaster = rdjepa.Forecaster(Persistence(), rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0)), RANGE)
    for action in (
        lambda: forecaster.require_fitting(readers.load(other)),
        lambda: adapt(movie(0), calibrate=other),
        lambda: adapt([movie(0), other]),
    ):
        found = [note for note in notes(action) if words in note]
        assert len(found) == said and all(note.endswith("if its unit is another, convert it") for note in found)


def test_an_interval_of_one_is_one_that_is_known():
    (said,) = notes(lambda: rdjepa.evaluate(adapt(timed(0, 1.0)), timed(1, 0.5)))
    assert said.startswith("frames lie 0.5 apart in time, 1 in adaptation")
    (said,) = notes(lambda: rdjepa.evaluate(adapt(timed(0, 2.0)), timed(1, 1.0)))
    assert said.startswith("frames lie 1 apart in time, 2 in adaptation")


@pytest.mark.parametrize(
    ("own", "other", "said"),
    [
        (
            {"boundary": "neumann"},
            {"boundary": "periodic"},
            "fields are periodic, by what they say or",
        ),
        (
            {"boundary": "periodic"},
            {"boundary": "neumann"},
            "fields end at walls, by what they say or",
        ),
        ({"spacing": (1.0, 0.5)}, {"spacing": (1.0, 2.0)}, "rows lie 0.5 times as far apart as columns, 2 times in"),
        ({}, {"spacing": (1.0, 2.0)}, "rows lie 0.5 times as far apart as columns, 1 times in adaptation"),
        ({"boundary": "neumann"}, {"boundary": "walls"}, None),
        ({"spacing": (1.0, 0.5)}, {"spacing": (4.0, 2.01)}, None),
        ({"boundary": "neumann"}, {}, None),  # nothing is said of them
    ],
)
def test_another_domain_than_that_of_adaptation_is_said(own, other, said):
    equation = rdjepa.adapt("equation", timed(0, 1.0, **own), device="cpu")
    found = notes(lambda: rdjepa.evaluate(equation, [timed(1, 1.0, **own), timed(2, 1.0, **other)]))
    assert [each for each in found if "in adaptation, which the equation goes by" in each] == found
    assert len(found) == (said is not None) and all(each.startswith(said) for each in found)
    assert not notes(lambda: rdjepa.evaluate(adapt(timed(0, 1.0, **own)), timed(2, 1.0, **other)))  # a network alone


def test_where_nothing_is_said_of_cells_those_of_adaptation_are_taken():
    equation = rdjepa.adapt("equation", timed(0, 1.0, spacing=(1.0, 0.5)), device="cpu")
    (note,) = notes(lambda: rdjepa.evaluate(equation, timed(1, 1.0)))
    assert note.startswith("rows are taken to lie 2 times as far apart as columns, as in adaptation")


def test_borders_tell_of_another_domain_where_nothing_is_said():
    periodic = rdjepa.simulate("fitzhugh-nagumo", seed=0).coarsened(32).fields[:12]
    cut = np.ascontiguousarray(periodic[:, :16, :16])  # its borders do not fit together
    for own, other, said in ((periodic, cut, "fields end at walls"), (cut, periodic, "fields are periodic")):
        equation = rdjepa.adapt("equation", own, device="cpu")
        (note,) = notes(lambda equation=equation, other=other: rdjepa.evaluate(equation, other))
        assert note.startswith(said)


def test_frames_that_were_only_counted_have_the_times_of_adaptation():
    forecaster = adapt(timed(0, 0.5), stride=2)
    assert np.allclose(forecaster.times_of(timed(1, 0.25)), 0.25 * np.arange(20))
    (counted,) = readers.load(movie(1), reading=forecaster.reading())
    assert np.allclose(np.diff(forecaster.times_of(counted)), 1.0)
    assert np.array_equal(adapt(movie(0)).times_of(counted), counted.times)


def named(path, seed, first, second):
    np.savez(path, **dict(zip((first, second), np.moveaxis(movie(seed), -1, 0), strict=True)))
    return path


def test_components_are_known_again_by_their_names(tmp_path):
    learned, other = named(tmp_path / "a.npz", 0, "u", "v"), named(tmp_path / "b.npz", 1, "u", "v")
    turned = rdjepa.load_forecaster(
        adapt(learned, reading=rdjepa.Reading(field="v,u")).save(tmp_path / "turned.safetensors")
    )
    assert turned.record["names"] == ["v", "u"]
    by_hand = rdjepa.evaluate(turned, movie(1)[..., ::-1])
    assert rdjepa.evaluate(turned, other) == by_hand
    assert rdjepa.evaluate(turned, movie(1)) != by_hand  # without names they are as they are
    assert "components are taken in the order v, u" in notes(lambda: rdjepa.evaluate(turned, other))
    strange = named(tmp_path / "c.npz", 1, "a", "b")
    said = notes(lambda: rdjepa.evaluate(turned, strange))
    assert "components are called a, b and v, u; they are taken in this order" in said
    assert rdjepa.evaluate(turned, strange) == rdjepa.evaluate(turned, movie(1))


def test_components_of_several_files_are_in_the_order_of_the_first(tmp_path):
    one, other = named(tmp_path / "a.npz", 0, "u", "v"), named(tmp_path / "b.npz", 1, "v", "u")
    first, second = readers.load([one, other])
    assert first.names == second.names == ("u", "v")
    assert np.array_equal(second.fields, movie(1)[..., ::-1])


def test_intervals_and_boundaries_that_differ_in_a_support_are_said():
    assert not notes(lambda: adapt([timed(0, 0.1), timed(1, 0.103), movie(2)]))
    (said,) = notes(lambda: adapt([timed(0, 0.1), timed(1, 0.2)]))
    assert said.startswith("frames lie 0.1 to 0.2 apart in time")
    assert notes(lambda: adapt(timed(0, 0.1), calibrate=timed(1, 0.2))) == [said]
    periodic, walls = timed(0, 1.0), timed(1, 1.0, boundary="neumann")
    (said,) = notes(lambda: adapt([periodic, walls]))
    assert said.startswith("1 of 2 trajectories end at walls and the others wrap around")
    assert not notes(lambda: adapt([periodic, walls], reading=rdjepa.Reading(boundary="walls")))


def test_the_stability_of_several_rollouts_at_once_and_a_file_without_a_name_are_refused(calibrated):
    contexts = np.stack([movie(1)[:4], movie(2)[:4]])
    made = calibrated.rollout(contexts, 7)
    for pair in ((contexts, made), (contexts, made[0]), (contexts[0], made)):
        with pytest.raises(DataError, match=r"one rollout \(N, H, W, C\) from one context \(T, H, W, C\), got shapes"):
            calibrated.stable_frames(*pair)
    with pytest.raises(ArgumentError, match="a forecaster's file to be a str or Path, got None"):
        calibrated.save(None)


def test_as_many_points_are_taken_at_once_whatever_the_grid():
    assert [at_once("cuda", side**2) for side in (8, 64, 128, 256, 1024)] == [64, 64, 16, 4, 1]
    assert [at_once("cpu", side**2) for side in (8, 64, 128, 1024)] == [2, 2, 1, 1]


def test_an_interval_is_as_wide_as_the_forecast_is_far_from_the_newest_frame():
    calibration = Calibration(np.full((5, 2, 100), 3.0), 99, 1)
    forecaster = rdjepa.Forecaster(Persistence(), rdjepa.Normalizer((0.0, 0.0), (1.0, 2.0)), calibration=calibration)
    found = forecaster.interval(movie(0)[:4], 0.5)  # which changes nothing: the floor alone is left
    assert np.allclose(found.upper - found.lower, 2 * 3.0 * FLOOR * np.array([1.0, 2.0]), rtol=1e-5)
