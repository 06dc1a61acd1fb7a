import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from noise import CONFIG, source

from rdjepa.errors import ArgumentError, CheckpointError, DataError, DivergenceError, Note, OutputError
from rdjepa.io.tensors import load_tensors, save_tensors
from rdjepa.models.rdjepa import build
from rdjepa.pretraining import run_directory
from rdjepa.pretraining.config import PROFILES, PretrainConfig, scaled
from rdjepa.pretraining.dataset import Dataset
from rdjepa.pretraining.frames import Frames
from rdjepa.pretraining.loop import _measure, pretrain
from rdjepa.pretraining.monitor import QUEUE
from rdjepa.pretraining.objectives.predictive_latent import PredictiveLatent
from rdjepa.pretraining.schedules import ema_momentum, learning_rate
from rdjepa.pretraining.state import TrainingState, resume, saved_states, state_name
from rdjepa.pretraining.targets import TargetConfig
from tiny import TINY

pytestmark = pytest.mark.usefixtures("few")


def equal(a, b):
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


def test_paper_profile_is_table_s4():
    paper = PROFILES["paper"]
    assert (paper.steps, paper.batch, paper.peak, paper.minimum, paper.warmup) == (200_000, 4, 7e-5, 1e-6, 5_000)
    assert (paper.weight_decay, paper.betas, paper.clip, paper.seed) == (0.05, (0.9, 0.95), 1.0, 1234)
    assert paper.ema == (0.996, 0.99995)


def test_smaller_profiles_change_only_length_batch_rate_averaging_and_how_often_is_written():
    free = {"steps", "batch", "peak", "warmup", "ema", "precision", "save_every", "log_every", "diagnose_every"}
    paper = vars(PROFILES["paper"])
    for name in ("small", "nano"):
        assert {key for key, value in vars(PROFILES[name]).items() if value != paper[key]} <= free
    assert vars(paper["targets"]) == vars(TargetConfig())


@pytest.mark.parametrize("ema", [(0.9, 1.0), (-0.1, 0.5)])
def test_averaging_that_never_moves_or_overshoots_is_refused(ema):
    with pytest.raises(ValueError, match="expected ema to be a number"):
        PretrainConfig(ema=ema)


