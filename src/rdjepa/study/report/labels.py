"""Labels and their order in tables, from the registries of systems, forecasters, changes and metrics."""

from collections.abc import Iterable

from rdjepa import systems
from rdjepa.evaluation.metrics import METRICS
from rdjepa.forecasters import registry as forecasters
from rdjepa.study import changes

_ALL_SYSTEMS = "Overall"
_REGIMES = {"id": "ID", "coeff-ood": "Coeff.-OOD", "ic-ood": "IC-OOD", "all": "All"}
_HEADINGS = {"system": "PDE", "forecaster": "Model", "k": "K"}


def label(dimension: str, value: str | int) -> str:
    """Return a coordinate of a result as a table shows it; an unknown name is returned as it is.

    A pair of forecasters "a/b" is the reduction of a's error against b's.
    """
    if dimension == "forecaster" and "/" in str(value):
        model, against = str(value).split("/")
        return f"{label('forecaster', model)} against {label('forecaster', against)} (%)"
    if dimension == "k":
        return f"K = {value}"
    if dimension == "horizon":
        return "Avg." if value == "mean" else f"h = {value}"
    name = str(value)
    if dimension == "regime":
        return _REGIMES.get(name, name)
    if dimension == "system" and name == "all":
        return _ALL_SYSTEMS
    if name not in registered(dimension):
        return name
    if dimension == "system":
        return systems.get(name).label
    change = changes.find(name) if dimension == "forecaster" else None
    if change:
        return change.title
    return METRICS[name].title if dimension == "metric" else forecasters.get(name).title


def look(forecaster: str) -> dict[str, str]:
    """Return color, marker and line style of a forecaster or a change; changes differ by their place."""
    known = changes.names()
    return forecasters.line_style(forecaster, known.index(forecaster) if forecaster in known else None)


def heading(dimension: str) -> str:
    """Return the column heading of a dimension."""
    return _HEADINGS.get(dimension, dimension)


def registered(dimension: str) -> list[str]:
    """Return the registered names of a dimension in the order of tables; the mean over systems comes last."""
    return {
        "system": [*systems.names(), *systems.wall_names(), "all"],
        "forecaster": [*forecasters.in_print(), *changes.names()],
        "metric": list(METRICS),
        "regime": list(_REGIMES),
    }[dimension]


def ordered(dimension: str, values: Iterable[str]) -> list[str]:
    """Return distinct names in the order of tables, then unknown ones alphabetically."""
    names = registered(dimension)
    found = {str(value) for value in values}
    return sorted(found, key=lambda name: (names.index(name) if name in names else len(names), name))


def focus(names: Iterable[str], subject: str = "") -> str:
    """Return the forecaster that a report is about.

    It is the study's subject; where it names none, or there are no rows of it yet, the first pretrained one, or else
    the first.
    """
    order = ordered("forecaster", names)
    if subject in order:
        return subject
    known = {*forecasters.names(), *changes.names()}
    return next((name for name in order if name in known and changes.baseline(name).pretrained), order[0])
