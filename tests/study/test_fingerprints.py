"""What the weights of a checkpoint are known by: with a decoder that was pretrained after the rest, and without it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from rdjepa.errors import CheckpointError
from rdjepa.io import checkpoint
from rdjepa.models.rdjepa import PRESETS, build
from rdjepa.study import contenders
from rdjepa.study.fingerprints import checkpoint_fingerprint
from rdjepa.study.profiles import PROFILES

PARTS = ("encoder", "predictor", "decoder")


@pytest.fixture
def profiles(tiny, tmp_path, monkeypatch):
    """Profiles of one pretrained model without a decoder, and with one."""
    monkeypatch.setitem(PRESETS, "tiny", tiny)
    model, found = build("tiny", seed=3), []
    first = checkpoint.save(model, tmp_path / "first", {}, "")
    run = {"objective": "decoder", "pretrained": [*PARTS], "start": {"fingerprint": first}}
    checkpoint.save(model, tmp_path / "last", run, "")
    for name in ("first", "last"):
        found.append(replace(PROFILES["nano"], preset="tiny", checkpoint=str(tmp_path / name)))
    return found


def test_a_fresh_decoder_starts_from_the_weights_of_the_model_before_and_a_kept_one_from_all(profiles):
    first, last = profiles
    known = checkpoint_fingerprint(first)
    second = {"fingerprint": "of the second", "objective": "decoder", "start": {"fingerprint": known}}
    again = {"objective": "decoder", "pretrained": [*PARTS], "start": second}
    folder = Path(last.checkpoint).with_name("twice")
    checkpoint.save(build("tiny", seed=4), folder, again, "")
    assert checkpoint_fingerprint(replace(last, checkpoint=str(folder))) == known
    assert checkpoint_fingerprint(last) == known != checkpoint_fingerprint(last, decoder=True)
    with pytest.raises(CheckpointError, match=r"a pretrained decoder, got one without .* --objective decoder --start"):
        checkpoint_fingerprint(first, decoder=True)


def test_a_contender_has_the_decoder_of_the_checkpoint_or_that_of_its_seed(profiles):
    saved = checkpoint.load(profiles[1].checkpoint)
    fresh, kept = (contenders.forecaster(name, profiles[1]) for name in ("rd-jepa", "rd-jepa-decoder"))
    weights = [dict(model.named_parameters()) for model in (saved, fresh, kept)]
    assert (fresh.name, kept.name) == ("rd-jepa", "rd-jepa-decoder") and len({*map(frozenset, weights)}) == 1
    assert all(torch.equal(value, weights[2][name]) for name, value in weights[0].items())
    changed = {name for name, value in weights[0].items() if not torch.equal(value, weights[1][name])}
    # normalizations begin with the same weights in every decoder
    assert changed == {
        name for name, value in weights[0].items() if name.startswith("decoder") and value.unique().numel() > 1
    }


def test_what_adapt_decides_tunes_the_encoder_with_several_trajectories(profiles):
    asked = (("rd-jepa-auto", 4), ("rd-jepa-auto", 5), ("rd-jepa-decoder", 5), ("rd-jepa-alone", 5))
    models = [contenders.forecaster(name, profiles[1], k=k) for name, k in asked]
    one, several, *_ = models
    trained = [{name for name, p in model.named_parameters() if p.requires_grad} for model in models]
    encoder = {name for name, _ in one.named_parameters() if name.startswith("encoder.")}
    assert trained[1] == trained[0] | encoder and trained[0] == trained[2] and not trained[0] & encoder
    assert trained[3] == trained[1]
    assert [model.name for model in models] == [name for name, _ in asked]
    assert all(map(torch.equal, one.parameters(), several.parameters()))
