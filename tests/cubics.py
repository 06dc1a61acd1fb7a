"""Coefficients of cubic equations, bounds and domains, for tests."""

import torch

from rdjepa.forecasters.domain import Domain

HIGH = torch.full((1, 2, 1, 1), 9.0, dtype=torch.float64)
BOUNDS = (-HIGH, HIGH)
FINE = Domain(finer=2)
WALLS = Domain(walls=True, finer=2, spacing=(1.0, 1.25))


def drawn(*shape, size=1.0, seed=0):
    return size * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def coefficients(count=1, size=0.1, diffusion=(0.4, 0.2)):
    found = drawn(count, 2, 11, size=size)
    found[..., -1] = torch.tensor(diffusion)
    return found
