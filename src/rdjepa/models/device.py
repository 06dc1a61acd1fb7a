"""Device and precision of the networks."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from itertools import chain
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor, nn

from rdjepa.checks import of_class
from rdjepa.errors import ArgumentError, Note, warn

Given = ParamSpec("Given")
Found = TypeVar("Found")

AUTOCAST = ("cpu", "cuda", "mps", "xpu")  # kinds of devices that torch rounds on where a block asks for it


@contextlib.contextmanager
def autocast(device: torch.device, precision: str) -> Iterator[None]:
    """Compute a block in mixed precision on a device: bfloat16 autocast, or no change for float32.

    Raises:
        ArgumentError: another precision.
    """
    if precision not in ("float32", "bfloat16"):
        raise ArgumentError(f"expected the precision float32 or bfloat16, got {precision!r}")
    if precision == "float32":
        yield
        return
    try:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            yield
    finally:
        # Inside a caller's own block torch would keep the rounded weights, as they are now, through later updates.
        torch.clear_autocast_cache()


def has_bfloat16(device: torch.device) -> bool:
    """Return whether a device computes in bfloat16; others emulate it at a fraction of their speed."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return True
    if not torch.backends.mkldnn.is_available():
        return False
    if torch.cpu._is_avx512_supported():  # with which oneDNN takes bfloat16, but may emulate it
        return bool(torch.cpu._is_avx512_bf16_supported())
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def suited(precision: str, device: torch.device) -> str:
    """Return a precision that nobody asked for, float32 in place of bfloat16 where the device would emulate it."""
    return precision if precision != "bfloat16" or has_bfloat16(device) else "float32"


def note_emulation(precision: str, device: torch.device) -> None:
    """Warn of a precision that the device emulates."""
    if suited(precision, device) != precision:
        slow = f"this device has no {precision} arithmetic and emulates it, several times slower than float32"
        warn(slow, Note)


def device_of(model: nn.Module) -> torch.device:
    """Return the device of a model's parameters or, where it has none, its buffers; the CPU for one without both."""
    return next((x.device for x in chain(model.parameters(), model.buffers())), torch.device("cpu"))


def in_float32(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """Return a function that makes and computes float32 whatever torch's settings are outside of it.

    These are its default dtype, autocast, and the reduced precision of convolutions (TF32, on by default) and products.
    What a program set of the last by the names of torch 2.9 (`fp32_precision`) stays as it is.
    """

    @functools.wraps(function)
    def called(*arguments: Given.args, **named: Given.kwargs) -> Found:
        with contextlib.ExitStack() as outside:
            for kind in filter(torch.is_autocast_enabled, AUTOCAST):
                outside.enter_context(torch.autocast(kind, enabled=False))
            if (usual := torch.get_default_dtype()) != torch.float32:
                outside.callback(torch.set_default_dtype, usual)
                torch.set_default_dtype(torch.float32)
            with contextlib.suppress(RuntimeError):  # torch cannot say it by this name where another one was used
                if torch.backends.cudnn.allow_tf32:
                    outside.callback(setattr, torch.backends.cudnn, "allow_tf32", True)
                    torch.backends.cudnn.allow_tf32 = False
            with contextlib.suppress(RuntimeError):
                if (products := torch.get_float32_matmul_precision()) != "highest":
                    outside.callback(torch.set_float32_matmul_precision, products)
                    torch.set_float32_matmul_precision("highest")
            return function(*arguments, **named)

    return called


def in_own_precision(layer: nn.Module, x: Tensor) -> Tensor:
    """Apply a layer in the precision of its weights, whatever the one around it.

    The last layer of every forecaster is: eight bits would be visible in the field, and in its gradients most of all.
    """
    with torch.autocast(x.device.type, enabled=False):
        return layer(x.to(next(layer.parameters()).dtype))


def ended_in_own_precision(layers: nn.Sequential, x: Tensor) -> Tensor:
    """Apply layers one after the other, the last of them `in_own_precision`."""
    *body, last = layers
    for layer in body:
        x = layer(x)
    return in_own_precision(last, x)


def device_named(name: str | torch.device) -> torch.device:
    """Return the device of a name such as "cpu" or "cuda"; "auto" takes a CUDA GPU when there is one.

    One of torch is returned after the same check. Nothing is put on a GPU, which may be full, or that of another
    process of a run.

    Raises:
        ArgumentError: the device is not there, or has no numbers of 64 bits, which equations are fitted in.
    """
    name = str(of_class(name, str | torch.device, "a device"))
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        # a device may have a valid name and still be absent
        if device.type == "cuda":
            there = torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count()
        else:
            found = torch.zeros(1, dtype=torch.float64, device=device).device
            there = found.type != "meta" and device.index in (None, found.index)
    except (RuntimeError, AssertionError) as error:
        raise ArgumentError(
            f"expected the device auto, cpu or a GPU of this machine, got {name!r}; name one"
        ) from error
    except TypeError as error:
        raise ArgumentError(f"expected a device with numbers of 64 bits, got {name!r}; name cpu") from error
    if not there:
        absent = f"which torch {torch.__version__} does not see; name another, or install a torch for it"
        raise ArgumentError(f"expected the device auto, cpu or a GPU of this machine, got {name!r}, {absent}")
    return device
