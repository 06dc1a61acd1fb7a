import warnings
from typing import Any

import numpy as np
import pytest
import torch

from rdjepa.data.fields import with_second
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import ArgumentError, DataError
from rdjepa.evaluation.evaluate import evaluate, norms_of, warn_of_vanishing
from rdjepa.evaluation.metrics import METRICS, Metric, register
from rdjepa.forecasters.persistence import extrapolation, persistence


def trajectory(seed: int = 0, key: Key | None = None, frames: int = 40) -> Trajectory:
    fields = np.random.default_rng(seed).normal(1, 1, size=(frames, 4, 6, 2)).astype(np.float32)
    return Trajectory(fields, np.arange(float(frames)), key=key)


def of_function(function: np.ndarray) -> Trajectory:
    """Fields whose values at frame t are function[t] times a pattern."""
    pattern = np.random.default_rng(0).integers(1, 9, size=(4, 6, 2))
    return Trajectory((function[:, None, None, None] * pattern).astype(np.float32), np.arange(float(len(function))))


def test_one_row_per_metric_horizon_and_trajectory() -> None:
    tests = [
        trajectory(0, Key("x", "test", "id", 0)),
        trajectory(1, Key("x", "test", "coeff-ood", 0)),
        trajectory(2, Key("x", "test", "id", 7)),
        trajectory(3),
    ]
    rows = evaluate(persistence, tests)
    assert len(rows) == 2 * 5 * 4 == len({(r.metric, r.horizon, r.regime, r.trajectory) for r in rows})
    assert {(r.regime, r.trajectory) for r in rows} == {("id", 0), ("coeff-ood", 0), ("id", 7), ("", 3)}
    assert {r.horizon for r in rows} == {1, 2, 3, 4, 5}


def test_every_window_counts_once_and_equally() -> None:
    case = trajectory()
    rows = evaluate(persistence, [case], metrics=tuple(METRICS))
    for row in rows:
        errors = [
            float(METRICS[row.metric](case.fields[last], case.fields[last + row.horizon])) for last in range(3, 35)
        ]
        assert len(errors) == 32
        assert row.value == pytest.approx(np.mean(errors), rel=1e-12)


def test_of_one_measured_component_the_error_is_its_own() -> None:
    alone = trajectory().fields[..., :1]
    pair = Trajectory(with_second(alone), np.arange(40.0))

    def made(context: np.ndarray) -> np.ndarray:
        """Of the second component far from anything."""
        future = persistence(context).copy()
        future[..., 1] += 1e3
        return future

    rows = evaluate(made, [pair], metrics=("relative_l2", "mse"))
    windows = [alone[i : i + 9] for i in range(32)]
    for row in rows:
        errors = [float(METRICS[row.metric](w[3], w[3 + row.horizon])) for w in windows]
        assert row.value == pytest.approx(np.mean(errors), rel=1e-9)


def test_a_metric_that_is_named_twice_counts_once() -> None:
    assert evaluate(persistence, [trajectory()], metrics=("mse", "mse")) == evaluate(
        persistence, [trajectory()], metrics=("mse",)
    )


@pytest.mark.parametrize("batch_size", [3, 32])
def test_a_longer_context_has_the_frames_before_and_changes_no_window(monkeypatch, batch_size: int) -> None:
    monkeypatch.setattr("rdjepa.evaluation.evaluate.BATCH", batch_size)
    case = trajectory(frames=20)
    seen: list[np.ndarray] = []

    def forecast(context: np.ndarray) -> np.ndarray:
        seen.extend(context)
        return persistence(context)

    rows = evaluate(forecast, [case], context=8)
    assert [len(each) for each in seen] == [4, 5, 6, 7, *[8] * 8]
    assert all(np.array_equal(each, case.fields[max(0, end - 8) : end]) for end, each in enumerate(seen, start=4))
    found = {(row.metric, row.horizon): row.value for row in evaluate(persistence, [case])}
    assert {(row.metric, row.horizon): row.value for row in rows} == pytest.approx(found, rel=1e-12)
    for unfit in (3, 4.5):
        with pytest.raises(ArgumentError, match=r"expected (a )?context"):
            evaluate(persistence, [case], context=unfit)  # type: ignore[arg-type]


@pytest.mark.parametrize("batch_size", [1, 5, 31, 100])
def test_the_batch_size_changes_no_error(monkeypatch, batch_size: int) -> None:
    cases = [trajectory(0), trajectory(1, frames=11)]
    expected = evaluate(persistence, cases)
    monkeypatch.setattr("rdjepa.evaluation.evaluate.BATCH", batch_size)
    found = evaluate(persistence, cases)
    assert [row.value for row in found] == pytest.approx([row.value for row in expected], rel=1e-12)
    sizes: list[int] = []

    def counting(context: np.ndarray) -> np.ndarray:
        sizes.append(len(context))
        return persistence(context)

    evaluate(counting, cases)
    assert sum(sizes) == 32 + 3 and max(sizes) <= batch_size


def test_trivial_forecasts_are_exact_where_they_should_be() -> None:
    still, line = of_function(np.ones(40)), of_function(np.arange(40.0))
    assert {row.value for row in evaluate(persistence, [still])} == {0.0}
    assert {row.value for row in evaluate(extrapolation, [still, line])} == {0.0}
    assert all(row.value > 0 for row in evaluate(persistence, [line]))


