import sys

import pytest

from rdjepa.pretraining.tensorboard import Board, scalars


def test_nested_metrics_are_flat_scalars_and_texts_are_left_out():
    line = {"loss": 1, "gates": {"reaction": [0.25, 0.5]}, "warnings": ["text"]}
    assert dict(scalars(line)) == {"loss": 1.0, "gates/reaction/0": 0.25, "gates/reaction/1": 0.5}


def test_nothing_is_written_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Board(None) as board:
        board.write({"step": 1, "loss": 0.5})
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ValueError, match=r"rdjepa\[tensorboard\]"):
        Board(tmp_path)


def test_a_resumed_run_shows_no_step_twice(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for steps in ((1, 2, 3), (2,)):
        with Board(tmp_path) as board:
            for step in steps:
                board.write({"step": step, "loss": 0.5})
    assert [event.step for event in EventAccumulator(str(tmp_path)).Reload().Scalars("loss")] == [1, 2]


def test_lines_can_be_read_back(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with Board(tmp_path) as board:
        board.write({"step": 7, "loss": 0.5, "queue": {"samples": 4}})
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss")] == [(7, 0.5)]
    assert events.Scalars("queue/samples")[0].value == 4
