from dataclasses import replace

import pytest
import torch

from rdjepa import systems
from rdjepa.adaptation.symmetries import SYMMETRIES, turned
from rdjepa.pde.rollout import rollout


def test_the_eight_are_those_of_the_square():
    square = torch.arange(9.0).reshape(3, 3)
    images = [tuple(turned(square, number).flatten().tolist()) for number in range(SYMMETRIES)]
    assert len(set(images)) == SYMMETRIES and images[0] == tuple(range(9))
    assert all(image[4] == 4 and {image[i] for i in (0, 2, 6, 8)} == {0, 2, 6, 8} for image in images)
    composed = {
        tuple(turned(turned(square, first), second).flatten().tolist())
        for first in range(SYMMETRIES)
        for second in range(SYMMETRIES)
    }
    assert composed == set(images)


@pytest.mark.parametrize("name", [*systems.names(), *systems.wall_names()])
@pytest.mark.parametrize("number", [1, 4])  # a quarter turn and a mirror image: they generate the rest
def test_an_equation_turns_its_solutions_with_their_initial_fields(name, number):
    system = systems.get(name)
    coefficients = system.draw(0)
    start = system.start(coefficients, 0).state
    brief = replace(system.numerics, first=0.0, last=20 * system.numerics.dt, frames=2)

    def late(state):
        frames = rollout(replace(system, numerics=brief), coefficients, state)
        return torch.from_numpy(frames[1]).movedim(-1, 0)

    reference = late(start)
    image = late(turned(torch.from_numpy(start), number).numpy().copy())
    assert torch.allclose(image, turned(reference, number), atol=1e-5)
    assert not torch.allclose(reference, turned(reference, number), atol=1e-2)
