"""The commands pretrain and probe."""

import contextlib
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from rdjepa.cli.console import console, progress, say
from rdjepa.cli.options import COMPILE_MODES, FRAME_PLACES, OBJECTIVES, PARTS, PRESETS, Device, names_in
from rdjepa.cli.outputs import refuse_overwriting
from rdjepa.errors import ArgumentError, Note, warn
from rdjepa.io.atomic import write_bytes

PROBES = "probes.json"


def pretrain(
    preset: Annotated[str, typer.Option(help=f"Model size: {', '.join(PRESETS)}.")] = "nano",
    data: Annotated[Path, typer.Option(help="Directory with trajectories of the systems.")] = Path("datasets"),
    out: Annotated[Path, typer.Option(help="Run directory; the model is written to its folder `model`.")] = Path(
        "runs/pretrain"
    ),
    systems: Annotated[
        list[str] | None,
        typer.Option(help="Systems to train on, separated by commas; the paper's five sources by default."),
    ] = None,
    trajectories: Annotated[
        int | None, typer.Option(min=1, help="Pool trajectories of each system, the first ones; all by default.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Length of the run; the preset's own by default.")] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="float32 or bfloat16; the preset's own by default, float32 on a device without bfloat16 arithmetic."
        ),
    ] = None,
    ema: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help="Averaging coefficient of the target encoder; the preset's own by default.", metavar="FIRST LAST"
        ),
    ] = None,
    objective: Annotated[
        str, typer.Option(help=f"What the encoder learns from: {', '.join(OBJECTIVES)}.")
    ] = "predictive-latent",
    start: Annotated[str | None, typer.Option(help="Pretrained model to go on from; fresh weights by default.")] = None,
    without: Annotated[
        list[str] | None, typer.Option(help=f"Parts to leave out, separated by commas, among {', '.join(PARTS)}.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest valid state in --out.")] = False,
    stop_at: Annotated[int | None, typer.Option(min=1, help="Save and stop at this step; --resume goes on.")] = None,
    compile: Annotated[
        str | None,
        typer.Option(
            help=f"Compile the networks, or replay steps as CUDA graphs: {', '.join(COMPILE_MODES)}; what suits the "
            "device by default."
        ),
    ] = None,
    accumulate: Annotated[int, typer.Option(min=1, help="Passes that divide a batch, to take less memory.")] = 1,
    frames: Annotated[
        str | None,
        typer.Option(help=f"Where the data live: {', '.join(FRAME_PLACES)}; what suits the device by default."),
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write for TensorBoard too.")] = False,
    device: Device = "auto",
) -> None:
    """Pretrain an encoder, as in the paper by predicting future states in latent space, or with another objective.

    For several devices, start it by torchrun: torchrun --nproc-per-node 2 -m rdjepa pretrain ...
    """
    from rdjepa import api
    from rdjepa.models.device import device_named
    from rdjepa.pretraining import processes
    from rdjepa.pretraining.engine import Engine, fastest
    from rdjepa.pretraining.state import saved_states

    chosen: dict[str, Any] = {"systems": names_in(*systems)} if systems else {}
    suited = fastest(device_named(device), accumulate)
    engine = Engine(compile or suited.compile, accumulate, frames or suited.frames)
    leads = processes.environment().leads
    if leads and resume and not saved_states(out):
        warn(f"{out} holds no state of a run to go on from, so it begins anew", Note)
    with progress(f"pretrain {preset}") if leads else contextlib.nullcontext() as update:
        api.pretrain(
            preset,
            data,
            out,
            steps=steps,
            precision=precision,
            ema=ema,
            objective=objective,
            start=start,
            without=names_in(*without) if without else (),
            trajectories=trajectories,
            engine=engine,
            resume=resume,
            stop_at=stop_at,
            tensorboard=tensorboard,
            device=device,
            progress=update,
            **chosen,
        )
    if leads:
        say(f"model in {out / 'model'}, curves in {out / 'model' / 'curves.png'}")


def probe(
    model: Annotated[str, typer.Argument(help="Shipped checkpoint, directory of one, or hub id.")],
    data: Annotated[
        Path, typer.Option(help="Dataset directory; trajectories that it lacks are simulated into it.")
    ] = Path("datasets"),
    out: Annotated[Path | None, typer.Option(help="Directory for probes.json and probes.md.")] = None,
    systems: Annotated[
        list[str] | None,
        typer.Option(
            help="Systems, separated by commas; by default those of the eight periodic ones that the data set has, or "
            "all eight where it has none."
        ),
    ] = None,
    train: Annotated[int, typer.Option(min=5, help="Pool trajectories of each system to fit on.")] = 60,
    test: Annotated[int, typer.Option(min=2, help="Test trajectories of each system and regime.")] = 20,
    device: Device = "auto",
) -> None:
    """Fit linear probes to a frozen encoder: R^2 of the coefficients, and accuracy of the system's name."""
    from rdjepa.data import store
    from rdjepa.data.build import trajectory_bytes
    from rdjepa.data.recorded import recorded
    from rdjepa.evaluation.probe import ProbeConfig, lacks, record
    from rdjepa.evaluation.probe import probe as run_probe
    from rdjepa.evaluation.probe_table import probe_markdown, probe_table
    from rdjepa.io.checkpoint import load
    from rdjepa.models.device import device_named
    from rdjepa.systems import get, named

    if out is not None:  # before the work, not after
        refuse_overwriting(out / PROBES, [], kind="probes", same_kind=lambda _: True, force=False)
    stored = {key.system for key in store.keys(data)}
    usual = [name for name in ProbeConfig.systems if name in stored] or ProbeConfig.systems
    if systems and (known := {*names_in(*systems)} & {*recorded(data)}):
        raise ArgumentError(
            f"expected simulated systems, whose coefficients are known, got recordings: {', '.join(sorted(known))}; "
            "name others"
        )
    names = [named(name) for name in names_in(*systems)] if systems else usual
    config = ProbeConfig(tuple(names), train, test)
    pretrained = load(model)
    if lacking := lacks(data, config):
        size = sum(trajectory_bytes(get(key.system)) for key in lacking) / 1e9
        say(f"{len(lacking)} trajectories of {', '.join(names)} are simulated into {data}, {size:.1f} GB")
    with progress("probe") as update:
        rows = run_probe(pretrained, data, config, device_named(device), update)
    result = record(rows, config, pretrained.fingerprint)
    heading, *lines = probe_table(result["rows"])
    table = Table(*heading)
    for line in lines:
        table.add_row(*line)
    console.print(table)
    if out is not None:
        write_bytes(out / PROBES, json.dumps(result, indent=1).encode())
        write_bytes(out / "probes.md", probe_markdown(result["rows"]).encode())
        say(f"probes in {out / 'probes.md'}")
