"""The checkpoints that come with the package: what they are made of, and that they still do what was recorded."""

import json
from functools import cache

import pytest

import rdjepa
from rdjepa import api
from rdjepa.data.statistics import Normalizer
from rdjepa.data.store import checksum
from rdjepa.io import checkpoint
from rdjepa.systems import SOURCES

NAMES = sorted(checkpoint.shipped())
SYSTEMS = {"nano": {*SOURCES}, "nano-wide": {*SOURCES, "family"}}


@cache
def made(system):
    return checksum(rdjepa.simulate(system, seed=3).fields)


def manifest(name):
    return json.loads((checkpoint.shipped()[name] / "data.json").read_text())


def test_they_are_shipped_and_small_enough():
    assert set(NAMES) >= set(SYSTEMS)
    assert all(sum(p.stat().st_size for p in checkpoint.shipped()[name].iterdir()) <= 15e6 for name in SYSTEMS)


@pytest.mark.parametrize("name", NAMES)
def test_no_held_out_system_and_no_test_or_validation_trajectory_was_trained_on(name):
    keys = [key.split("/") for key in manifest(name)["trajectories"]]
    assert {system for system, *_ in keys} == SYSTEMS[name]
    assert {(split, regime) for _, split, regime, _ in keys} == {("pool", "id")}
    single = {key for key in manifest(name)["trajectories"] if key.startswith("family/")}  # an equation each
    assert set(manifest(name)["normalizers"]) == {*SOURCES, *single}


@pytest.mark.parametrize("name", NAMES)
def test_same_keys_make_the_trajectories_of_the_manifest(name):
    for system in api.CHECKED:
        if made(system) != manifest(name)["trajectories"][f"{system}/pool/id/00003"]:
            pytest.fail(f"{system}: another trajectory than the checkpoint was trained on")


@pytest.mark.parametrize("name", NAMES)
def test_loaded_weights_have_the_recorded_latent_error(name):
    _, record = checkpoint.read_config(name)
    normalizers = {k: Normalizer.from_dict(v) for k, v in manifest(name)["normalizers"].items()}
    measured = api.latent_error(rdjepa.load(name), normalizers)
    assert measured == pytest.approx(record.pretraining["check"], rel=0.02)
    assert measured < 0.5  # an untrained model is near 2, a constant one at 1
