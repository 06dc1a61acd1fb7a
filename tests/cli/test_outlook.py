from types import SimpleNamespace

import numpy as np
import pytest

from rdjepa.cli.outlook import (
    say_better_base,
    say_choice,
    say_retention,
    say_simpler,
    say_spread,
    say_width,
    warn_of_novelty,
)
from rdjepa.errors import Note
from rdjepa.evaluation.evaluate import Row

BEGINNING = "standardized error on data that were held out: network alone "


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"retained": 0.5}, ""),  # not left to the data, so nothing was decided
        (
            {"retained": 0.0, "unadapted": 0.7124},
            "standardized error on the data before any update: 0.712; 3 updates\n",
        ),
        (
            {"retained": 0.5, "unadapted": 0.07},
            "standardized error on the data before any update: 0.070; 3 updates, then 50 % of the pretrained weights "
            "mixed in\n",
        ),
        (
            {"retained": 0.5, "unadapted": 0.6, "together": 0.01, "combined": [[0.02, 0.0], [0.9, 0.8], [0.1, 0.3]]},
            "standardized error on the data before any update: 0.600, combined with simple forecasts 0.010; 3 updates, "
            "then 50 % of the pretrained weights mixed in; at most 85 % of a frame from the network, alone or blended "
            "with the equation\n",
        ),
        (
            {"retained": 0.0, "unadapted": 0.6, "together": 0.01, "combined": [[0.002, 0.0], [0.0, 0.008]]},
            "standardized error on the data before any update: 0.600, combined with simple forecasts 0.010; 3 updates; "
            "next to nothing of a frame from the network, so that updates change hardly any forecast\n",
        ),
        (
            {"retained": 0.0, "unadapted": 0.6, "together": 0.4, "combined": [[1.0, 1.0], [1.0, 1.0]]},
            "standardized error on the data before any update: 0.600, combined with simple forecasts 0.400; 3 updates; "
            "blended with the equation of each context\n",
        ),
        (
            {"retained": 0.0, "unadapted": 0.07, "encoder": "tuned", "augmented": 0},
            "standardized error on the data before any update: 0.070; 3 updates, encoder included\n",
        ),
        (
            {"retained": 0.0, "unadapted": 0.4, "augmented": 8},
            "standardized error on the data before any update: 0.400; 3 updates, 7 turned or mirrored images of each "
            "trajectory too\n",
        ),
    ],
)
def test_what_is_retained_is_said_where_the_data_decided(capsys, monkeypatch, record, said):
    monkeypatch.setattr("rdjepa.cli.outlook.console.width", 300, raising=False)
    say_retention(SimpleNamespace(record=record, losses=[0.3, 0.2, 0.1]))  # type: ignore[arg-type]
    assert " ".join(capsys.readouterr().out.split()) == said.strip()


@pytest.mark.parametrize(
    ("tried", "said"),
    [
        ((0.12, 0.15, "none"), "0.120, combined with simple forecasts 0.150; the network alone forecasts"),
        ((0.2, 0.2, "combined"), "0.200, combined with simple forecasts 0.200; the combination forecasts"),
        (None, ""),
    ],
)
def test_what_data_that_were_not_adapted_to_decide_is_said(capsys, tried, said):
    network, combined, base = tried or (None, None, "combined")
    record = {"on_others": {"network": network, "combined": combined}} if tried else {}
    say_choice(SimpleNamespace(record=record | {"held_out": {"trajectories": 1}}, base=base))  # type: ignore[arg-type]
    assert " ".join(capsys.readouterr().out.split()).removeprefix(BEGINNING) == said
    several = record | {"held_out": {}, "withheld": 400}
    if tried:
        say_choice(SimpleNamespace(record=several, base=base))  # type: ignore[arg-type]
        where = "the last trajectory, which the first 400 updates did not see"
        expected = BEGINNING.replace("data that were held out", where) + said
        assert " ".join(capsys.readouterr().out.split()) == expected
    say_choice(SimpleNamespace(record=record | {"held_out": {"frames": 9}}, base=base))  # type: ignore[arg-type]
    same = "; they are of the same recording, and on others the choice may be another" if tried else ""
    assert " ".join(capsys.readouterr().out.split()).removeprefix(BEGINNING) == said + same


@pytest.mark.parametrize(
    ("widths", "said"),
    [
        ([0.1, 0.5], "0.1 in the first frame, 0.5 in the last"),
        ([0.1, 1.5], "0.1 in the first frame, 1.5 in the last; as wide as the range itself they say nothing"),
        ([0.2], "0.2"),
    ],
)
def test_the_width_of_an_interval_is_compared_with_the_range_of_each_component(capsys, widths, said):
    ranges = np.array([[-1.0, 2.0], [1.0, 7.0]])  # lowest and highest of both
    upper = np.array(widths)[:, None, None, None] * np.ones((1, 4, 4, 2)) * (ranges[1] - ranges[0])
    say_width(SimpleNamespace(record={"range": ranges.tolist()}), 0 * upper, upper)  # type: ignore[arg-type]
    found = " ".join(capsys.readouterr().out.split())
    assert found == f"mean width of the intervals, of the range of what was adapted to: {said}"