def test_no_stride_is_refused():
    with pytest.raises(ArgumentError, match="at least one stride"):
        PretrainConfig(strides=())
    with pytest.raises(ArgumentError, match="strides"):
        PretrainConfig(strides=(0,))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": 10, "warmup": 11}, r"a warm-up within the 10 steps of the run, got one of 11; .*config\.scaled"),
        ({"minimum": 1e-3}, r"a learning rate that falls from its peak, got a peak of 7e-05 and a minimum of 0\.001"),
    ],
)
def test_schedules_that_never_reach_their_peak_or_rise_to_their_minimum_are_refused(changes, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        PretrainConfig(**changes)


def test_two_weights_of_a_system_are_refused():
    with pytest.raises(ArgumentError, match="expected one weight of each system, got several of family"):
        PretrainConfig(weights=(("family", 2), ("barkley", 1), ("family", 3)))


def test_batches_are_a_function_of_seed_and_index_and_balanced_over_systems():
    data = source()
    a, b = data.batch(1, 5, 4, 16, CONFIG.targets), data.batch(1, 5, 4, 16, CONFIG.targets)
    assert all(torch.equal(getattr(a, n), getattr(b, n)) for n in ("context", "futures", "patches", "mask"))
    assert not torch.equal(a.patches, data.batch(1, 6, 4, 16, CONFIG.targets).patches)
    systems = [s for i in range(100) for s in data.batch(2, i, 4, 16, CONFIG.targets).systems]
    assert abs(systems.count("a") / len(systems) - 0.5) < 0.1


def test_a_system_with_a_weight_is_drawn_as_many_times_as_often():
    data = source()
    usual, same, often = (
        [name for i in range(200) for name in data.plan(2, i, 4, 16, CONFIG.targets, weights=weights).systems]
        for weights in ({}, {"a": 1}, {"b": 3})
    )
    assert usual == same and abs(often.count("b") / len(often) - 0.75) < 0.05


def test_windows_of_several_strides_are_drawn_equally_often_and_end_within_their_trajectory():
    frames = np.broadcast_to(np.arange(40.0, dtype=np.float32)[:, None, None, None], (40, 2, 8, 8))
    data = Dataset(Frames.of({"a": [np.ascontiguousarray(frames)] * 2}), {})
    targets, seen = TargetConfig(sides=(1, 2)), []
    for index in range(100):
        plan = data.plan(3, index, 4, 4, targets, strides=(1, 3))
        steps = plan.context.diff(dim=1)
        assert (steps == steps[:, :1]).all()
        seen.extend(steps[:, 0].tolist())
        last = plan.futures[plan.frame_of_query]
        assert torch.equal(last, plan.context[:, -1:] + steps[:, :1] * plan.offsets)
        assert torch.equal(last // 40, plan.context[:, :1] // 40 + 0 * last)
    assert set(seen) == {1, 3} and abs(seen.count(3) / len(seen) - 0.5) < 0.08
    usual, one = data.plan(3, 0, 4, 4, targets), data.plan(3, 0, 4, 4, targets, strides=(1,))
    assert torch.equal(usual.context, one.context) and torch.equal(usual.patches, one.patches)


def test_validation_has_windows_of_the_strides_of_the_training(tiny, tmp_path, monkeypatch):
    frames = np.random.default_rng(0).standard_normal((40, 2, TINY.grid, TINY.grid)).astype(np.float32)
    dataset, validation = (Dataset(Frames.of({"a": [frames]}), {}, {"a/0": "sum"}) for _ in range(2))
    plan, seen = Dataset.plan, set()

    def noted(self, *given, **settings):
        made = plan(self, *given, **settings)
        if self is validation:
            seen.update(made.context.diff(dim=1).flatten().tolist())
        return made

    monkeypatch.setattr(Dataset, "plan", noted)
    pretrain("tiny", dataset, tmp_path, replace(CONFIG, strides=(1, 3)), validation=validation, stop_at=1)
    assert seen == {1, 3}


def test_futures_are_the_frames_at_the_queried_offsets():
    frames = np.broadcast_to(np.arange(14.0, dtype=np.float32)[:, None, None, None], (14, 2, TINY.grid, TINY.grid))
    data = Dataset(Frames.of({"a": [np.ascontiguousarray(frames)]}), {})
    for index in range(20):
        batch = data.batch(0, index, 2, 16, CONFIG.targets)
        newest = batch.context[:, -1, 0, 0, 0]
        answered = batch.futures[batch.frame_of_query, 0, 0, 0]
        assert torch.equal(answered, newest[:, None] + batch.offsets)


def test_resumed_run_ends_with_the_same_bits(tiny, whole, tmp_path):
    pretrain("tiny", source(), tmp_path / "parts", CONFIG, validation=source(1), stop_at=3)
    parts = pretrain("tiny", source(), tmp_path / "parts", CONFIG, validation=source(1), resuming=True)
    assert equal(whole, parts) and not equal(whole.encoder, build("tiny", seed=CONFIG.seed).encoder)
    lines = [json.loads(x) for x in (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()]
    assert [x["step"] for x in lines] == [1, 2, 3, 4, 5, 6]
    assert {"latent_loss", "mean_loss", "persistence_loss", "target_std", "target_rank"} <= lines[2].keys()
    assert lines[-1]["target_std"] > 0.01 and lines[-1]["target_rank"] > 1.5
    assert len(saved_states(tmp_path / "parts")) == 2


def test_a_run_of_an_earlier_version_is_resumed_by_the_systems_of_its_statistics(tiny, whole, tmp_path, edit_json):
    pretrain("tiny", source(), tmp_path / "old", CONFIG, stop_at=2)
    edit_json(tmp_path / "old" / "data.json", lambda record: record.pop("systems"))
    with pytest.raises(ArgumentError, match="expected the systems a, b"):
        pretrain("tiny", source(systems=("b", "a")), tmp_path / "old", CONFIG, resuming=True)
    assert equal(whole, pretrain("tiny", source(), tmp_path / "old", CONFIG, resuming=True))


def test_a_run_with_other_field_statistics_is_not_resumed(tiny, tmp_path):
    pretrain("tiny", source(), tmp_path, CONFIG, stop_at=2)
    others = source()
    others.normalizers["a/0"] = others.normalizers.pop("a")
    with pytest.raises(ArgumentError, match=r"expected the field statistics that .* start a new run"):
        pretrain("tiny", others, tmp_path, CONFIG, resuming=True)


@pytest.mark.parametrize("change", [{"mean": (0.0, 1e-3)}, {"std": (1.001, 1.0)}])
def test_statistics_of_other_values_are_not_gone_on_with_but_for_rounding(tiny, tmp_path, change):
    pretrain("tiny", source(), tmp_path, CONFIG, stop_at=2)
    others = source()
    others.normalizers["b"] = replace(others.normalizers["b"], **change)
    with pytest.raises(ArgumentError, match=r"expected the field statistics that .* got others of b, with the same"):
        pretrain("tiny", others, tmp_path, CONFIG, resuming=True)
    others.normalizers["b"] = replace(source().normalizers["b"], mean=(1e-6, 0.0), std=(1.0, 1 - 1e-6))
    pretrain("tiny", others, tmp_path, CONFIG, stop_at=2, resuming=True)


@pytest.mark.parametrize("name", ["model", "metrics.jsonl", "state"])
def test_a_part_of_a_run_alone_is_neither_overwritten_nor_gone_on_from(tiny, tmp_path, name):
    if name == "metrics.jsonl":
        (tmp_path / name).write_text('{"step": 5}\n')
    else:
        (tmp_path / name).mkdir()
    for resuming in (False, True):
        with pytest.raises(ArgumentError, match=rf"got .* with {name} but without data\.json; choose another"):
            pretrain("tiny", source(), tmp_path, CONFIG, resuming=resuming)
    assert not (tmp_path / "data.json").exists()
    assert name != "metrics.jsonl" or (tmp_path / name).read_text() == '{"step": 5}\n'


def test_a_finished_run_without_its_states_does_not_start_over(tiny, tmp_path):
    pretrain("tiny", source(), tmp_path, CONFIG, stop_at=2)
    (tmp_path / "model").mkdir()
    lines = (tmp_path / "metrics.jsonl").read_bytes()
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(ArgumentError, match="with model but without states; "):
        pretrain("tiny", source(), tmp_path, CONFIG, resuming=True)
    assert (tmp_path / "metrics.jsonl").read_bytes() == lines


def test_metrics_that_are_not_finite_end_the_run_where_they_are_written(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(PredictiveLatent, "watch", lambda self: {"ratio": float("nan")})
    with pytest.raises(DivergenceError, match="expected finite metrics at step 1, got one that is not; "):
        pretrain("tiny", source(), tmp_path, CONFIG)


def test_latents_that_collapse_in_training_alone_are_told(tiny):
    training = TrainingState("tiny", CONFIG, torch.device("cpu"))
    training.step = CONFIG.warmup
    training.queue.push(torch.ones(QUEUE, 64, 8), ["a"] * QUEUE)
    healthy = {"target_std": 0.9, "target_rank": 60.0, "target_cosine": 0.2, "skill_mean": 0.8}
    training.objective.diagnose = lambda held_out: healthy  # type: ignore[assignment]
    warnings = _measure(training, {}, [source().batch(0, 0, 2, 8, CONFIG.targets)])["warnings"]
    assert warnings and all(each.startswith("in training, targets") for each in warnings)
    training.queue.kept.pop()
    assert "warnings" not in _measure(training, {}, [source().batch(0, 0, 2, 8, CONFIG.targets)])


def test_warm_up_keeps_its_share_of_a_run_of_another_length():
    assert scaled(PROFILES["nano"], 75_000).warmup == 2 * PROFILES["nano"].warmup
    assert scaled(PretrainConfig(steps=100, warmup=0), 50).warmup == 0
    assert scaled(PretrainConfig(steps=1000, warmup=10), 5).warmup == 1


def test_damaged_newest_state_gives_way_to_the_one_before(tiny, whole, tmp_path):
    pretrain("tiny", source(), tmp_path / "run", CONFIG, stop_at=4)
    newest, older = saved_states(tmp_path / "run")
    newest.write_bytes(newest.read_bytes()[:-9])
    with pytest.warns(Note, match=rf"the run goes on from {older.name}, since .*{newest.name} .*; check the disk"):
        found = pretrain("tiny", source(), tmp_path / "run", CONFIG, resuming=True)
    assert equal(whole, found)
    for path in saved_states(tmp_path / "run"):
        path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="only damaged"):
        pretrain("tiny", source(), tmp_path / "run", CONFIG, resuming=True)
    assert older.name == "step-00000002.safetensors"


def test_two_whole_states_are_kept_beside_one_that_is_damaged(tiny, tmp_path):
    pretrain("tiny", source(), tmp_path, CONFIG, stop_at=4)
    saved_states(tmp_path)[0].write_bytes(b"")
    often = replace(CONFIG, save_every=1)
    with pytest.warns(Note, match="goes on from step-00000002"):
        pretrain("tiny", source(), tmp_path, often, resuming=True, stop_at=3)
    assert [path.name for path in saved_states(tmp_path)] == [state_name(3), state_name(2)]


def test_what_is_no_state_or_has_other_networks_gives_way_too(tiny, tmp_path):
    pretrain("tiny", source(), tmp_path, CONFIG, stop_at=2)
    (path,) = saved_states(tmp_path)
    tensors, record = load_tensors(path)
    record.pop("sha256")
    for step, given, told, sentence in (
        (3, {}, {"kind": "model"}, "a state of a pretraining, got a file without its config at"),
        (4, {"jepa.head": torch.zeros(1)}, record, "the networks of PredictiveLatent, got those of others in"),
    ):
        other = path.with_name(state_name(step))
        save_tensors(other, given or tensors, told | ({"step": step} if given else {}))
        training = TrainingState("tiny", CONFIG, torch.device("cpu"))
        with pytest.raises(CheckpointError, match=rf"expected {sentence}|expected the weights of {sentence}"):
            training.load(other)
        with pytest.warns(Note, match="goes on from step-00000002"):
            resume(training, tmp_path)
        assert training.step == 2
        other.unlink()


def test_other_configuration_data_or_a_used_directory_is_refused(tiny, tmp_path):
    pretrain("tiny", source(), tmp_path, CONFIG, stop_at=2)
    with pytest.raises(ValueError, match="resume it or choose another"):
        pretrain("tiny", source(), tmp_path, CONFIG)
    with pytest.raises(ValueError, match="batch, peak"):
        pretrain("tiny", source(), tmp_path, replace(CONFIG, batch=3, peak=1.0), resuming=True)
    for other in (("a", "c"), ("b", "a")):
        with pytest.raises(ArgumentError, match=rf"expected the systems a, b that .* got {', '.join(other)}; "):
            pretrain("tiny", source(systems=other), tmp_path, CONFIG, resuming=True)
    others = source()
    others.checksums["a/0"] = "another"
    with pytest.raises(ArgumentError, match="same data"):
        pretrain("tiny", others, tmp_path, CONFIG, resuming=True)
    with pytest.raises(ValueError, match="paper, small, nano"):
        pretrain("unheard", source(), tmp_path / "x", CONFIG)


def test_not_a_number_stops_the_run_and_names_step_and_systems(tiny, tmp_path):
    data = source()
    data.frames.table[:] = torch.nan
    with pytest.raises(FloatingPointError, match=r"step 0 on .*; start a new run with a lower"):
        pretrain("tiny", data, tmp_path, CONFIG)


def test_scaled_profile_keeps_the_share_of_warm_up():
    half = scaled(PROFILES["paper"], 100_000)
    assert (half.steps, half.warmup) == (100_000, 2_500)


def test_watching_does_not_change_the_bits(tiny, whole, tmp_path):
    often = replace(CONFIG, log_every=1, diagnose_every=1)
    assert equal(whole, pretrain("tiny", source(), tmp_path, often, validation=source(1), progress=lambda *_: None))


def test_every_diagnostic_is_in_the_lines_and_the_warnings_wait_for_the_warm_up(tiny, tmp_path):
    config = replace(CONFIG, diagnose_every=1, peak=0.0, minimum=0.0)  # nothing is learnt
    pretrain("tiny", source(), tmp_path, config, validation=source(1))
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert {
        "loss", "latent_loss", "skill_mean", "skill_persistence", "target_std", "target_rank", "target_cosine",
        "averaging_distance", "gates", "gradient_norms", "queue", "steps_per_second", "data_wait",
    } <= lines[-1].keys()  # fmt: skip
    assert lines[-1]["queue"]["samples"] == 12
    assert "warnings" not in lines[0]
    assert any("no better than the mean target" in warning for warning in lines[-1]["warnings"])


def test_a_gradient_that_is_not_finite_leaves_the_weights_alone(tiny):
    training = TrainingState("tiny", CONFIG, torch.device("cpu"))
    objective: Any = training.objective
    before = {name: value.clone() for name, value in objective.state_dict().items()}
    objective.predictor.embedding.register_hook(lambda gradient: gradient * torch.inf)
    with pytest.raises(FloatingPointError, match="gradient"):
        training.update([source().batch(0, 0, 2, 8, CONFIG.targets)])
    assert all(torch.equal(before[name], value) for name, value in objective.state_dict().items())


def test_target_encoder_has_no_gradient_and_no_optimizer_state_and_moves_after_the_step(tiny):
    config = replace(CONFIG, ema=(0.75, 0.75))
    training = TrainingState("tiny", config, torch.device("cpu"))
    objective: Any = training.objective
    before = [p.clone() for p in objective.target_encoder.parameters()]
    training.update([source().batch(0, 0, 2, 8, config.targets)])
    target, online = objective.target_encoder, objective.encoder
    assert all(p.grad is None for p in target.parameters())
    assert not objective.targets(torch.randn(1, 2, TINY.grid, TINY.grid)).requires_grad
    assert not any(p in training.optimizer.state for p in target.parameters())
    triples = zip(before, target.parameters(), online.parameters(), strict=True)
    assert all(torch.allclose(xi, 0.75 * old + 0.25 * theta, atol=1e-7) for old, xi, theta in triples)


@pytest.mark.slow
def test_killed_process_resumes_to_the_same_bits(tiny, tmp_path):
    """SIGKILL while it saves, computes or starts, again and again, then one last run to the end."""
    script = tmp_path / "run.py"
    script.write_text(
        "import sys; sys.path[:0] = sys.argv[1].split(':')\n"
        "from pathlib import Path\n"
        "from dataclasses import replace\n"
        "from noise import CONFIG, source\n"
        "from tiny import TINY\n"
        "from rdjepa.models.rdjepa import PRESETS\n"
        "from rdjepa.pretraining.loop import pretrain\n"
        "PRESETS['tiny'] = TINY\n"
        "pretrain('tiny', source(), Path(sys.argv[2]), replace(CONFIG, steps=24, save_every=1), resuming=True)\n"
    )
    here, run = Path(__file__).parent, tmp_path / "killed"
    command = [sys.executable, str(script), f"{here}:{here.parent}", str(run)]
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    moments = np.random.default_rng(0).uniform(0.0, 0.4, size=4)
    for number, moment in enumerate(moments):
        process = subprocess.Popen(command, env=one_thread)
        saved = max(saved_states(run), default=None)
        deadline = time.monotonic() + 120
        while process.poll() is None and max(saved_states(run), default=None) == saved:
            assert time.monotonic() < deadline, f"no state was saved before kill {number}"
            time.sleep(0.01)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert subprocess.run(command, check=False, env=one_thread, timeout=300).returncode == 0
    assert subprocess.run([*command[:-1], str(tmp_path / "whole")], check=False, env=one_thread).returncode == 0
    states = [saved_states(tmp_path / name)[0] for name in ("killed", "whole")]
    assert [path.name for path in states] == ["step-00000024.safetensors"] * 2
    records = [load_tensors(path)[1] for path in states]
    # The digest of all tensors is in a record; curves name seconds, which are another run's own.
    assert records[0] == records[1] | {"curves": records[0]["curves"]}


def test_a_run_directory_in_use_is_refused(tiny, tmp_path):
    refused: list = []

    def second(*_):
        if not refused:
            with pytest.raises(ArgumentError, match="where another process pretrains") as found:
                pretrain("tiny", source(), tmp_path / "run", CONFIG, resuming=True)
            refused.append(found)

    pretrain("tiny", source(), tmp_path / "run", CONFIG, stop_at=2, progress=second)
    assert refused
    pretrain("tiny", source(), tmp_path / "run", CONFIG, stop_at=2, resuming=True)


def test_a_state_under_the_name_of_another_step_is_refused(tiny, tmp_path):
    pretrain("tiny", source(), tmp_path / "run", CONFIG, stop_at=2)
    newest = saved_states(tmp_path / "run")
    for path in newest:
        path.rename(path.with_name(state_name(4)))
    with pytest.raises(CheckpointError, match="got one of step 2"):
        pretrain("tiny", source(), tmp_path / "run", CONFIG, resuming=True)


def test_changed_curves_are_refused_and_a_run_goes_on_without_them(tiny, tmp_path):
    pretrain("tiny", source(), tmp_path / "run", CONFIG, stop_at=4)
    path = tmp_path / "run" / "metrics.jsonl"
    text = path.read_text()
    for changed in (text.replace("1", "2", 1), text.split("\n", 1)[1], "{}\n" + text):
        path.write_text(changed)
        with pytest.raises(DataError, match="; move the file away to go on without"):
            pretrain("tiny", source(), tmp_path / "run", CONFIG, resuming=True)
        assert path.read_text() == changed
    path.unlink()
    whole = pretrain("tiny", source(), tmp_path / "run", CONFIG, resuming=True)
    assert path.is_file()
    path.unlink()  # of a run that has ended
    for _ in range(2):
        assert equal(whole, pretrain("tiny", source(), tmp_path / "run", CONFIG, validation=source(1), resuming=True))
        (line,) = run_directory.read_metrics(path)
        assert line["step"] == CONFIG.steps and line["target_std"] > 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_curves_on_a_full_disk_end_in_one_sentence():
    with pytest.raises(OutputError, match=r"expected to write /dev/full, got a full disk; free some space"):
        run_directory.append(Path("/dev/full"), {"step": 1})


def test_a_step_is_that_of_adamw_with_all_settings_and_of_the_schedules_at_its_number(tiny):
    config = replace(CONFIG, weight_decay=30.0, betas=(0.5, 0.7), clip=0.01, peak=1e-3, ema=(0.2, 0.9))
    made, plain = (TrainingState("tiny", config, torch.device("cpu")) for _ in range(2))
    objective: Any = plain.objective
    optimizer = torch.optim.AdamW(objective.trainable(), betas=config.betas, weight_decay=config.weight_decay)
    for step in range(3):
        batch = source().batch(0, step, 2, 8, config.targets)
        made.update([batch])
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, config.steps, config.warmup, config.peak, config.minimum)
        optimizer.zero_grad()
        objective(batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(objective.trainable(), config.clip)
        optimizer.step()
        objective.update_target(ema_momentum(step, config.steps, *config.ema))
    for (name, one), other in zip(made.objective.state_dict().items(), objective.state_dict().values(), strict=True):
        # softmax is blind to a shift of all keys: the gradient of their bias is rounding, which AdamW makes a step of
        assert name.endswith("key.bias") or torch.allclose(one, other, rtol=1e-4, atol=1e-5), name
