import json
from pathlib import Path

import pytest
import torch

from rdjepa.errors import CheckpointError
from rdjepa.io import checkpoint
from rdjepa.models.device import device_named
from rdjepa.models.rdjepa import build


@pytest.fixture
def saved(tiny, tmp_path):
    model = build("tiny", seed=3)
    fingerprint = checkpoint.save(model, tmp_path / "m", {"steps": 1}, "card")
    return model, tmp_path / "m", fingerprint


def test_round_trip_in_half_precision(saved):
    model, path, fingerprint = saved
    loaded = checkpoint.load(path)
    assert loaded.fingerprint == fingerprint
    assert loaded.config == model.config
    for part in ("encoder", "predictor"):
        pairs = zip(getattr(model, part).parameters(), getattr(loaded, part).parameters(), strict=True)
        assert all(torch.equal(a.half().float(), b) for a, b in pairs)


def test_a_decoder_is_written_and_read_where_it_was_pretrained(tiny, tmp_path, edit_json):
    model = build("tiny", seed=3)
    for decoder in (False, True):
        parts = ["encoder", "predictor", *(["decoder"] if decoder else [])]
        checkpoint.save(model, tmp_path / "m", {"pretrained": parts}, "card")
        loaded = checkpoint.load(tmp_path / "m")
        assert loaded.pretrained == tuple(parts)
        pairs = zip(model.decoder.parameters(), loaded.decoder.parameters(), strict=True)
        assert all(torch.equal(a.half().float(), b) for a, b in pairs) == decoder
    edit_json(tmp_path / "m" / "config.json", lambda record: record["pretraining"].pop("pretrained"))
    with pytest.raises(
        CheckpointError, match=r"the weights of encoder, predictor in .*, got those of decoder, encoder"
    ):
        checkpoint.load(tmp_path / "m")


def test_a_model_whose_pretrained_weights_were_changed_is_told_from_one_as_it_was_loaded(tiny, tmp_path):
    for parts in (("encoder", "predictor"), ("encoder", "predictor", "decoder")):
        checkpoint.save(build("tiny", seed=3), tmp_path / "m", {"pretrained": parts}, "card")
        model = checkpoint.load(tmp_path / "m")
        assert checkpoint.untouched(model)
        for part in ("decoder", "encoder"):  # by less than half precision tells
            with torch.no_grad():
                next(getattr(model, part).parameters()).mul_(1 + 1e-6)
            assert checkpoint.untouched(model) == (part not in parts)
    assert not checkpoint.untouched(build("tiny", seed=3))


def test_unknown_name_lists_what_is_shipped():
    with pytest.raises(CheckpointError, match="expected a shipped checkpoint"):
        checkpoint.load("no-such-model")


def test_a_checkpoint_of_version_0_1_is_refused_with_that_version(saved, edit_json):
    _, path, _ = saved
    edit_json(path / "config.json", lambda record: record["model"].pop("revision"))
    with pytest.raises(CheckpointError, match=r"got one of revision 1, .*; use rdjepa 0\.1\.0 for it"):
        checkpoint.load(path)


def test_damaged_weights_are_refused(saved):
    _, path, _ = saved
    weights = path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-2] + b"zz")
    with pytest.raises(CheckpointError, match="checksum"):
        checkpoint.load(path)


def test_weights_of_another_model_are_refused(saved, tmp_path):
    _, path, _ = saved
    other = tmp_path / "other"
    checkpoint.save(build("tiny", seed=4), other, {}, "card")
    (path / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes())
    with pytest.raises(CheckpointError, match="expected weights"):
        checkpoint.load(path)


def test_foreign_configuration_is_refused(saved):
    _, path, _ = saved
    for content in ("{}", "not json", json.dumps({"format": "rdjepa-model", "version": 99})):
        (path / "config.json").write_text(content)
        with pytest.raises(CheckpointError, match=r"config\.json"):
            checkpoint.load(path)


def test_a_changed_configuration_is_refused(saved):
    _, path, _ = saved
    text = (path / "config.json").read_text()
    (path / "config.json").write_text(text.replace('"heads": 1', '"heads": 2'))
    with pytest.raises(CheckpointError, match="match their seal"):
        checkpoint.load(path)


def test_sizes_that_do_not_fit_the_weights_are_refused(saved, edit_json):
    _, path, _ = saved
    edit_json(path / "config.json", lambda record: record["model"].update(predictor_blocks=2))
    with pytest.raises(CheckpointError, match="weights of its configuration"):
        checkpoint.load(path)


def test_unknown_device_is_refused():
    with pytest.raises(ValueError, match="expected the device"):
        device_named("abacus")
    assert device_named("cpu") == torch.device("cpu")


def test_a_path_is_a_directory_even_where_its_text_is_the_name_of_a_shipped_checkpoint(saved, monkeypatch):
    _, path, fingerprint = saved
    path.rename(path.with_name("nano"))
    monkeypatch.chdir(path.parent)
    for source in ("./nano", Path("./nano"), Path("nano")):
        assert checkpoint.load(source).fingerprint == fingerprint
    assert checkpoint.locate("nano") == checkpoint.shipped()["nano"]
    with pytest.raises(
        CheckpointError, match=r"expected a shipped checkpoint .* got \w*Path\('paper'\); check the name"
    ):
        checkpoint.load(Path("paper"))
