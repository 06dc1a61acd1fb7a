"""The file of an adapted forecaster: weights and record in one safetensors file (docs/reference/files.md)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rdjepa import forecasters
from rdjepa.adaptation.forecaster import REMEDY, Forecaster
from rdjepa.adaptation.intervals import Calibration
from rdjepa.checks import Count, checked, of_class
from rdjepa.data.statistics import Normalizer
from rdjepa.errors import ArgumentError, CheckpointError
from rdjepa.forecasters import anchored, combined
from rdjepa.forecasters.anchored import Anchored
from rdjepa.forecasters.around import Around
from rdjepa.forecasters.base import CONTEXT, ForecastModel
from rdjepa.forecasters.combined import Combined
from rdjepa.forecasters.domain import Domain
from rdjepa.forecasters.equation import Equation, Remembering
from rdjepa.forecasters.familiar import Familiar
from rdjepa.forecasters.linear import Corrected
from rdjepa.forecasters.tiled import Tiled
from rdjepa.io import sealed
from rdjepa.io.kinds import is_forecaster, refuse_replacing
from rdjepa.io.tensors import load_tensors, save_tensors
from rdjepa.models.device import device_named, device_of, in_float32
from rdjepa.models.seeds import seeded
from rdjepa.registry import import_class

SMALL = 16  # points per side where a forecaster takes any
RULES: dict[str, dict] = {"combined": combined.RULE, "anchored": anchored.RULE}  # by base, of a version
_SCORES, _LATENTS = "calibration/scores", "familiar/latents"  # tensors beside the weights


def save(forecaster: Forecaster, path: str | Path, force: bool = False) -> Path:
    """Write a forecaster, atomically.

    Args:
        forecaster: the forecaster.
        path: file to write; one of a forecaster is replaced.
        force: replace a file of another kind too.

    Raises:
        ArgumentError: no other process could import the model's class, no file hold its settings, or a model of one's
            own would forecast something else once it is read back.
        OutputError: the file cannot be written, or would replace one of another kind.
    """
    path = Path(of_class(path, str | Path, "a forecaster's file"))
    refuse_replacing(path, kind="forecaster", same_kind=is_forecaster, force=force)
    model = forecaster.model
    refusal = why_unsavable(model)
    if refusal:
        raise ArgumentError(refusal)
    inner = model.network if isinstance(model, Combined | Anchored) else model
    tiled = inner if isinstance(inner, Tiled) else None
    record: dict[str, Any] = {
        "kind": "forecaster",
        "forecaster": model.name,
        **_class_of(model),
        "preset": model.preset,
        "settings": model.settings(),
        "base": forecaster.base,
        **_rule(forecaster.base, type(_network(model)), isinstance(model, Combined) and model.familiar is not None),
        **(model.equation.domain.settings() if isinstance(model, Combined) else {}),
        **({"walls": model.walls} if isinstance(model, Anchored) else {}),
        **({"tiles": {"grid": tiled.grid, "walls": tiled.walls}} if tiled else {}),
        "normalizer": forecaster.normalizer.to_dict(),
        "record": forecaster.record,
        "losses": forecaster.losses,
    }
    tensors = dict(model.state_dict())
    if "class" in record:
        _require_restorable(model, record, tensors)
    if forecaster.calibration:
        tensors[_SCORES] = torch.from_numpy(forecaster.calibration.scores)
        record["calibration"] = {n: getattr(forecaster.calibration, n) for n in ("blocks", "trajectories")}
    if forecaster.familiar:
        tensors[_LATENTS] = torch.from_numpy(forecaster.familiar.latents)
        record["reach"] = forecaster.familiar.reach
    save_tensors(path, tensors, record)
    return path


@torch.no_grad()
def _require_restorable(model: ForecastModel, record: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Refuse a model of one's own that forecasts something else once it is read back.

    Raises:
        ArgumentError: it does: something that it needs is neither in its settings nor among its weights and buffers.
    """
    side = model.grid or SMALL
    some = torch.randn(1, CONTEXT, model.components, side, side, generator=torch.Generator().manual_seed(0))
    again = _rebuilt(type(_network(model)), record, tensors).to(device := device_of(model)).eval()
    some = some.to(device)
    if not torch.allclose(model(some), again(some), rtol=1e-3, atol=1e-4, equal_nan=True):
        raise ArgumentError(
            f"expected the forecast of {type(_network(model)).__name__} to be the same once its file is read, got "
            "another; keep what `fitted_to` finds in buffers (register_buffer), and sizes in `settings`"
        )


def why_unsavable(model: ForecastModel) -> str:
    """Return why a forecaster cannot be written for another process, in one sentence; "" where it can."""
    kind = type(_network(model))
    if kind.__module__ in ("__main__", "__mp_main__", "builtins") or "<locals>" in kind.__qualname__:
        return (
            f"expected a forecaster whose class can be imported, got {kind.__module__}:{kind.__qualname__}, which no "
            "other process finds, so it cannot be saved; move the class into a module (a .py file) and import it"
        )
    try:
        sealed.plain(model.settings())
    except (TypeError, ValueError) as error:
        return (
            f"expected settings of {kind.__qualname__} that a file can hold, got others ({error}), so it cannot be "
            "saved; return numbers, texts, lists and dictionaries of these from its `settings`"
        )
    return ""


