"""Names in print, in the paper's order: systems, forecasters, metrics, regimes."""

from collections.abc import Iterable

SYSTEMS = {
    "gray-scott": "Gray–Scott",
    "fitzhugh-nagumo": "FitzHugh–Nagumo",
    "brusselator": "Brusselator",
    "ginzburg-landau": "Ginzburg–Landau",
    "schnakenberg": "Schnakenberg",
    "lambda-omega": "Lambda–Omega",
    "barkley": "Barkley",
    "oregonator": "Oregonator",
    "barkley-neumann": "Neumann",
    "barkley-robin": "Robin",
    "barkley-dirichlet": "Dirichlet",
    "all": "Overall",
}
FORECASTERS = {
    "rd-jepa": "RD-JEPA",
    "no-latent": "No predictive latent",
    "scratch": "Architecture-matched scratch",
    "fno": "FNO",
    "lno": "LNO",
    "revit": "ReViT",
    "riesz-no": "RieszNO",
    "cnext-unet": "CNextU-Net",
    "persistence": "Persistence",
    "extrapolation": "Linear extrapolation",
}
METRICS = {"relative_l2": "Relative L²", "gradient_l1": "Gradient L¹", "mse": "MSE", "vrmse": "VRMSE"}
REGIMES = {"id": "ID", "coeff-ood": "Coeff.-OOD", "ic-ood": "IC-OOD", "all": "All"}
_BY_DIMENSION = {"system": SYSTEMS, "forecaster": FORECASTERS, "metric": METRICS, "regime": REGIMES}
_HEADINGS = {"system": "PDE", "forecaster": "Model", "k": "K"}


def label(dimension: str, value: str | int) -> str:
    """A coordinate of a result as a table shows it; an unknown name stands for itself.

    A pair of forecasters "a/b" is the reduction of a's error against b's.
    """
    if dimension == "forecaster" and "/" in str(value):
        model, against = str(value).split("/")
        return f"{label('forecaster', model)} against {label('forecaster', against)} (%)"
    if dimension == "k":
        return f"K = {value}"
    if dimension == "horizon":
        return "Avg." if value == "mean" else f"h = {value}"
    return _BY_DIMENSION[dimension].get(str(value), str(value))


def heading(dimension: str) -> str:
    """A dimension as the head of a column of labels."""
    return _HEADINGS.get(dimension, dimension)


def ordered(dimension: str, values: Iterable[str]) -> list[str]:
    """Distinct names in the paper's order, unknown ones behind, alphabetically."""
    known = list(_BY_DIMENSION[dimension])
    found = {str(value) for value in values}
    return sorted(found, key=lambda name: (known.index(name) if name in known else len(known), name))
