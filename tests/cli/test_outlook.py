from types import SimpleNamespace

import pytest

from rdjepa.cli.outlook import say_choice, say_retention, warn_of_novelty

BEGINNING = "on data that were not adapted to, the network's standardized error is "


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"retained": 0.5}, ""),  # not left to the data, so nothing was decided
        (
            {"retained": 0.0, "unadapted": 0.7124},
            "without an update the standardized error on the data is 0.712: 3 updates\n",
        ),
        (
            {"retained": 0.5, "unadapted": 0.07},
            "without an update the standardized error on the data is 0.070: 3 updates and 50 % of the way back to "
            "these weights\n",
        ),
        (
            {"retained": 0.5, "unadapted": 0.6, "together": 0.01, "combined": [[0.02, 0.0], [0.9, 0.8], [0.1, 0.3]]},
            "without an update the standardized error on the data is 0.600, 0.010 beside simple forecasts: 3 updates "
            "and 50 % of the way back to these weights, then the network has at most 85 % of a frame\n",
        ),
        (
            {"retained": 0.0, "unadapted": 0.6, "together": 0.4, "combined": [[1.0, 1.0], [1.0, 1.0]]},
            "without an update the standardized error on the data is 0.600, 0.400 beside simple forecasts: 3 updates, "
            "then a blend with the equation of each context\n",
        ),
        (
            {"retained": 0.0, "unadapted": 0.07, "encoder": "tuned"},
            "without an update the standardized error on the data is 0.070: 3 updates, the encoder tuned too\n",
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
        ((0.12, 0.15, "none"), "0.120 alone and 0.150 beside simple forecasts: it forecasts alone"),
        ((0.2, 0.2, "combined"), "0.200 alone and 0.200 beside simple forecasts: it forecasts beside them"),
        (None, ""),
    ],
)
def test_what_data_that_were_not_adapted_to_decide_is_said(capsys, tried, said):
    network, combined, base = tried or (None, None, "combined")
    record = {"on_others": {"network": network, "combined": combined}} if tried else {}
    say_choice(SimpleNamespace(record=record, base=base))  # type: ignore[arg-type]
    assert " ".join(capsys.readouterr().out.split()).removeprefix(BEGINNING) == said


def test_a_context_that_is_barely_new_is_not_said_to_be_as_near_as_any():
    with pytest.warns(UserWarning, match=r"lies 1\.04 times as far"):
        warn_of_novelty(SimpleNamespace(novelty=lambda _: 1.04), None)  # type: ignore[arg-type]
