"""What a compiler is told of the networks, without an import of the compiler."""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def constant(function: F) -> F:
    """Mark a function of plain values whose result a compiled or exported network holds as a constant.

    As `torch.compiler.assume_constant_result` does, which imports the compiler for it: as long again as torch itself,
    for everyone who never compiles.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function
