"""The three uses of one kinetics function: NumPy arrays, compiled code, and sympy symbols, which have to agree."""

from collections.abc import Callable, Sequence
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from rdjepa.errors import ArgumentError
from rdjepa.extensions import said

# NumPy's functions that kinetics may call, and their names in sympy.
FUNCTIONS = {
    **{name: name for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sign")},
    "arctan": "atan",
    "absolute": "Abs",
    "maximum": "Max",
    "minimum": "Min",
}
POINTS = np.array([[0.3, 0.7, 1.1, 0.9], [0.4, 0.5, 0.9, 1.3]])  # u and v where the three uses are compared
REMEDY = (
    f"use arithmetic and numpy's {', '.join(FUNCTIONS)} alone, with no branch on a value and no other function, "
    "at the top level of the file"
)


def on_symbols(kinetics: Callable, arguments: Sequence[Any]) -> tuple[Any, Any]:
    """Evaluate kinetics on sympy expressions; the functions of NumPy that it calls become those of sympy.

    Args:
        kinetics: (u, v, *coefficients) -> (du, dv), a plain function.
        arguments: one sympy expression each.
    """
    import sympy

    table = {name: getattr(sympy, other) for name, other in FUNCTIONS.items()}
    numpy = SimpleNamespace(**table, abs=sympy.Abs, pi=sympy.pi, e=sympy.E)

    def mapped(value: Any) -> Any:
        if value is np:
            return numpy
        return table.get(value.__name__, value) if isinstance(value, np.ufunc) else value

    names = {name: mapped(value) for name, value in kinetics.__globals__.items()}
    return FunctionType(kinetics.__code__, names, closure=kinetics.__closure__)(*arguments)


def compiled(kinetics: Callable) -> Callable:
    """Compile kinetics alone, as the integrators do: (u, v, coefficients) -> (du, dv), all floats."""
    from numba import njit

    from rdjepa.pde.integrators import inlined

    function = inlined(kinetics)

    @njit(error_model="numpy")
    def at_a_point(u, v, coefficients):  # type: ignore[no-untyped-def]
        du, dv = function(u, v, *coefficients)
        return du, dv

    return at_a_point


def check_kinetics(kinetics: Any, coefficients: Sequence[float]) -> None:
    """Check that kinetics give the same real rates of arrays, in compiled code and of symbols.

    Takes about a second, most of it for compiling.

    Args:
        kinetics: (u, v, *coefficients) -> (du, dv).
        coefficients: values in the order of its arguments.

    Raises:
        ArgumentError: it is no plain function, one of the three fails, or they differ.
    """
    if not isinstance(kinetics, FunctionType) or kinetics.__closure__:
        raise ArgumentError(
            f"expected kinetics as a plain function without variables of another one around it, got {kinetics!r}; "
            "define it with def at the top level"
        )
    u, v = POINTS
    rates = _tried("arrays", lambda: _two_real(kinetics(u.copy(), v.copy(), *coefficients)), kinetics)
    arrays = np.stack([np.broadcast_to(rate, u.shape) for rate in rates]).astype(float)
    run = compiled(kinetics)
    values = tuple(map(float, coefficients))
    points = _tried("numbers, compiled", lambda: [_two_real(run(*at, values)) for at in POINTS.T], kinetics)
    _agree(arrays, np.array(points, float).T, "compiled")
    symbols = _tried("symbols", lambda: _of_symbols(kinetics, values), kinetics)
    _agree(arrays, symbols, "by symbols, as its rendered equation is")


def _of_symbols(kinetics: Callable, values: Sequence[float]) -> np.ndarray:
    """Return the rates (2, n) at the points through sympy; NaN where they are no finite real numbers."""
    import sympy

    names = sympy.symbols(f"u v p:{len(values)}")
    rates = [sympy.sympify(rate) for rate in on_symbols(kinetics, names)]
    if len(rates) != 2:
        raise TypeError(f"{len(rates)} results")
    numbers = [
        [rate.subs(dict(zip(names, (*at, *values), strict=True))).evalf() for at in POINTS.T.tolist()] for rate in rates
    ]
    return np.array([[float(x) if x.is_Float or x.is_Integer else np.nan for x in line] for line in numbers])


def _two_real(rates: Any) -> tuple[Any, Any]:
    """Return the two rates.

    Raises:
        TypeError: there are not two, or they are not real numbers at every point.
    """
    if not isinstance(rates, tuple | list) or len(rates) != 2:
        count = f"{len(rates)} results" if isinstance(rates, tuple | list) else f"a {type(rates).__name__}"
        raise TypeError(f"{count} in place of two rates (du/dt, dv/dt)")
    for rate in map(np.asarray, rates):
        if rate.dtype.kind not in "fiu" or rate.shape not in ((), POINTS[0].shape):
            raise TypeError(f"a rate of dtype {rate.dtype} and shape {rate.shape}")
    return rates[0], rates[1]


def _tried(argument: str, compute: Callable[[], Any], kinetics: Callable) -> Any:
    """Return what a function computes; its error becomes a sentence."""
    try:
        with np.errstate(all="ignore"):
            return compute()
    except Exception as error:  # whatever a user's function raises
        raise ArgumentError(
            f"expected kinetics that take {argument}, got {said(error)} from {kinetics.__name__}; {REMEDY}"
        ) from error


def _agree(expected: np.ndarray, found: np.ndarray, how: str) -> None:
    """Refuse kinetics whose rates (2, n) of arrays and of another use differ where both are finite."""
    both = np.isfinite(expected) & np.isfinite(found)
    if not np.allclose(expected[both], found[both], rtol=1e-9, atol=1e-12):
        raise ArgumentError(
            f"expected the same rates of kinetics however they are computed, got others {how}; "
            "let them depend on u, v and the coefficients alone"
        )
