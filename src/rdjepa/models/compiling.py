"""Constants of the networks: what a compiler is told of them, without an import of it, and that each is made once."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

import torch
from torch.utils._python_dispatch import _disable_current_modes

F = TypeVar("F", bound=Callable[..., Any])


def constant(function: F) -> F:
    """Mark a function of plain values whose result a compiled or exported network holds as a constant.

    As `torch.compiler.assume_constant_result` does, which imports the compiler for it: as long again as torch itself,
    for everyone who never compiles.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def once(function: F) -> F:
    """Keep what a function of plain values returns, as tensors that every later pass can take.

    Whoever asks first may be in inference mode, whose tensors no training takes, or trace with tensors that have no
    values; neither has a part in what is kept.
    """

    @lru_cache(maxsize=64)
    def kept(*given: Any) -> Any:
        with torch.inference_mode(False), _disable_current_modes():
            return function(*given)

    return cast(F, kept)
