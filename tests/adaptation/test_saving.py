"""The file of a forecaster: what is in it, what is refused."""

from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import nn

import rdjepa
from rdjepa import forecasters
from rdjepa.adaptation.adapt import AdaptConfig
from rdjepa.adaptation.saving import RULES
from rdjepa.errors import ArgumentError, CheckpointError
from rdjepa.forecasters import combined
from rdjepa.forecasters.anchored import SHELLS, Anchored
from rdjepa.forecasters.combined import Combined
from rdjepa.forecasters.domain import Domain
from rdjepa.forecasters.equation import Equation, Remembering
from rdjepa.forecasters.familiar import Familiar
from rdjepa.forecasters.fno import Config
from rdjepa.forecasters.joint import JointForecaster
from rdjepa.forecasters.persistence import Persistence
from rdjepa.forecasters.simple import Simple
from rdjepa.io.tensors import load_tensors, save_tensors


def movie(seed):
    return np.random.default_rng(seed).standard_normal((20, 16, 16, 2)).astype(np.float32)


def adapt(support, steps: Any = 1, **settings):
    model = forecasters.build("fno", Config(width=4, layers=1, modes=4, readout=4, grid=16), seed=0)
    return rdjepa.adapt(model, support, steps=steps, device="cpu", **settings)


def test_the_calibration_is_in_it_and_under_its_checksum(tmp_path):
    calibrated = adapt(movie(0), calibrate=[movie(seed) for seed in (1, 2, 3)])
    path = calibrated.save(tmp_path / "f.safetensors")
    loaded, context = rdjepa.load_forecaster(path), movie(9)[:4]
    for mine, theirs in zip(calibrated.interval(context), loaded.interval(context), strict=True):
        assert np.array_equal(mine, theirs)
    assert loaded.calibration is not None
    assert (loaded.calibration.blocks, loaded.calibration.trajectories) == (3 * 16, 3)
    assert loaded.record["range"] == calibrated.record["range"]
    content = bytearray(path.read_bytes())
    place = content.find(np.float32(calibrated.calibration.scores[0, 0, 50]).tobytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="checksum"):
        rdjepa.load_forecaster(path)


def test_the_domain_of_its_equation_and_how_finely_that_is_integrated_are_in_it(tmp_path):
    domain, shares, context = Domain(True, (1.0, 1.5), finer=2), torch.zeros(5, 5, 2), movie(9)[:4]
    shares[1] = 1
    for model in (Equation(2, domain), Combined(Persistence(), None, shares, Equation(2, domain))):
        made = rdjepa.Forecaster(model, rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0)))
        loaded = rdjepa.load_forecaster(made.save(tmp_path / "f.safetensors"))
        (equation,) = (each for each in loaded.model.modules() if isinstance(each, Equation))
        assert equation.domain == domain
        assert np.array_equal(loaded.forecast(context), made.forecast(context))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("base", ["none", "anchored", "linear"])
def test_one_that_is_read_forecasts_on_the_device_that_is_named(tmp_path, device, base):
    made, context = adapt(movie(0), base=base), movie(9)[:4]
    loaded = rdjepa.load_forecaster(made.save(tmp_path / "f.safetensors"), device)
    assert loaded.device.type == device
    assert np.allclose(loaded.forecast(context), made.forecast(context), atol=1e-3)
    assert loaded.to("cpu") is loaded and loaded.device.type == "cpu"
    assert np.array_equal(loaded.forecast(context), made.forecast(context))


def test_a_device_that_is_not_there_is_told_before_the_file_is_read(tmp_path):
    with pytest.raises(ArgumentError, match="the device auto, cpu or a GPU of this machine, got 'nowhere'"):
        rdjepa.load_forecaster(tmp_path / "absent.safetensors", "nowhere")


