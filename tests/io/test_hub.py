import importlib.util
import shutil
import sys
import types

import pytest
import torch

import rdjepa
from rdjepa.errors import CheckpointError
from rdjepa.io import checkpoint
from rdjepa.models.rdjepa import build


@pytest.fixture
def saved(tiny, tmp_path):
    checkpoint.save(build("tiny", seed=3), tmp_path / "model", {}, "card")
    (tmp_path / "model" / "data.json").write_text("{}")
    (tmp_path / "model" / "notes.pkl").write_bytes(b"")
    return tmp_path / "model"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A stand-in for the hub that keeps repositories as directories."""

    def copy(origin, goal, patterns):
        goal.mkdir(parents=True, exist_ok=True)
        for pattern in patterns:
            for path in origin.glob(pattern):
                shutil.copy(path, goal)
        return str(goal)

    def snapshot_download(repo_id, revision, allow_patterns):
        place = repo_id if revision is None else f"{repo_id}@{revision}"
        if not (tmp_path / "hub" / place).is_dir():
            raise OSError("404: no such repository\nand more")
        return copy(tmp_path / "hub" / place, tmp_path / "cache" / place, allow_patterns)

    def upload_folder(repo_id, folder_path, allow_patterns):
        copy(folder_path, tmp_path / "hub" / repo_id, allow_patterns)
        return f"https://hub/{repo_id}"

    stand_in = types.SimpleNamespace(
        __spec__=importlib.util.spec_from_loader("huggingface_hub", None),
        snapshot_download=snapshot_download,
        upload_folder=upload_folder,
        create_repo=lambda repo_id, private, exist_ok: None,
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", stand_in)


def test_what_is_pushed_is_loaded_by_its_id_and_no_pickle_travels(hub, saved, tmp_path):
    assert rdjepa.push_to_hub(saved, "owner/rd-jepa.tiny") == "https://hub/owner/rd-jepa.tiny"
    loaded, local = rdjepa.load("owner/rd-jepa.tiny"), rdjepa.load(saved)
    assert loaded.fingerprint == local.fingerprint
    pairs = zip(loaded.encoder.parameters(), local.encoder.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert {path.name for path in (tmp_path / "hub" / "owner" / "rd-jepa.tiny").iterdir()} == {
        "model.safetensors",
        "config.json",
        "data.json",
        "README.md",
    }


def test_a_revision_is_loaded_by_its_name_after_the_id(hub, saved, tmp_path):
    rdjepa.push_to_hub(saved, "owner/name")
    (tmp_path / "hub" / "owner" / "name").rename(tmp_path / "hub" / "owner" / "name@v1.0")
    assert rdjepa.load("owner/name@v1.0").fingerprint == rdjepa.load(saved).fingerprint
    for other in ("owner/name", "owner/name@main"):
        with pytest.raises(CheckpointError, match="404: no such repository"):
            rdjepa.load(other)


def test_what_the_hub_does_not_have_is_answered_in_one_sentence(hub):
    with pytest.raises(CheckpointError, match="404: no such repository") as caught:
        rdjepa.load("owner/nothing")
    assert "\n" not in str(caught.value)


def test_what_the_hub_does_not_take_is_answered_in_one_sentence(hub, saved, monkeypatch):
    def refuse(repo_id, private, exist_ok):
        raise OSError("401: not logged in\nand more")

    monkeypatch.setattr(sys.modules["huggingface_hub"], "create_repo", refuse)
    with pytest.raises(CheckpointError, match="401: not logged in; check name, login") as caught:
        rdjepa.push_to_hub(saved, "owner/rd-jepa.tiny")
    assert "\n" not in str(caught.value)


def test_a_connection_that_fails_is_answered_in_one_sentence(hub, saved, monkeypatch):
    class ConnectError(Exception):
        """As that of the hub's HTTP client, which is no OSError."""

    def fail(*arguments, **named):
        raise ConnectError("[Errno -3] Temporary failure in name resolution")

    for name in ("create_repo", "snapshot_download"):
        monkeypatch.setattr(sys.modules["huggingface_hub"], name, fail)
    for call in (lambda: rdjepa.push_to_hub(saved, "owner/rd-jepa.tiny"), lambda: rdjepa.load("owner/nothing")):
        with pytest.raises(CheckpointError, match=r"Temporary failure in name resolution.*; check name"):
            call()


def test_a_missing_package_is_named(monkeypatch, saved):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(CheckpointError, match=r"rdjepa\[hub\]"):
        rdjepa.load("owner/name")
    with pytest.raises(CheckpointError, match=r"rdjepa\[hub\]"):
        rdjepa.push_to_hub(saved, "owner/name")


def test_half_a_checkpoint_is_not_pushed(saved):
    (saved / "README.md").unlink()
    with pytest.raises(CheckpointError, match=r"README\.md"):
        rdjepa.push_to_hub(saved, "owner/name")


def test_a_directory_of_that_name_comes_before_the_hub(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner").mkdir()
    saved.rename(tmp_path / "owner" / "name")
    assert rdjepa.load("owner/name").fingerprint


def test_checkpoints_of_a_checkout_are_found_by_name_and_missed_with_advice(saved, tmp_path, monkeypatch):
    package = tmp_path / "src" / "rdjepa"
    package.mkdir(parents=True)
    monkeypatch.setattr(checkpoint.resources, "files", lambda name: package)
    with pytest.raises(CheckpointError, match="rdjepa pretrain --preset small"):
        checkpoint.load("small")
    (tmp_path / "checkpoints").mkdir()
    saved.rename(tmp_path / "checkpoints" / "small")
    assert checkpoint.shipped() == {"small": tmp_path / "checkpoints" / "small"}
    assert checkpoint.load("small").fingerprint
