import json
import math
import subprocess
import sys
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rdjepa
from rdjepa import checks, forecasters
from rdjepa.adaptation.adapt import AdaptConfig
from rdjepa.adaptation.saving import load_forecaster
from rdjepa.adaptation.stream import forecast_all
from rdjepa.data import readers
from rdjepa.errors import ArgumentError
from rdjepa.models.device import device_named
from rdjepa.models.rdjepa import ModelConfig
from rdjepa.pretraining.config import PROFILES, PretrainConfig
from rdjepa.pretraining.targets import TargetConfig


@dataclass(frozen=True)
class Inner:
    x: checks.Share = 0.5


@dataclass(frozen=True)
class Settings:
    count: checks.Count = 1
    rate: checks.Rate = 1.0
    pair: tuple[checks.BelowOne, checks.BelowOne] = (0.0, 0.5)
    precision: checks.Precision = "float32"
    inner: Inner = field(default_factory=Inner)

    def __post_init__(self):
        checks.check(self)


def test_values_of_the_declared_kind_are_accepted():
    for kept in ({}, {"count": np.int32(3)}, {"rate": 2}, {"rate": np.float32(0.1)}, {"pair": [0, 0.9]}):
        Settings(**kept)
    assert checks.checked(torch.tensor(4), checks.Count, "n") == 4


def test_settings_keep_numbers_that_json_takes():
    of_others: tuple[Any, ...] = (np.int64(3), np.float32(0.5), [0, torch.tensor(0.5)])
    kept = Settings(*of_others)
    assert kept == Settings(3, 0.5, (0.0, 0.5)) and json.loads(json.dumps(asdict(kept)))["count"] == 3
    assert type(kept.count) is int and type(kept.rate) is float and type(kept.pair) is tuple
    normalizer = untyped.Normalizer((np.float32(0.5),), (np.float32(2),))
    assert json.loads(json.dumps(normalizer.to_dict()))["std"] == [2.0]


@pytest.mark.parametrize(
    ("name", "value"),
    [("count", value) for value in (0, -1, 1.5, "1", None, True, 2**40, 10**30, math.nan, [1], np.float64(2.5))]
    + [("rate", value) for value in (0, -1.0, math.nan, math.inf, "1", None)]
    + [("pair", value) for value in ((0.5,), (0.5, 1.0), (0.1, 0.2, 0.3), 0.5, (math.nan, 0.5), None)]
    + [("precision", value) for value in ("float16", "", None, 32)]
    + [("inner", value) for value in (None, {"x": 0.5}, 0.5)],
)
def test_any_other_value_is_refused_with_one_sentence(name, value):
    with pytest.raises(ArgumentError, match=rf"^expected {name} to be .*, got .*; ") as found:
        Settings(**{name: value})
    assert "\n" not in str(found.value) and len(str(found.value)) < 200


def test_all_profiles_are_within_their_ranges_and_mistakes_are_not():
    for profile in PROFILES.values():
        assert replace(profile) == profile
    for make, wrong in (
        (PretrainConfig, {"batch": 0}),
        (PretrainConfig, {"ema": (0.9999, 0.9)}),
        (PretrainConfig, {"targets": None}),
        (TargetConfig, {"probabilities": (0.5, 0.5, 1.5)}),
        (AdaptConfig, {"seed": -1}),
        (AdaptConfig, {"averaging": 1.0}),
        (ModelConfig, {"grid": 65}),
    ):
        with pytest.raises(ArgumentError, match=r"^expected "):
            make(**wrong)


untyped: Any = rdjepa
untyped_load: Any = load_forecaster
untyped_build: Any = forecasters.build
untyped_forecast_all: Any = forecast_all


@pytest.mark.parametrize(
    "call",
    [
        lambda: untyped.simulate(None),
        lambda: untyped.simulate("barkley", seed=10**30),
        lambda: untyped.simulate("barkley", seed=True),
        lambda: untyped.simulate(Path("nowhere.py")),
        lambda: untyped.load(0),
        lambda: untyped_load(None),
        lambda: untyped.Normalizer(None, (1.0,)),
        lambda: untyped_build("fno", 2456),
        lambda: untyped_build("fno", "nano", seed="1e9"),
        lambda: untyped.adapt(0, []),
        lambda: untyped.adapt("nano", [], steps="x"),
        lambda: untyped.adapt("nano", [], config=[None]),
        lambda: untyped.adapt("nano", [], normalizer="a"),
        lambda: untyped.adapt("nano", [], rehearse=None),
        lambda: untyped.adapt("nano", [], rehearse=5),
        lambda: untyped.inspect([], model=None),
        lambda: untyped.first_look([], model=5),
        lambda: untyped_forecast_all(print, [], "x.h5"),
        lambda: untyped.evaluate("", []),
        lambda: untyped.evaluate(print, [], metrics=True),
        lambda: device_named("cpu:7"),
        lambda: device_named("meta"),
    ],
)
def test_arguments_of_another_kind_are_refused_with_one_sentence(call):
    with pytest.raises(ValueError, match=r"^expected ") as found:
        call()
    assert isinstance(found.value, rdjepa.errors.RdjepaError) and "\n" not in str(found.value)


@pytest.mark.parametrize("device", [torch.device("meta"), torch.device("cuda", 99), "cuda:99"])
@pytest.mark.parametrize("call", [rdjepa.learning_curve, partial(rdjepa.adapt, "nano")])
def test_a_device_that_is_not_there_is_refused_however_it_is_given(call, device):
    with pytest.raises(ArgumentError, match="expected the device auto, cpu or a GPU of this machine, got"):
        call([], device=device)
    assert device_named(torch.device("cpu")) == torch.device("cpu")


WITHOUT_A_TYPE_CHECKER = """
from pathlib import Path
import numpy as np
import rdjepa
from rdjepa.models.device import device_named
from rdjepa.models.rdjepa import ModelConfig, build

for call in (
    lambda: build(1.0),
    lambda: build("nano", seed=-1e300),
    lambda: device_named(3),
    lambda: rdjepa.adapt("nano", [], device=Path("cpu")),
    lambda: ModelConfig(width="a"),
    lambda: ModelConfig(depths=(1, 1, 1)),
):
    try:
        call()
    except rdjepa.errors.ArgumentError as error:
        print(error)
print(type(ModelConfig(width=np.int64(32)).width).__name__)
"""


def test_the_models_refuse_arguments_of_another_kind():
    """In a process of its own: here the hook of the tests would refuse them first."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_A_TYPE_CHECKER], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["expected"] * 6 + ["int"]


@pytest.mark.parametrize("name", ["a" * 5000, "é" * 200, "a/" * 3000, "nul\0", "\ud800"])
@pytest.mark.parametrize("take", [rdjepa.load, load_forecaster, readers.load])
def test_paths_that_no_system_takes(take: Any, name: str) -> None:
    with pytest.raises(ArgumentError, match=r"^expected .* (with names of at most 255 bytes|without null characters)"):
        take(name)