def test_a_component_without_a_range_is_left_out_of_the_width(capsys):
    upper = np.array([0.5, 0.3]) * np.ones((1, 4, 4, 2))
    say_width(SimpleNamespace(record={"range": [[0.0, 1.0], [1.0, 1.0]]}), 0 * upper, upper)  # type: ignore[arg-type]
    assert " ".join(capsys.readouterr().out.split()).endswith("adapted to: 0.5")
    say_width(SimpleNamespace(record={"range": [[0.0, 1.0], [0.0, 1.0]]}), 0 * upper, upper)  # type: ignore[arg-type]
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ({"rd-jepa": 0.3, "equation": 0.2, "persistence": 0.25}, "equation has less error here than the forecaster; "),
        ({"rd-jepa": 0.3, "equation": 0.29, "mine": 0.1}, ""),  # hardly less; a rival is the user's own
        ({"equation": 0.3, "persistence": 0.1}, "persistence has less error"),
        ({"equation": 0.1}, ""),
    ],
)
def test_what_is_simpler_and_clearly_better_is_named(capsys, errors, said):
    say_simpler(errors, next(iter(errors)))
    found = capsys.readouterr().out
    assert found.startswith(said) and bool(found) == bool(said)


PRETRAINED = {"fingerprint": "a", "decoder": "pretrained"}


@pytest.mark.parametrize(
    ("record", "base", "updates", "extrapolation", "named"),
    [
        (PRETRAINED, "none", 3, 0.1, "--base auto"),  # alone by request: the combination was not tried
        (PRETRAINED, "none", 3, 0.3, ""),
        (PRETRAINED, "none", 0, 0.1, "updates"),  # without any there is no combination
        (
            PRETRAINED | {"on_others": {}},
            "none",
            3,
            0.1,
            "--base linear",
        ),  # tried, and the network alone was better
        (PRETRAINED, "combined", 3, 0.1, "--base linear"),
        (PRETRAINED | {"decoder": "fresh"}, "none", 3, 0.1, "--base linear"),
        (PRETRAINED | {"decoder": "fresh"}, "linear", 3, 0.1, ""),
        ({"fingerprint": ""}, "none", 3, 0.1, ""),  # not pretrained
    ],
)
def test_a_better_base_is_named_where_continuing_the_last_change_is_better(
    capsys, record, base, updates, extrapolation, named
):
    forecaster = SimpleNamespace(record=record, base=base, losses=[0.1] * updates)
    say_better_base(forecaster, 0.2, extrapolation)  # type: ignore[arg-type]
    said = " ".join(capsys.readouterr().out.split())
    assert said == (f"continuing the last change is better here; adapt again with {named}" if named else "")


def test_a_context_that_is_barely_new_is_not_said_to_be_as_near_as_any():
    several = SimpleNamespace(novelty=lambda _: 1.04, calibration=None, record={"frames": [20, 20]})
    with pytest.warns(UserWarning, match=r"expected a context like .* 1\.04 times as far"):
        warn_of_novelty(several, None)  # type: ignore[arg-type]


def test_a_single_recording_does_not_tell_how_far_others_lie():
    alone = SimpleNamespace(novelty=lambda _: 3.0, calibration=None, record={"frames": [20]})
    with pytest.warns(Note, match=r"lies 3\.00 times .* adapt with --calibrate and some of these to know"):
        warn_of_novelty(alone, None)  # type: ignore[arg-type]
    alone.calibration = object()
    with pytest.warns(UserWarning, match="expected a context like"):
        warn_of_novelty(alone, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("trajectories", "said"),
    [
        ({("", 0): (0.1, 0.2)}, "means over the windows of one trajectory"),
        (
            {("", 0): (0.1, 0.2), ("", 1): (0.3, 0.6), ("", 2): (0.2, 0.2)},
            "means over 3 trajectories; on single ones the forecaster's mean mse is 0.1500 to 0.4500, largest on "
            "trajectory 1",
        ),
        (
            {("id", 7): (0.4, 0.4), ("coeff-ood", 7): (0.5, 0.7)},
            "means over 2 trajectories; on single ones the forecaster's mean mse is 0.4000 to 0.6000, largest on "
            "trajectory 7 (coeff-ood)",
        ),
    ],
)
def test_how_far_single_trajectories_lie_apart_is_said(capsys, trajectories, said):
    rows = [
        Row(metric, horizon, regime, trajectory, value * factor)
        for (regime, trajectory), values in trajectories.items()
        for horizon, value in enumerate(values, start=1)
        for metric, factor in (("mse", 1), ("vrmse", 9))
    ]
    say_spread(rows, "mse")
    assert " ".join(capsys.readouterr().out.split()) == said
