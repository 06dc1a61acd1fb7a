from dataclasses import replace

import numpy as np
import pytest
import torch
from noise import CONFIG, source

from rdjepa.errors import ArgumentError
from rdjepa.models.rdjepa import PRESETS, ModelConfig, build
from rdjepa.pretraining.loop import pretrain
from rdjepa.pretraining.parts import PARTS, without
from rdjepa.pretraining.state import TrainingState
from rdjepa.pretraining.targets import BLOCK, SAME_TIME, TUBE

CPU = torch.device("cpu")


@pytest.mark.parametrize(("part", "kind"), [("blocks", BLOCK), ("tubes", TUBE), ("same-time", SAME_TIME)])
def test_a_kind_of_target_is_never_drawn_and_the_others_keep_their_proportions(tiny, part, kind):
    model, config = without([part], tiny, CONFIG)
    assert model == tiny and sum(config.targets.probabilities) == pytest.approx(1)
    kinds = [config.targets.sample(np.random.default_rng(i), 16).kind for i in range(60)]
    assert kind not in kinds and len(set(kinds)) == 2
    left = [(p, q) for p, q in zip(config.targets.probabilities, CONFIG.targets.probabilities, strict=True) if p]
    assert left[0][0] / left[1][0] == pytest.approx(left[0][1] / left[1][1])


def test_without_masks_only_what_could_be_copied_is_hidden(tiny):
    _, config = without(["masks"], tiny, CONFIG)
    drawn = [config.targets.sample(np.random.default_rng(i), 16) for i in range(60)]
    assert {each.mask.any() for each in drawn if each.kind != SAME_TIME} == {False}
    assert {each.mask[-1].any() and not each.mask[:-1].any() for each in drawn if each.kind == SAME_TIME} == {True}


@pytest.mark.parametrize("parts", [("diffusion",), ("reaction",), ("diffusion", "reaction")])
def test_a_branch_that_is_left_out_has_no_weights_and_no_gate(tiny, parts):
    sizes, _ = without(parts, tiny, CONFIG)
    names = [name for name, _ in build(sizes).predictor.named_parameters()]
    for branch in ("diffusion", "reaction"):
        assert any(branch in name for name in names) == (branch not in parts)


def test_without_the_laplacian_tokens_that_are_all_alike_are_predicted_as_with_it(tiny):
    whole, less = (build(replace(tiny, without=each), seed=3).predictor for each in ((), ("laplacian",)))
    assert whole.state_dict().keys() == less.state_dict().keys()
    tokens = torch.randn(1, tiny.side**2, tiny.width, generator=torch.Generator().manual_seed(0))
    alike = tokens[:, :1].expand_as(tokens)
    with torch.no_grad():
        assert torch.allclose(whole.full_grid(alike, 2), less.full_grid(alike, 2), atol=1e-6)
        assert not torch.allclose(whole.full_grid(tokens, 2), less.full_grid(tokens, 2), atol=1e-3)


def test_a_run_without_branches_is_resumed_without_them_alone(tiny, tmp_path):
    parts = ("diffusion", "reaction")
    sizes, config = without(parts, tiny, replace(CONFIG, steps=2))
    model = pretrain("tiny", source(), tmp_path, config, model=sizes)
    assert model.config.without == parts and model.name == "tiny"
    with pytest.raises(ArgumentError, match="other values of model"):
        pretrain("tiny", source(), tmp_path, config, resuming=True)


def test_sizes_of_a_whole_model_are_written_as_before_and_what_is_left_out_is_read_back(tiny):
    assert "without" not in tiny.to_dict()
    less = replace(tiny, without=("reaction",))
    assert ModelConfig.from_dict(less.to_dict()) == less
    assert ModelConfig.from_dict(tiny.to_dict()) == tiny
    with pytest.raises(ArgumentError, match="parts of the predictor among diffusion, reaction, laplacian, got 'advect"):
        replace(tiny, without=("advection",))


def test_a_whole_model_has_the_weights_that_it_had(tiny):
    with_all = build(PRESETS["tiny"], seed=3).predictor.state_dict()
    less = build(replace(tiny, without=("reaction",)), seed=3).predictor.state_dict()
    assert less.keys() < with_all.keys()
    assert torch.equal(less["blocks.0.diffusion.1.weight"], with_all["blocks.0.diffusion.1.weight"])


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["momentum"], f"parts among {', '.join(PARTS)}, got 'momentum'"),
        (["tubes", "tubes"], "each part once"),
        (["tubes", "blocks", "same-time"], "kind of target to be left"),
    ],
)
def test_unknown_repeated_and_too_many_parts_are_refused(tiny, names, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        without(names, tiny, CONFIG)


def test_parts_are_settings_of_the_state(tiny, tmp_path):
    TrainingState("tiny", CONFIG, CPU).save(tmp_path / "step-00000000.safetensors")
    _, config = without(["tubes"], tiny, CONFIG)
    with pytest.raises(ArgumentError, match="other values of targets"):
        TrainingState("tiny", config, CPU).load(tmp_path / "step-00000000.safetensors")
