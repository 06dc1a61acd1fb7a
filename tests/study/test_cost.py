"""Costs add up from measured steps, and a measured step is remembered."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from rdjepa.data.build import trajectory_bytes
from rdjepa.data.trajectory import Key
from rdjepa.forecasters.persistence import persistence
from rdjepa.study import cost
from rdjepa.study import runner as study
from rdjepa.study.cost import Step
from rdjepa.study.supply import Supply
from rdjepa.systems import get

CPU = torch.device("cpu")


def test_a_cell_costs_its_supports_updates_and_tests(brief):
    trained, trivial = study.cells("heldout", ["k=5", "system=barkley", "support_seed=777"])[0::8][:2]
    assert (trained.forecaster, trivial.forecaster) == ("rd-jepa", "persistence")
    step = Step(support=1.0, decide=2.0, update=100.0, test=10_000.0)
    without = replace(brief, curve=(), adapt=replace(brief.adapt, averaging=0.0))
    assert step.of(trained, without) == 5 + 10 + 100 + 10_000
    assert step.of(trivial, without) == step.of(trivial, brief) == 5 + 10 + 10_000
    measured = replace(without, curve=(1,), stride=4)
    assert step.of(trained, measured) == step.of(trained, without) + 10_000 / 4
    assert step.of(trained, replace(measured, adapt=brief.adapt)) == step.of(trained, without) + 10_000 / 2


def test_steps_are_measured_once(tmp_path, monkeypatch, brief, two_cells):
    supply = Supply(tmp_path)
    first = cost.cost(two_cells, brief, supply, CPU)
    assert set(first.seconds) == {"riesz-no", "persistence"} and min(first.seconds.values()) > 0
    assert first.seconds["riesz-no"] > first.seconds["persistence"]
    assert first.data_bytes == 2 * trajectory_bytes(get(two_cells[0].system)) and first.data_seconds > 0

    def again(*arguments):
        raise AssertionError("measured again")

    monkeypatch.setattr(cost, "measure", again)
    monkeypatch.setattr(cost, "draw", again)
    assert cost.cost(two_cells, brief, supply, CPU) == first


def test_what_is_rehearsed_is_simulated_too(tmp_path, monkeypatch, brief, two_cells):
    monkeypatch.setattr(cost, "draw", lambda system: {"draw": 1.0})
    alone = cost.cost(two_cells[1:], brief, Supply(tmp_path), CPU)
    monkeypatch.setattr("rdjepa.study.supply.rehearsed_keys", lambda *_: [Key("schnakenberg"), Key("barkley")])
    assert cost.cost(two_cells[1:], brief, Supply(tmp_path), CPU).data_seconds == alone.data_seconds + 2


def test_nothing_missing_costs_nothing(finished, brief):
    nothing = cost.cost([], brief, Supply(finished), CPU)
    assert nothing.hours == 0 and nothing.data_bytes == nothing.cell_bytes == 0


def test_a_forecaster_without_weights_has_no_updates(brief):
    seconds = cost.measure("persistence", brief, CPU)
    assert seconds["update"] == seconds["support"] == 0 and seconds["test"] > 0


@pytest.mark.parametrize(("kind", "expected"), [("cpu", (3.0 + 2 * 0.25) / 2), ("cuda", 0.25)])
def test_an_update_on_a_gpu_has_no_share_of_what_every_adaptation_captures_first(brief, monkeypatch, kind, expected):
    def adapt(start, fields, *, config, **options):
        seconds = {"features": 0.0, "decide": 0.0, "adapt": 3.0 + 0.25 * config.steps}
        return SimpleNamespace(record={"seconds": seconds}, forecast=persistence)

    monkeypatch.setattr(cost.api, "adapt", adapt)
    monkeypatch.setattr("torch.cuda.synchronize", lambda device: None)
    assert cost.measure("riesz-no", brief, torch.device(kind))["update"] == pytest.approx(expected)


def test_what_stands_beside_a_network_is_timed_only_where_a_cell_has_it(brief, monkeypatch):
    given = []

    def adapt(start, fields, *, base, retain, **options):
        given.append((start.name, base, retain))
        raise InterruptedError

    monkeypatch.setattr(cost.api, "adapt", adapt)
    for name, k in (("rd-jepa-decoder", 1), ("rd-jepa-alone", 1), ("rd-jepa-auto", 5), ("rd-jepa-retained", 1)):
        with pytest.raises(InterruptedError):
            cost.measure(name, brief, CPU, k)
    assert given == [
        ("rd-jepa-decoder", "none", 0.0),
        ("rd-jepa-alone", "none", "auto"),
        ("rd-jepa-auto", "auto", "auto"),
        ("rd-jepa-retained", "none", 0.5),
    ]


def test_a_forecaster_that_decides_is_timed_as_what_it_decides_for(tmp_path, monkeypatch, brief):
    of = ["system=barkley", "support_seed=777", "forecaster=rd-jepa-auto"]
    one, five = (study.cells("decoder", [f"k={k}", *of])[0] for k in (1, 5))

    def measure(name, profile, device, k):
        return {"support": 0.0, "decide": 0.0, "update": {1: 1.0, 5: 3.0}[k], "test": 0.0}

    monkeypatch.setattr(cost, "measure", measure)
    monkeypatch.setattr(cost, "draw", lambda system: {"draw": 0.0})
    supply, steps = Supply(tmp_path), brief.adapt.steps
    assert cost.cost([one], brief, supply, CPU).seconds == {"rd-jepa-auto": steps}
    assert cost.cost([one, five], brief, supply, CPU).seconds == {"rd-jepa-auto": 4 * steps}