def test_one_without_a_calibration_is_read_and_gives_no_interval(tmp_path):
    loaded = rdjepa.load_forecaster(adapt(movie(0)).save(tmp_path / "f.safetensors"))
    assert loaded.calibration is None and loaded.novelty(movie(1)[:4]) is None
    with pytest.raises(ArgumentError, match=r"a forecaster with a calibration, got one without; adapt again"):
        loaded.interval(movie(1)[:4])


@pytest.mark.parametrize(("kind", "base"), [(Combined, "combined"), (Anchored, "anchored")])
def test_one_that_was_combined_or_anchored_by_another_rule_is_refused(tmp_path, monkeypatch, kind, base):
    normalizer = rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0))
    path = rdjepa.Forecaster(kind(Persistence()), normalizer).save(tmp_path / "made.safetensors")
    assert rdjepa.load_forecaster(path).base == base
    monkeypatch.setitem(RULES, base, {**RULES[base], "another": 3})
    with pytest.raises(CheckpointError, match=rf"that is {base} as this version does it, got .* adapt again"):
        rdjepa.load_forecaster(path)


def test_one_that_forecasts_by_other_numbers_is_refused(tmp_path, monkeypatch):
    normalizer, shares = rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0)), torch.zeros(5, 5, 2)
    shares[1] = 1
    known = Familiar(np.ones((3, 2), np.float32), 0.1, 0.01)
    for model in (Combined(Persistence(), None, shares, None, known), Equation()):
        path = rdjepa.Forecaster(model, normalizer).save(tmp_path / "made.safetensors")
        rdjepa.load_forecaster(path)
        with monkeypatch.context() as patch, pytest.raises(CheckpointError, match=r"as this version does it, got"):
            patch.setattr(combined, "POWER", 3)
            patch.setattr(Equation, "constants", {**Equation.constants, "another": 3})
            rdjepa.load_forecaster(path)


class Tied(JointForecaster):
    """Two layers with one weight, and a buffer that is a part of another."""

    presets: ClassVar = {"paper": Config(grid=16), "nano": Config(grid=16)}
    scale: torch.Tensor

    def __init__(self, config):
        super().__init__(config)
        self.first, self.second = nn.Conv2d(10, 10, 1), nn.Conv2d(10, 10, 1)
        self.second.weight = self.first.weight
        self.entry = nn.Conv2d(self.channels_in, 10, 1)
        self.register_buffer("scale", torch.ones(10, 1, 1))
        self.register_buffer("first_five", self.scale[:5])

    def network(self, stacked):
        return self.second(self.first(self.entry(stacked)).relu()) * self.scale


class Mean(Simple):
    """The mean of the trajectories, which no file would have."""

    name = "mean"

    def fitted_to(self, support, domain=None):
        self.mean = float(torch.cat(list(support)).mean()) + 1
        return self

    def predict(self, *features):
        return self.mean + 0 * features[0][:, -1:].expand(-1, 5, -1, -1, -1)

    mean = 0.0


def test_what_would_forecast_something_else_once_it_is_read_is_not_saved(tmp_path):
    made = rdjepa.adapt(Mean(), movie(0), device="cpu")
    with pytest.raises(ArgumentError, match=r"expected the forecast of Mean to be the same .* in buffers"):
        made.save(tmp_path / "mean.safetensors")
    assert not (tmp_path / "mean.safetensors").exists()


class Groups(Tied):
    groups: ClassVar[Any] = []

    def parameter_groups(self):
        return self.groups


def test_a_network_that_names_no_parameters_is_not_trained_in_silence(monkeypatch):
    with pytest.warns(UserWarning, match="`parameter_groups` of Groups names none of its parameters"):
        assert not rdjepa.adapt(Groups(Config(grid=16)), movie(0), steps=2, device="cpu").losses
    monkeypatch.setattr(Groups, "groups", None)
    with pytest.raises(ArgumentError, match="expected what `parameter_groups` of Groups returns to be a list"):
        rdjepa.adapt(Groups(Config(grid=16)), movie(0), steps=2, device="cpu")


