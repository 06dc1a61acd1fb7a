import sys

import numpy as np
import pytest

from rdjepa.cli import main as cli


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["rdjepa", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return stopped.value.code


@pytest.mark.parametrize(
    "verb", ["systems", "simulate", "pretrain", "probe", "adapt", "evaluate", "forecast", "demo", "info", "data"]
)
def test_every_verb_explains_itself(monkeypatch, capsys, verb):
    assert run(monkeypatch, verb, "--help") == 0
    assert "Usage" in capsys.readouterr().out


def test_systems_are_listed_and_described(monkeypatch, capsys):
    assert not run(monkeypatch, "systems")
    assert "gray-scott" in capsys.readouterr().out
    assert not run(monkeypatch, "systems", "brusselator")
    assert r"\partial_t u" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("simulate", "heat"), "gray-scott"),
        (("simulate", "barkley", "--regime", "ic-ood"), "id"),
        (("simulate", "barkley", "--split", "secret"), "pool"),
        (("systems", "heat"), "gray-scott"),
        (("demo", "--system", "heat"), "gray-scott"),
        (("demo", "--model", "huge"), "shipped checkpoint"),
        (("pretrain", "--preset", "huge"), "paper, small, nano"),
        (("pretrain", "--data", "nowhere"), "rdjepa simulate"),
        (("pretrain", "--ema", "0.9", "1"), "below 1"),
        (("adapt", "missing.npz"), "missing.npz"),
        (("evaluate", "missing.safetensors", "missing.npz"), "missing"),
    ],
)
def test_bad_input_ends_with_one_sentence_status_2_and_nothing_written(
    monkeypatch, capsys, tmp_path, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, *arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: expected")
    assert sentence in error
    assert "Traceback" not in error
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_adapt_evaluate_and_forecast_from_an_npz_file(monkeypatch, capsys, tmp_path, tiny):
    from rdjepa.io import checkpoint
    from rdjepa.models.rdjepa import build

    checkpoint.save(build("tiny", seed=0), tmp_path / "model", {}, "card")
    data = tmp_path / "mine.npz"
    np.savez(data, np.random.default_rng(0).standard_normal((12, 128, 128, 2)).astype(np.float32))
    out = tmp_path / "f.safetensors"
    assert not run(monkeypatch, "adapt", data, "--model", tmp_path / "model", "--steps", 1, "--out", out)
    assert not run(monkeypatch, "evaluate", out, data, "--out", tmp_path / "rows.jsonl")
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 3 * 2 * 5
    assert not run(monkeypatch, "forecast", out, data, "--out", tmp_path / "future.npz")
    with np.load(tmp_path / "future.npz") as stored:
        assert stored["forecast"].shape == (5, 128, 128, 2)
    assert "relative_l2" in capsys.readouterr().out


def test_an_interrupt_says_that_the_work_is_kept(monkeypatch, capsys, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rdjepa.data.acquire.simulate", interrupted)
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "simulate", "schnakenberg", "--start", "999999") == 130
    assert "what was finished is kept" in capsys.readouterr().err
