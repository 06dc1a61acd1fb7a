import pytest
import torch
from safetensors.torch import save_file

from rdjepa.errors import CheckpointError
from rdjepa.io.tensors import digest, load_tensors, read_record, save_tensors


def tensors():
    return {"a": torch.randn(3, 4), "b": torch.arange(5), "half": torch.randn(2).half(), "scalar": torch.tensor(0.25)}


def test_round_trip_keeps_bits_and_record(tmp_path):
    path, saved = tmp_path / "x.safetensors", tensors()
    checksum = save_tensors(path, saved, {"step": 3})
    loaded, record = load_tensors(path)
    assert record == {"step": 3, "sha256": checksum}
    assert all(torch.equal(saved[k], loaded[k]) for k in saved)
    assert [p.name for p in tmp_path.iterdir()] == ["x.safetensors"]


def test_a_file_has_the_rights_of_new_files(tmp_path):
    (tmp_path / "other").touch()
    path = tmp_path / "x.safetensors"
    save_tensors(path, {"a": torch.zeros(3)}, {})
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
    path.chmod(0o640)
    save_tensors(path, {"a": torch.ones(3)}, {})
    assert path.stat().st_mode & 0o777 == 0o640


def test_every_kind_of_damage_is_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    save_tensors(path, tensors(), {})
    whole = path.read_bytes()
    for content, sentence in (
        (whole[:-1], "whole safetensors"),
        (whole[:-4] + bytes(4 * [7]), "checksum"),
        (b"", "whole safetensors"),
        (b"not a checkpoint at all", "whole safetensors"),
    ):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=sentence):
            load_tensors(path)


def test_foreign_and_missing_files_are_refused(tmp_path):
    save_file(tensors(), tmp_path / "foreign.safetensors")
    with pytest.raises(CheckpointError, match="foreign"):
        load_tensors(tmp_path / "foreign.safetensors")
    with pytest.raises(CheckpointError, match=f"got the directory {tmp_path}"):
        load_tensors(tmp_path)
    for header in ("half a rec", "[]", "{}"):
        save_file(tensors(), tmp_path / "odd.safetensors", metadata={"rdjepa": header})
        with pytest.raises(CheckpointError, match="readable record"):
            load_tensors(tmp_path / "odd.safetensors")
    with pytest.raises(CheckpointError, match="nothing"):
        load_tensors(tmp_path / "missing.safetensors")


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    save_tensors(path, {"a": torch.zeros(1)}, {})

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rdjepa.io.tensors.save_file", full)
    with pytest.raises(OSError, match="free some space"):
        save_tensors(path, {"a": torch.ones(1)}, {})
    monkeypatch.undo()
    assert torch.equal(load_tensors(path)[0]["a"], torch.zeros(1))
    assert [p.name for p in tmp_path.iterdir()] == ["x.safetensors"]


def test_a_file_larger_than_memory_is_one_sentence(tmp_path):
    path = tmp_path / "a.safetensors"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(CheckpointError, match=r"^expected a whole safetensors file, got .*") as caught:
        read_record(path)
    assert "os error" not in str(caught.value)


def test_weights_that_share_their_memory_are_written_each(tmp_path):
    base = torch.arange(8.0)
    shared = {"tied": base, "again": base, "part": base[:4], "turned": base.reshape(2, 4).T}
    save_tensors(tmp_path / "x.safetensors", shared, {})
    loaded, _ = load_tensors(tmp_path / "x.safetensors")
    assert all(torch.equal(shared[k], loaded[k]) for k in shared)


def test_a_digest_is_of_names_dtypes_and_shapes_too():
    zeros = torch.zeros(2, 3)
    every = [{"a": zeros}, {"b": zeros}, {"a": zeros.int()}, {"a": zeros.flatten()}, {"a": zeros.T.contiguous()}]
    assert len({digest(each) for each in every}) == len(every)