@in_float32
def load_forecaster(path: str | Path, device: str | torch.device = "cpu") -> Forecaster:
    """Read a file of `Forecaster.save`; a user's class is imported, so load only files that you trust.

    Args:
        path: the file.
        device: where it forecasts, as for `Forecaster.to`.

    Raises:
        ArgumentError: the device is not there.
        CheckpointError: the file is missing, damaged or foreign, or its class cannot be imported.
    """
    torch_device = device_named(device)
    tensors, header = load_tensors(Path(of_class(path, str | Path, "a forecaster's file")), REMEDY)
    if header.get("kind") != "forecaster":
        raise CheckpointError(f"expected an adapted forecaster, got a {header.get('kind')} file at {path}; {REMEDY}")
    header = _upgraded(header)
    try:
        kind = (
            import_class(header["class"], ForecastModel)
            if "class" in header
            else forecasters.model_class(header["forecaster"])
        )
    except (KeyError, ArgumentError) as error:
        raise CheckpointError(f"{error}; the forecaster is in {path}") from error
    base = header.get("base", "none")
    theirs = {name: header[name] for name in ("rule", "constants") if name in header}
    ours = _rule(base, kind, base == "combined" and "known" in tensors)
    if theirs != ours:
        software = header.get("record", {}).get("software", {})
        what = base if base in RULES else header["forecaster"]
        raise CheckpointError(
            f"expected a forecaster that is {what} as this version does it, got one of "
            f"{software.get('rdjepa', 'another')} ({software.get('source', 'unknown source')}) at {path}; "
            "read it with that version, or adapt again"
        )
    scores, latents = tensors.pop(_SCORES, None), tensors.pop(_LATENTS, None)
    try:
        calibration = None if scores is None else Calibration(scores.numpy(), **header["calibration"])
        familiar = None if latents is None else Familiar(latents.numpy(), header["reach"])
        model = _rebuilt(kind, header, tensors)
        normalizer = Normalizer.from_dict(header["normalizer"])
        found = Forecaster(model, normalizer, header["record"], header["losses"], calibration, familiar)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise CheckpointError(f"expected a forecaster of this version, got another at {path} ({reason})") from error
    return found.to(torch_device)


def _rule(base: str, kind: type[ForecastModel], knows: bool) -> dict[str, Any]:
    """Return the entries of a file that say by which numbers of this version a model forecasts.

    Args:
        base: what the network is combined with.
        kind: of the network.
        knows: whether its blend goes by what is familiar.
    """
    rule = RULES.get(base, {}) | ({"power": combined.POWER} if knows else {})
    constants = sealed.plain(dict(kind.constants))
    return ({"rule": rule} if rule else {}) | ({"constants": constants} if constants else {})


def _rebuilt(kind: type[ForecastModel], header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> ForecastModel:
    """Return the model of a file: its network, within what stands around it, with the stored weights."""
    base = header.get("base", "none")
    with seeded(0):  # the weights are replaced
        model = kind.from_settings(header["settings"])
    model.name = header["forecaster"]
    if base == "linear":
        model = Corrected(model)
    if "tiles" in header:
        model = Tiled(model, checked(header["tiles"]["grid"], Count, "grid"), bool(header["tiles"]["walls"]))
    if base == "combined":
        model = Combined(model, familiar=_familiar_to_blend(tensors))
        model.equation.domain = Domain.of(header)
    if base == "anchored":
        model = Anchored(model, walls=bool(header.get("walls")))
    model.load_state_dict(tensors)
    model.preset = header["preset"]
    return model


def _familiar_to_blend(tensors: Mapping[str, Tensor]) -> Familiar | None:
    """Return what the blend of a file goes by; None where it trusts the network equally everywhere."""
    if "known" not in tensors:
        return None
    return Familiar(tensors["known"].numpy(), float(tensors["reach"]), float(tensors["missed"]))


def _network(model: ForecastModel) -> ForecastModel:
    """Return the network itself, without tiles and what stands beside it."""
    while isinstance(model, Around):
        model = model.network
    return model


def _class_of(model: ForecastModel) -> dict[str, str]:
    """Return the entry "class" of a file, "module:Class"; none for a registered one of this package, found by name."""
    kind = type(_network(model))
    kind = Equation if kind is Remembering else kind  # a memory is nothing to be kept
    path = f"{kind.__module__}:{kind.__qualname__}"
    known = model.name in forecasters.names() and forecasters.get(model.name).path == path
    return {} if known and path.startswith("rdjepa.") else {"class": path}


def _upgraded(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the header of a file; in older ones the entry "forecaster" is named "contender", and is renamed here."""
    return {"forecaster": header["contender"], **header} if "contender" in header else dict(header)
