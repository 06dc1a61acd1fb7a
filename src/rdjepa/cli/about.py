"""The commands demo and info."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from rdjepa.cli.console import console, error_table, progress, say, table
from rdjepa.cli.options import LAST_SEED, MODEL, Device, Model
from rdjepa.io.atomic import writing


def demo(
    system: Annotated[str, typer.Option(help="System to forecast.")] = "barkley",
    model: Model = MODEL,
    k: Annotated[int, typer.Option(min=1, help="Support trajectories.")] = 1,
    steps: Annotated[int, typer.Option(min=1, help="Training updates of both models.")] = 100,
    test: Annotated[int, typer.Option(min=1, help="Unseen trajectories to evaluate on.")] = 6,
    support_seed: Annotated[int, typer.Option(min=0, max=LAST_SEED, help="Which support set.")] = 777,
    out: Annotated[Path, typer.Option(help="Directory for figure, animation, result and data.")] = Path("demo"),
    device: Device = "auto",
) -> None:
    """Forecast a held-out system after adaptation to one trajectory; compare with two baselines."""
    from rdjepa import demo as demonstration
    from rdjepa import systems

    system = systems.named(system)
    config = demonstration.DemoConfig(system, model, k, steps, test, support_seed, device=device)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    result = demonstration.run(config, out, progress)
    say(f"{system}, K = {k}, {steps} updates, {test} unseen trajectories x {result['windows_per_trajectory']} windows")
    console.print(_curve_table(result["curve"]))
    for metric, title in (("relative_l2", "relative L2 error"), ("gradient_l1", "gradient L1 error")):
        console.print(error_table(title, result["errors"], metric))
    figures = f"{out / demonstration.CURVE} and {out / demonstration.FORECAST}"
    say(f"figures {figures}, animation {out / demonstration.MOVIE}, result {out / demonstration.RESULT}")


def _curve_table(curve: Mapping[str, Mapping[int, float]]) -> Table:
    """Return a table of the errors on the way: a row per forecaster, a column per number of updates."""
    updates = map(str, next(iter(curve.values())))
    made = table("relative L2 error after so many updates, mean over horizons", "forecaster", *updates)
    for name, found in curve.items():
        made.add_row(name, *(f"{value:.4f}" for value in found.values()))
    return made


def objective_of(run: Mapping) -> str:
    """Return the titles of the objectives in the record of a run, and what was left out; records of 0.1.0 name none."""
    from rdjepa.pretraining import objectives

    name = run.get("objective", objectives.DEFAULT)
    title = objectives.get(name).title if name in objectives.names() else name
    title = f"{objective_of(run['start'])}, then {title.lower()}" if "start" in run else title
    return f"{title} without {', '.join(run['without'])}" if run.get("without") else title


def info(
    model: Annotated[
        str | None, typer.Argument(help="Checkpoint to tell of alone, a directory or hub id; the shipped ones if none.")
    ] = None,
) -> None:
    """Show versions, device, model presets and shipped checkpoints; or what a checkpoint was pretrained on."""
    import torch

    from rdjepa.io import checkpoint
    from rdjepa.io.provenance import software
    from rdjepa.models.rdjepa import PRESETS, build, parameter_count

    if model is not None:
        _say_checkpoint(f"checkpoint {model}", model)
        return
    say(", ".join(f"{name} {version}" for name, version in software().items()))
    presets = table("presets (parameters)", "preset", "encoder", "predictor", "decoder", "trained in adaptation")
    for name in PRESETS:
        with torch.device("meta"):  # weights of shape alone
            built = build(name)
        parts = [parameter_count(part) for part in (built.encoder, built.predictor, built.decoder)]
        presets.add_row(name, *(f"{n:,}" for n in parts), f"{parts[1] + parts[2]:,}")
    console.print(presets)
    for name in checkpoint.shipped():
        usual = ", taken where none is named" if name == checkpoint.DEFAULT else ""
        _say_checkpoint(f"checkpoint {name}{usual}", name)


def _say_checkpoint(title: str, source: str) -> None:
    """Print how a checkpoint was pretrained, on what, and whether that is among what is held out."""
    from rdjepa.io import checkpoint
    from rdjepa.io.cards import runs
    from rdjepa.study.leaks import audit

    directory, record = checkpoint.read_config(source)
    run = record.pretraining
    say(f"{title}: {run['grid']} x {run['grid']} points, two components, {objective_of(run)}")
    say(f"its weights: {record.sha256[:12]}, {directory}")
    for each in reversed(runs(run)):
        say(
            f"{each['steps']} steps of batch {each['config']['batch']} on {sum(each['trajectories'].values())} "
            f"training trajectories of {', '.join(each['trajectories'])}"
        )
    data_fingerprint, leaks = audit(source)
    verdict = "\n".join(leaks) or "no held-out system, no validation or test trajectory"
    if recordings := run.get("recorded"):
        verdict += f"; but of the recordings ({', '.join(recordings)}) nobody can check what they are"
    say(f"its data: {data_fingerprint[:12]}, {verdict}")
    for family, near in run.get("nearest", {}).items():
        say(f"random equations ({family}): nearest to a held-out one {near['distance']:.3f}, {near['held_out']}")
