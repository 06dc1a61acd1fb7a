"""What layers draw from a seed is the same in every thread, and takes nothing from the program around."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import rdjepa
from rdjepa import forecasters
from rdjepa.models.rdjepa import build, with_fresh_decoder
from rdjepa.models.seeds import seeded


def test_a_seed_gives_what_it_gives_torch_and_the_state_before_is_restored():
    torch.manual_seed(5)
    expected = nn.Linear(4, 4).weight
    torch.manual_seed(6)
    before = torch.get_rng_state()
    with seeded(5):
        found = nn.Linear(4, 4).weight
    with pytest.raises(KeyError), seeded(5), seeded(7):
        raise KeyError
    assert torch.equal(found, expected) and torch.equal(torch.get_rng_state(), before)


def test_a_gpu_that_is_the_default_device_is_initialized_for_its_generator(monkeypatch):
    beside = torch.Generator()  # in the place of that of the GPU
    monkeypatch.setattr("torch.get_default_device", lambda: torch.device("cuda", 1))
    monkeypatch.setattr("torch.cuda.default_generators", ())
    monkeypatch.setattr("torch.cuda.init", lambda: setattr(torch.cuda, "default_generators", (None, beside)))
    before = beside.get_state()
    with seeded(5):
        assert beside.initial_seed() == 5
    assert torch.equal(beside.get_state(), before)


def test_a_seed_gives_the_same_weights_in_every_thread(tiny):
    def drawn(seed):
        return build("tiny", seed=seed).state_dict()

    alone = [drawn(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(drawn, [*range(4)] * 4))
    assert all(torch.equal(alone[i % 4][k], each[k]) for i, each in enumerate(together) for k in each)


@pytest.mark.parametrize(
    "make",
    [
        lambda file: build("nano", seed=1),
        lambda file: with_fresh_decoder(build("nano", seed=1), 2),
        lambda file: forecasters.build("fno", "nano", seed=1),
        lambda file: rdjepa.load("nano"),
        lambda file: rdjepa.load_forecaster(file),
    ],
    ids=["model", "decoder", "forecaster", "load", "load_forecaster"],
)
def test_no_generator_of_the_program_is_moved_or_seeded(make, monkeypatch, tmp_path):
    model = forecasters.build("fno", "nano", seed=1)
    file = rdjepa.Forecaster(model, rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0))).save(tmp_path / "f.safetensors")
    gpus: list[int] = []
    monkeypatch.setattr("torch.cuda.manual_seed_all", gpus.append)
    before = torch.get_rng_state()
    make(file)
    assert torch.equal(torch.get_rng_state(), before) and not gpus
