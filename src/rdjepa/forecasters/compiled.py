"""The compiled steps of an equation of two components (`rdjepa.forecasters.kernels`), of tensors and for all contexts.

`rdjepa.forecasters.cubic` and `squares` take them where they can, and tensor operations elsewhere: for other numbers of
components, on other devices, and where a pass is traced or differentiated.
"""

from collections.abc import Sequence
from types import ModuleType

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

Polynomials = list[tuple[tuple[float, ...], ...]]  # the kinetics of each context and component


def takes(kinetics: Float[Tensor, "B C m"], *tensors: Tensor) -> bool:
    """Return whether they are of two components and plain values in the processor's memory."""
    return (
        kinetics.shape[1] == 2
        and not torch.compiler.is_compiling()
        and not any(x.device.type != "cpu" or x.requires_grad for x in (kinetics, *tensors))
    )


def polynomials(kinetics: Float[Tensor, "B 2 10"]) -> Polynomials:
    """Return kinetics as all functions here take them."""
    return [tuple(map(tuple, each)) for each in kinetics.tolist()]


def react(
    state: Float[Tensor, "B 2 Y X"], kinetics: Polynomials, bounds: tuple[Tensor, Tensor], step: float
) -> Float[Tensor, "B 2 Y X"]:
    """Return states after the kinetics of a step, within bounds (B, 2, 1, 1)."""
    found = torch.empty_like(state, dtype=torch.float64, memory_format=torch.contiguous_format)
    low, high = ([tuple(each) for each in bound.expand(len(state), 2, 1, 1).flatten(1).tolist()] for bound in bounds)
    each = zip(_arrays(found.flatten(2)), _arrays(state.double().flatten(2)), kinetics, low, high, strict=True)
    for into, points, of, *within in each:
        _kernels().react(*into, *points, *of, *within, step)
    return found.to(state.dtype)


def terms(
    state: Float[Tensor, "B 2 Y X"], over: int, near: Sequence[np.ndarray], squared: Sequence[float]
) -> tuple[Float[Tensor, "B 10 H W"], Float[Tensor, "B 2 H W"]]:
    """Return the means of the monomials over so many points along each side, and of the Laplacian.

    Given are the neighbors (2, Y) of rows, and (2, X) of columns, and the squares of their distances.
    """
    size = [side // over for side in state.shape[-2:]]
    shared, own = (state.new_empty(len(state), count, *size) for count in (10, 2))
    for each in zip(*map(_arrays, (shared, own, state)), strict=True):
        _kernels().terms(*each, over, *near, *squared)
    return shared, own


def turns(
    before: Float[Tensor, "B 10 H W"], after: Float[Tensor, "B 10 H W"], kinetics: Polynomials, step: float
) -> Float[Tensor, "B 2 2 H W"]:
    """Return how a change of the means goes on through the kinetics of a step, from the monomials before and after."""
    found = before.new_empty(len(before), 2, 2, *before.shape[2:])
    for each in zip(*map(_arrays, (found, before, after)), kinetics, strict=True):
        _kernels().turns(*each, step)
    return found


def turn(moved: Float[Tensor, "B 2 H 2 11 W"], by: Tensor, *given: Tensor, share: float) -> Tensor:
    """Return derivatives times matrices (B, 2, 2, H, W), with shares of the terms before and after, in place.

    Given are monomials and Laplacian before, and after.
    """
    moved = moved.contiguous()
    for each in zip(*map(_arrays, (moved, *(x.to(moved.dtype) for x in (by, *given)))), strict=True):
        _kernels().turn(*each, share)
    return moved


def _arrays(tensors: Tensor) -> np.ndarray:
    """Return tensors as an array in C order, in the same memory where they are in it."""
    return tensors.contiguous().numpy()


def _kernels() -> ModuleType:
    """Return the compiled code, whose import takes half a second."""
    from rdjepa.forecasters import kernels

    return kernels
