import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rdjepa.data.normalization import Normalizer
from rdjepa.training.pretrain import PROFILES, PretrainConfig, newest_state, pretrain, scaled
from rdjepa.training.source import Source
from rdjepa.training.tensorfile import CheckpointError

CONFIG = PretrainConfig(steps=6, batch=2, warmup=2, save_every=2, log_every=1, diagnose_every=3)


def source(seed=0, systems=("a", "b")):
    rng = np.random.default_rng(seed)
    fields = {name: [rng.standard_normal((14, 2, 128, 128)).astype(np.float32)] for name in systems}
    return Source(fields, {n: Normalizer((0.0, 0.0), (1.0, 1.0)) for n in systems}, {f"{n}/0": "sum" for n in systems})


def equal(a, b):
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


def test_paper_profile_is_table_s4():
    paper = PROFILES["paper"]
    assert (paper.steps, paper.batch, paper.peak, paper.minimum, paper.warmup) == (200_000, 4, 7e-5, 1e-6, 5_000)
    assert (paper.weight_decay, paper.betas, paper.clip, paper.seed) == (0.05, (0.9, 0.95), 1.0, 1234)
    assert paper.ema == (0.996, 0.99995)


def test_batches_are_a_function_of_seed_and_index_and_balanced_over_systems():
    data = source()
    a, b = data.batch(1, 5, 4, 16, CONFIG.targets), data.batch(1, 5, 4, 16, CONFIG.targets)
    assert all(torch.equal(getattr(a, n), getattr(b, n)) for n in ("context", "futures", "patches", "mask"))
    assert not torch.equal(a.patches, data.batch(1, 6, 4, 16, CONFIG.targets).patches)
    systems = [s for i in range(100) for s in data.batch(2, i, 4, 16, CONFIG.targets).systems]
    assert abs(systems.count("a") / len(systems) - 0.5) < 0.1


def test_futures_are_the_frames_at_the_queried_offsets():
    frames = np.broadcast_to(np.arange(14.0, dtype=np.float32)[:, None, None, None], (14, 2, 128, 128))
    data = Source({"a": [np.ascontiguousarray(frames)]}, {}, {})
    for index in range(20):
        batch = data.batch(0, index, 2, 16, CONFIG.targets)
        newest = batch.context[:, -1, 0, 0, 0]
        answered = batch.futures[batch.frame_of_query, 0, 0, 0]
        assert torch.equal(answered, newest[:, None] + batch.offsets)


def test_resumed_run_ends_with_the_same_bits(tiny, tmp_path):
    whole = pretrain("tiny", source(), tmp_path / "whole", CONFIG, validation=source(1))
    pretrain("tiny", source(), tmp_path / "parts", CONFIG, validation=source(1), stop_at=3)
    parts = pretrain("tiny", source(), tmp_path / "parts", CONFIG, validation=source(1), resuming=True)
    assert equal(whole, parts)
    lines = [json.loads(x) for x in (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()]
    assert [x["step"] for x in lines] == [1, 2, 3, 4, 5, 6]
    assert {"latent_loss", "mean_loss", "persistence_loss", "target_std", "target_rank"} <= lines[2].keys()
    assert len(newest_state(tmp_path / "parts")) == 2


def test_damaged_newest_state_gives_way_to_the_one_before(tiny, tmp_path):
    whole = pretrain("tiny", source(), tmp_path / "whole", CONFIG)
    pretrain("tiny", source(), tmp_path / "run", CONFIG, stop_at=4)
    newest, older = newest_state(tmp_path / "run")
    newest.write_bytes(newest.read_bytes()[:-9])
    assert equal(whole, pretrain("tiny", source(), tmp_path / "run", CONFIG, resuming=True))
    for path in newest_state(tmp_path / "run"):
        path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="only damaged"):
        pretrain("tiny", source(), tmp_path / "run", CONFIG, resuming=True)
    assert older.name == "step-00000002.safetensors"


def test_other_configuration_data_or_a_used_directory_is_refused(tiny, tmp_path):
    pretrain("tiny", source(), tmp_path, CONFIG, stop_at=2)
    with pytest.raises(ValueError, match="resume it or choose another"):
        pretrain("tiny", source(), tmp_path, CONFIG)
    with pytest.raises(ValueError, match="batch, peak"):
        pretrain("tiny", source(), tmp_path, replace(CONFIG, batch=3, peak=1.0), resuming=True)
    with pytest.raises(ValueError, match="same data"):
        pretrain("tiny", source(systems=("a", "c")), tmp_path, CONFIG, resuming=True)
    with pytest.raises(ValueError, match="paper, small, nano"):
        pretrain("unheard", source(), tmp_path / "x", CONFIG)


def test_not_a_number_stops_the_run_and_names_step_and_systems(tiny, tmp_path):
    data = source()
    for arrays in data.fields.values():
        arrays[0][:] = np.nan
    with pytest.raises(FloatingPointError, match=r"step 0 on"):
        pretrain("tiny", data, tmp_path, CONFIG)


def test_encoder_moves_and_target_does_not_collapse_at_once(tiny, tmp_path):
    pretrain("tiny", source(), tmp_path, CONFIG, validation=source(1))
    last = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["target_std"] > 0.01
    assert last["target_rank"] > 1.5


def test_scaled_profile_keeps_the_share_of_warm_up():
    half = scaled(PROFILES["paper"], 100_000)
    assert (half.steps, half.warmup) == (100_000, 2_500)


def test_killed_process_resumes_to_the_same_bits(tiny, tmp_path):
    """SIGKILL at arbitrary moments, again and again, then one last run to the end."""
    script = tmp_path / "run.py"
    script.write_text(
        "import sys; sys.path[:0] = sys.argv[1].split(':')\n"
        "from pathlib import Path\n"
        "from conftest import TINY\n"
        "from test_pretrain import CONFIG, source\n"
        "from rdjepa.models.rdjepa import PRESETS\n"
        "from rdjepa.training.pretrain import pretrain\n"
        "from dataclasses import replace\n"
        "PRESETS['tiny'] = TINY\n"
        "config = replace(CONFIG, steps=30)\n"
        "pretrain('tiny', source(), Path(sys.argv[2]), config, resuming=True)\n"
    )
    here = Path(__file__).parent
    command = [sys.executable, str(script), f"{here}:{here.parent}", str(tmp_path / "killed")]
    log = tmp_path / "killed" / "metrics.jsonl"
    for lines in (3, 11):
        process = subprocess.Popen(command)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            if log.exists() and len(log.read_text().splitlines()) >= lines:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert subprocess.run(command, check=False).returncode == 0
    config = replace(CONFIG, steps=30)
    pretrain("tiny", source(), tmp_path / "whole", config)
    states = [newest_state(tmp_path / name)[0].read_bytes() for name in ("killed", "whole")]
    assert states[0] == states[1]
