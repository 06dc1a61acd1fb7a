"""bfloat16 is taken where a device computes in it, and one that would emulate it says so."""

import pytest
import torch
from torch import nn

from rdjepa.errors import ArgumentError, Note
from rdjepa.models import device
from rdjepa.models.device import device_named, device_of, note_emulation, suited

CPU = torch.device("cpu")


@pytest.mark.parametrize("native", [True, False])
def test_what_nobody_asked_for_gives_way_where_it_would_be_emulated(monkeypatch, native):
    monkeypatch.setattr(device, "has_bfloat16", lambda _: native)
    assert suited("bfloat16", CPU) == ("bfloat16" if native else "float32")
    assert suited("float32", CPU) == "float32"


@pytest.mark.parametrize("native", [True, False])
def test_avx512_alone_has_no_bfloat16(monkeypatch, native):
    monkeypatch.setattr(torch.cpu, "_is_avx512_supported", lambda: True)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: native)
    assert device.has_bfloat16(CPU) == native


def test_emulation_is_noted_and_nothing_else(monkeypatch, recwarn):
    monkeypatch.setattr(device, "has_bfloat16", lambda _: True)
    note_emulation("bfloat16", CPU)
    monkeypatch.setattr(device, "has_bfloat16", lambda _: False)
    note_emulation("float32", CPU)
    assert not recwarn
    with pytest.warns(Note, match="no bfloat16 arithmetic and emulates it"):
        note_emulation("bfloat16", CPU)


def test_the_device_of_a_model_is_that_of_its_weights_or_else_of_its_buffers():
    buffers = nn.BatchNorm1d(2, affine=False)
    for model in (nn.Linear(1, 1), buffers):
        assert device_of(model) == torch.device("cpu") and device_of(model.to("meta")) == torch.device("meta")
    assert device_of(nn.Identity()) == torch.device("cpu")


def test_a_gpu_that_is_full_is_there_and_one_beyond_their_number_is_not(monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ArgumentError, match="a GPU of this machine, got 'cuda'"):
        device_named("cuda")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr(torch, "zeros", full)
    assert [device_named(name) for name in ("cuda", "cuda:1")] == [torch.device("cuda"), torch.device("cuda", 1)]
    with pytest.raises(ArgumentError, match="a GPU of this machine, got 'cuda:2'"):
        device_named("cuda:2")


def test_a_block_of_autocast_around_has_no_part_in_what_is_made_in_float32():
    layer, x = nn.Linear(8, 8), torch.randn(2, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(device.in_float32(layer)(x), device.in_float32(layer)(x).float())
        assert device.in_float32(layer)(x).dtype == torch.float32 and layer(x).dtype == torch.bfloat16


@pytest.fixture
def reduced():
    """Let torch reduce the precision of convolutions and products, as they may be in a program."""
    before = torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    torch.backends.cudnn.allow_tf32 = True
    torch.set_float32_matmul_precision("medium")
    yield _reductions()
    torch.backends.cudnn.allow_tf32 = before[0]
    torch.set_float32_matmul_precision(before[1])


def _reductions():
    matmul = torch.backends.cuda.matmul.allow_tf32
    return torch.backends.cudnn.allow_tf32, matmul, torch.get_float32_matmul_precision()


def test_float32_is_not_reduced_inside_and_as_before_afterwards(reduced):
    def fail():
        found.append(_reductions())
        raise KeyError

    found: list[tuple] = []
    assert device.in_float32(_reductions)() == (False, False, "highest") and _reductions() == reduced
    with pytest.raises(KeyError):
        device.in_float32(fail)()
    assert found == [(False, False, "highest")] and _reductions() == reduced == (True, True, "medium")


def test_weights_are_rounded_anew_after_every_block_also_inside_of_another_one():
    layer, x = nn.Linear(8, 8), torch.randn(2, 8)

    def made():
        with device.autocast(CPU, "bfloat16"):
            return layer(x).sum().item()

    with torch.autocast("cpu", dtype=torch.bfloat16):
        before = made()
        with torch.no_grad():
            layer.bias.add_(1)
        assert made() == pytest.approx(before + 16, abs=0.5)