def test_a_forecaster_that_knows_the_frames_has_no_error_and_one_that_lags_has() -> None:
    """Each frame holds its own number, so the horizons can be read off the contexts."""
    numbered = of_function(np.arange(1.0, 41.0))
    pattern = numbered.fields[0]

    def number(context: np.ndarray, lag: int) -> np.ndarray:
        frames = context[:, -1, 0, 0, 0] / pattern[0, 0, 0]
        return (frames[:, None] + np.arange(1, 6) - lag)[..., None, None, None] * pattern

    assert {row.value for row in evaluate(lambda c: number(c, 0), [numbered])} == {0.0}
    assert all(row.value > 0 for row in evaluate(lambda c: number(c, 1), [numbered]))


def test_progress_counts_trajectories() -> None:
    seen: list[tuple[int, int]] = []
    evaluate(persistence, [trajectory(i) for i in range(3)], progress=lambda done, total, _: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_forecasts_that_cannot_be_measured_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected forecasts \(32, 5, 4, 6, 2\)"):
        evaluate(lambda context: context, [trajectory()])
    with pytest.raises(ValueError, match="expected finite forecasts, got NaN or infinity for x/test/id/00004"):
        evaluate(lambda context: persistence(context) * np.nan, [trajectory(0, Key("x", "test", "id", 4))])
    with pytest.raises(ValueError, match="expected metrics among"):
        evaluate(persistence, [trajectory()], metrics=("accuracy",))
    with pytest.raises(ValueError, match=r"expected metrics to be a text, got \[3\]"):
        evaluate(persistence, [trajectory()], metrics=[3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="a value at every point, got masked ones"):
        evaluate(lambda context: np.ma.masked_greater(persistence(context), 1), [trajectory()])
    with pytest.raises(ValueError, match="at least one trajectory"):
        evaluate(persistence, [])
    with pytest.raises(DataError, match="at least 9 frames"):
        evaluate(persistence, [trajectory(frames=8)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_forecasts_may_be_tensors(dtype) -> None:
    def made(context: np.ndarray) -> Any:
        return torch.tensor(persistence(context), dtype=dtype, requires_grad=True)

    def known(context: np.ndarray) -> np.ndarray:
        return made(context).detach().double().numpy()

    assert evaluate(made, [trajectory()]) == evaluate(known, [trajectory()])


def test_complex_forecasts_are_refused() -> None:
    with pytest.raises(ArgumentError, match="expected real forecasts, got complex"):
        evaluate(lambda context: persistence(context).astype(np.complex128), [trajectory()])


def test_trivial_forecasts_by_hand() -> None:
    context = np.array([[1.0, 2.0, 4.0, 7.0]], dtype=np.float32).reshape(1, 4, 1, 1, 1)
    assert persistence(context).ravel().tolist() == [7, 7, 7, 7, 7]
    assert extrapolation(context, horizons=3).ravel().tolist() == [10, 13, 16]
    assert extrapolation(context).dtype == np.float32 and extrapolation(context).shape == (1, 5, 1, 1, 1)
    with pytest.raises(ValueError, match="at least 2 frames"):
        extrapolation(context[:, :1])


def test_nearly_zero_fields_to_compare_with_are_said_once() -> None:
    fading = np.where(np.arange(20) < 12, 1.0, 1e-5)
    given = [trajectory(), of_function(fading), of_function(fading)]
    with pytest.warns(UserWarning, match=r"nearly zero ones in trajectory 1 from frame 12; relative_l2 says") as said:
        warn_of_vanishing(given)
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_vanishing(given, ("mse",))
        warn_of_vanishing([trajectory(), of_function(1e-30 * np.ones(12)), of_function(np.exp(-np.arange(9.0)))])


@pytest.mark.parametrize("which", [0, 1])
def test_a_metric_that_writes_into_its_fields_is_refused_and_changes_no_other(registrations, which) -> None:
    def writing(*pair):
        pair[which][...] -= 1
        return np.abs(pair[0] - pair[1]).max(axis=(-3, -2, -1))

    register(Metric("writing", "Writing", writing))
    with pytest.raises(ArgumentError, match="expected the metric 'writing' to leave the fields as they are, got one"):
        evaluate(persistence, [trajectory()], metrics=("writing", "relative_l2"))


def test_another_error_of_a_metric_is_its_own(registrations) -> None:
    register(Metric("failing", "Failing", lambda p, t: int("x")))  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="invalid literal"):
        evaluate(persistence, [trajectory()], metrics=("failing",))


def test_variances_at_which_the_unit_decides_are_said() -> None:
    fields = np.random.default_rng(0).standard_normal((9, 4, 4, 2)).astype(np.float32)
    with pytest.warns(UserWarning, match=r"far above 1e-7 for vrmse, got .*e-0. in trajectory 0; there it depends"):
        warn_of_vanishing([Trajectory(1e-3 * fields, np.arange(9.0))], ("vrmse",))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_vanishing([Trajectory(fields, np.arange(9.0))], ("vrmse",))


def test_what_is_held_out_vanishes_beside_what_came_before() -> None:
    kept = [of_function(np.full(12, 1e-5))]
    with pytest.warns(UserWarning, match="from frame 4; relative_l2 says"):
        warn_of_vanishing(kept, largest=norms_of(of_function(np.ones(12)).fields).max())