def test_tied_weights_are_saved_and_loaded(tmp_path):
    made = rdjepa.adapt(Tied(Config(grid=16)), movie(0), steps=2, device="cpu")
    loaded = rdjepa.load_forecaster(made.save(tmp_path / "f.safetensors"))
    assert np.array_equal(loaded.forecast(movie(1)[:4]), made.forecast(movie(1)[:4]))
    assert isinstance(loaded.model, Tied) and loaded.model.first.weight is loaded.model.second.weight


class Layered(Tied):
    """Settings that no file can hold."""

    def settings(self):
        return {"layer": self.first}


def test_settings_that_no_file_can_hold_are_said_before_training_and_refused(tmp_path):
    with pytest.warns(UserWarning, match="expected settings of Layered that a file can hold, got others .*Conv2d"):
        made = rdjepa.adapt(Layered(Config(grid=16)), movie(0), steps=1, device="cpu")
    with pytest.raises(ArgumentError, match=r"expected settings of Layered .*; return numbers, texts, lists"):
        made.save(tmp_path / "f.safetensors")
    assert not list(tmp_path.iterdir())


class Summarized(Tied):
    def latent_summary(self, *features):
        return self.entry(features[0].flatten(1, 2)).std((2, 3))


def test_a_summary_that_a_trained_layer_makes_is_one():
    assert rdjepa.adapt(Summarized(Config(grid=16)), movie(0), steps=1, device="cpu").familiar is not None


def test_numbers_of_numpy_and_torch_are_saved(tmp_path):
    of_numpy: dict[str, Any] = {"batch": np.int64(2), "weight_decay": np.float32(1e-4)}
    options: dict[str, Any] = {"seed": np.int64(3), "augment": np.True_, "retain": np.float32(0)}
    options |= {"steps": torch.tensor(1), "config": AdaptConfig(**of_numpy)}
    statistics = rdjepa.Normalizer(tuple(movie(0).mean((0, 1, 2))), tuple(movie(0).std((0, 1, 2))), "support")
    made = adapt(movie(0), normalizer=statistics, **options)
    assert rdjepa.load_forecaster(made.save(tmp_path / "f.safetensors")).record["config"]["seed"] == 3


class Knowing(Tied):
    """A network of one's own with a buffer of a name that a combination has too."""

    def __init__(self, config):
        super().__init__(config)
        self.register_buffer("known", torch.zeros(3))


def test_a_network_of_one_s_own_may_have_buffers_of_any_name(tmp_path):
    forecaster = rdjepa.Forecaster(Knowing(Config(grid=16)).eval(), rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0)))
    read = rdjepa.load_forecaster(forecaster.save(tmp_path / "x.safetensors"))
    assert np.array_equal(read.forecast(movie(0)[:4]), forecaster.forecast(movie(0)[:4]))


@pytest.mark.parametrize("lost", ["constants", "losses", "record", "normalizer", "settings"])
def test_a_file_that_lacks_an_entry_is_refused_in_one_sentence(tmp_path, lost):
    path = rdjepa.Forecaster(Equation(), rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0))).save(tmp_path / "x.safetensors")
    tensors, header = load_tensors(path)
    save_tensors(path, tensors, {name: value for name, value in header.items() if name != lost})
    with pytest.raises(CheckpointError, match="expected a forecaster"):
        rdjepa.load_forecaster(path)


def test_the_walls_of_an_anchored_forecast_are_in_it_and_the_memory_of_an_equation_is_not(tmp_path):
    normalizer = rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0))
    missed = torch.rand(3, 2, SHELLS)
    made = rdjepa.Forecaster(Anchored(Persistence(), missed, walls=True), normalizer)
    read = rdjepa.load_forecaster(made.save(tmp_path / "walls.safetensors"))
    assert np.array_equal(read.forecast(movie(0)[:4]), made.forecast(movie(0)[:4]))
    equation = rdjepa.Forecaster(Remembering.of(Equation()), normalizer)
    assert type(rdjepa.load_forecaster(equation.save(tmp_path / "equation.safetensors")).model) is Equation
