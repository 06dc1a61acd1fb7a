"""bfloat16 is taken where a device computes in it, and one that would emulate it says so."""

import pytest
import torch
from torch import nn

from rdjepa.errors import Note
from rdjepa.models import device
from rdjepa.models.device import device_of, note_emulation, suited

CPU = torch.device("cpu")


@pytest.mark.parametrize("native", [True, False])
def test_what_nobody_asked_for_gives_way_where_it_would_be_emulated(monkeypatch, native):
    monkeypatch.setattr(device, "has_bfloat16", lambda _: native)
    assert suited("bfloat16", CPU) == ("bfloat16" if native else "float32")
    assert suited("float32", CPU) == "float32"


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


def test_a_block_of_autocast_around_has_no_part_in_what_is_made_in_float32():
    layer, x = nn.Linear(8, 8), torch.randn(2, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(device.in_float32(layer)(x), device.in_float32(layer)(x).float())
        assert device.in_float32(layer)(x).dtype == torch.float32 and layer(x).dtype == torch.bfloat16


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
