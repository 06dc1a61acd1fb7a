"""The images of a trajectory are those of the symmetries of the square, and solutions of the same equation."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import rdjepa
from rdjepa import forecasters, systems
from rdjepa.adaptation import adapt
from rdjepa.adaptation.augmentation import MOST, images, number_of_images
from rdjepa.api import adapting
from rdjepa.data.trajectory import Trajectory
from rdjepa.forecasters.domain import Domain
from rdjepa.forecasters.fno import Config
from rdjepa.models.rdjepa import build
from rdjepa.pde.rollout import rollout


def test_the_images_of_a_square_are_a_group_of_eight():
    field = torch.arange(9.0).reshape(1, 3, 3)
    found = images(field)
    assert torch.equal(found[0], field)
    distinct = {tuple(image.flatten().tolist()) for image in found}
    assert len(distinct) == 8
    for image in found:
        assert {tuple(again.flatten().tolist()) for again in images(image)} == distinct


def test_other_rectangles_keep_their_shape_without_quarter_turns():
    field = torch.arange(6.0).reshape(2, 3)
    found = images(field)
    assert [image.shape for image in found] == [(2, 3)] * 4
    assert len({tuple(image.flatten().tolist()) for image in found}) == 4


def test_the_images_of_a_solution_are_the_solutions_from_the_images_of_its_start():
    system = systems.get("gray-scott")
    numerics = replace(system.numerics, size=32, stored=32, first=0.05, last=1.0, frames=3)
    p = system.draw(seed=0)
    system = replace(system, numerics=numerics)
    state = system.regimes["id"].initial_conditions[0].build(numerics.grid, p, np.random.default_rng(0))
    solution = rollout(system, p, state)
    for start, image in zip(
        images(torch.from_numpy(state)), images(torch.from_numpy(solution).movedim(-1, 1)), strict=True
    ):
        np.testing.assert_allclose(rollout(system, p, start.numpy().copy()), image.movedim(1, -1), rtol=1e-4, atol=1e-5)


def test_the_windows_of_all_images_are_learned_and_nothing_else_is_decided_by_them(tiny, monkeypatch):
    learned = []

    def trained(model, data, *rest):
        learned.append(data)
        return adapt.train(model, data, *rest)

    monkeypatch.setattr(adapting, "train", trained)
    fields = np.random.default_rng(0).standard_normal((10, tiny.grid, tiny.grid, 2)).astype(np.float32)
    model = build("tiny", seed=0)
    plain, augmented = (
        rdjepa.adapt(model, fields, steps=1, device="cpu", augment=augment) for augment in (False, True)
    )
    few, many = learned
    assert (few.own, many.own) == (2, 16) and torch.equal(many.targets[:2], few.targets)
    turned = torch.rot90(few.targets, 1, (-2, -1))
    assert any(torch.equal(many.targets[at : at + 2], turned) for at in range(0, 16, 2))
    assert [made.record["augmented"] for made in (plain, augmented)] == [0, 8]
    assert plain.familiar and augmented.familiar
    np.testing.assert_array_equal(plain.familiar.latents, augmented.familiar.latents)
    assert not np.array_equal(plain.forecast(fields[:4]), augmented.forecast(fields[:4]))


def test_squares_of_cells_that_are_none_have_no_quarter_turns():
    field = torch.arange(9.0).reshape(3, 3)
    assert len(images(field, Domain(spacing=(1.0, 2.0)))) == 4
    wide = Trajectory(np.random.default_rng(0).standard_normal((10, 16, 16, 2)).astype(np.float32), np.arange(10.0))
    model = forecasters.build("fno", Config(width=4, layers=1, modes=4, readout=4, grid=16), seed=0)
    losses = {
        (spacing, augment): rdjepa.adapt(
            model, replace(wide, spacing=spacing), steps=3, device="cpu", augment=augment
        ).losses
        for spacing in ((1.0, 1.0), (1.0, 2.0))
        for augment in (False, True)
    }
    assert losses[(1.0, 1.0), False] == losses[(1.0, 2.0), False]
    assert losses[(1.0, 1.0), True] != losses[(1.0, 2.0), True]


def test_by_default_few_trajectories_have_images_as_far_as_their_windows_stay_few(tiny):
    model = forecasters.build("fno", Config(width=4, layers=1, modes=4, readout=4, grid=16), seed=0)
    fields = np.random.default_rng(0).standard_normal((5, 9, 16, 16, 2)).astype(np.float32)

    def losses(count, **options):
        made = rdjepa.adapt(model, fields[:count], steps=4, device="cpu", **options)
        return made.losses, made.record["augmented"]

    assert losses(4) == losses(4, augment=True) != losses(4, augment=False)
    assert losses(5) == losses(5, augment=False) != losses(5, augment=True)
    assert not rdjepa.adapt("equation", fields[0], device="cpu").record["augmented"]  # nothing is trained


@pytest.mark.parametrize("trajectories", range(1, 5))
@pytest.mark.parametrize("windows", [1, 56, 125, 126, 334, 500, 501, MOST, MOST + 1, 10 * MOST])
def test_images_are_as_many_as_keep_to_a_number_of_windows(trajectories, windows):
    count = number_of_images(trajectories, windows)
    assert 1 <= count <= 8 and (count == 1 or count * windows <= MOST)
    assert count == 8 or (count + 1) * windows > MOST


def test_anything_else_that_is_asked_of_images_is_refused(tiny):
    with pytest.raises(ValueError, match=r'expected augment to be True, False or "auto", got .all.'):
        rdjepa.adapt(build("tiny", seed=0), np.zeros((10, tiny.grid, tiny.grid, 2)), augment="all")
