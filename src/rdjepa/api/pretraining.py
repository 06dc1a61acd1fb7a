"""The public functions of pretraining: load a checkpoint, or make one."""

import copy
import dataclasses
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from rdjepa.checks import Count, checked, of_class, usable_path
from rdjepa.data import manifest, store
from rdjepa.data.acquire import Acquirer
from rdjepa.data.fields import COMPONENTS, block_means, channels_first
from rdjepa.data.recorded import recorded
from rdjepa.data.simulate import simulate
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.data.windows import PRETRAINING
from rdjepa.errors import ArgumentError
from rdjepa.io import cards, checkpoint, sealed
from rdjepa.io.atomic import write_bytes
from rdjepa.io.checkpoint import CURVES, METRICS
from rdjepa.io.provenance import fingerprint, software
from rdjepa.models.device import device_named, in_float32, suited
from rdjepa.models.jepa import JEPA
from rdjepa.models.rdjepa import RDJEPA, ModelConfig, sizes_of
from rdjepa.pretraining import config as profiles
from rdjepa.pretraining import objectives, parts, processes
from rdjepa.pretraining.dataset import Dataset
from rdjepa.pretraining.diagnostics import diagnose
from rdjepa.pretraining.engine import Engine, explain_out_of_memory, fastest
from rdjepa.pretraining.frames import Frames
from rdjepa.pretraining.loop import pretrain as _pretrain
from rdjepa.pretraining.run_directory import read_metrics, require_free
from rdjepa.pretraining.start import Start
from rdjepa.pretraining.state import first_networks
from rdjepa.pretraining.targets import TargetConfig
from rdjepa.pretraining.tensorboard import Board
from rdjepa.progress import Progress
from rdjepa.systems import SOURCES, every_name, family_names, get

# systems of the error that is recorded with a checkpoint, and the samples that it is measured on
CHECKED = ("gray-scott", "brusselator", "ginzburg-landau", "schnakenberg")
SAMPLES = 16


def load(source: str | Path) -> RDJEPA:
    """Load a pretrained RD-JEPA; its decoder has fresh weights where the checkpoint has none (`RDJEPA.pretrained`).

    Args:
        source: name of a shipped checkpoint ("nano"), a directory that `pretrain` wrote, or a hub id "owner/name",
            after which "@" and a branch, tag or commit may stand.

    Raises:
        CheckpointError: missing, damaged or foreign; the shipped names are listed.
    """
    return checkpoint.load(source)


@in_float32
@torch.enable_grad()
def pretrain(
    preset: str | ModelConfig,
    data: str | Path,
    out: str | Path,
    *,
    systems: Sequence[str] | None = None,
    steps: int | None = None,
    precision: str | None = None,
    ema: tuple[float, float] | None = None,
    objective: str | None = None,
    start: str | Path | None = None,
    without: Collection[str] = (),
    trajectories: int | Mapping[str, int] | None = None,
    config: profiles.PretrainConfig | None = None,
    device: str = "auto",
    engine: Engine | None = None,
    resume: bool = False,
    stop_at: int | None = None,
    tensorboard: bool = False,
    progress: Progress | None = None,
) -> RDJEPA:
    """Pretrain on stored trajectories of several systems (S2.3-S2.5).

    Fields are standardized with the statistics of their system, those of a family with those of each trajectory, which
    is an equation of its own. Stored frames that are finer than the preset's grid are averaged over blocks of points.
    Under torchrun every process calls this function; the process of rank 0 writes files and reports progress.

    Args:
        preset: "paper", "small" or "nano"; or sizes of your own, a `rdjepa.models.rdjepa.ModelConfig`, which need a
            `config`.
        data: directory of stored trajectories; the pool trains, the validation split is for diagnostics only.
        out: run directory; the finished model is in its folder `model`.
        systems: what `rdjepa.systems.get` takes, or names of recordings in `data` (`rdjepa.add_recordings`); the five
            sources when None. Batches depend on their order.
        steps: length of the run; the preset's own when None. Warm-up keeps its share.
        precision: "float32" or "bfloat16"; when None that of `config`, or the preset's own, where a device that has no
            bfloat16 arithmetic takes float32.
        ema: averaging coefficient of the target encoder, first and last, where the objective has one; the preset's own
            when None.
        objective: what the encoder learns from, among `rdjepa.pretraining.objectives.names()`; that of `config` when
            None, which is the paper's unless said otherwise.
        start: what `load` takes, a pretrained model of these sizes to go on from, in a run of its own; fresh weights
            when None. Its data are listed with the new checkpoint's.
        without: parts of the method to leave out, among `rdjepa.pretraining.parts.PARTS`.
        trajectories: at most this many of each system's pool, the first ones, or how many by system; all when None.
        config: all optimization settings; those of the preset when None, such as `PROFILES["nano"]` of
            `rdjepa.pretraining.config`.
        device: "auto", "cpu", "cuda".
        engine: choices of speed and memory; what suits the device when None.
        resume: continue from the newest valid state in `out`.
        stop_at: save and return at this step; a later call with `resume` continues.
        tensorboard: write the diagnostics for TensorBoard too, into the folder `tensorboard` of `out`.
        progress: called after every step with its number, the number of steps and the latest diagnostics as text.

    Returns:
        The pretrained model.

    Raises:
        ArgumentError: unknown preset, precision, objective, part or system, sizes without a `config`, systems without
            trajectories, coefficients outside [0, 1) or of an objective that has none, settings that do not fit
            together, less than one trajectory, a step to stop at below 1, a directory of another run, a start that is
            missing or of other sizes, or torch.inference_mode.
        CheckpointError: a start that is damaged, or does not name its data.
        DivergenceError: loss or gradient is not finite; the states saved before remain.
        InsufficientMemoryError: more memory is needed than there is; the message says what to lower.
    """
    whole, name = sizes_of(of_class(preset, str | ModelConfig, "a preset"))
    if whole.components != COMPONENTS:
        raise ArgumentError(
            f"expected sizes for {COMPONENTS} components, as trajectories have, got {whole.components}; change them"
        )
    if torch.is_inference_mode_enabled():
        raise ArgumentError("expected gradients to train with, got torch.inference_mode; call pretrain outside of it")
    of_class(without, list | tuple | set | frozenset, "without")
    steps, stop_at = checked(steps, Count | None, "steps"), checked(stop_at, Count | None, "stop_at")
    of_class(config, profiles.PretrainConfig | None, "config")
    of_class(engine, Engine | None, "engine")
    of_class(systems, list | tuple | None, "systems")
    data, run, torch_device = usable_path(data, "data"), usable_path(out, "out"), device_named(device)
    config = _configured(config, name, torch_device, steps, precision, ema, objective)
    sizes, config = parts.without(without, whole, objectives.resolved(config))
    begun = None if start is None else Start.read(start)
    own = recorded(data)
    files = _systems(SOURCES if systems is None else systems, own)
    limit = _limits(trajectories, files)
    unknown = [name for name, _ in config.weights if name not in files]
    if unknown:
        raise ArgumentError(f"expected weights of {', '.join(files)}, got one of {unknown[0]}; name its system")
    engine = engine or fastest(torch_device)
    started = time.perf_counter()
    with processes.joined(torch_device) as ranks, explain_out_of_memory():
        torch_device = ranks.device(torch_device)
        # What can be refused without data is.
        ranks.parts(config.batch, engine.accumulate)
        if ranks.leads:
            require_free(run, resume)
        first_networks(name, config, engine, ranks, sizes, begun.model if begun else None)
        board = Board(run / "tensorboard" if tensorboard and ranks.leads else None)
        mapped = run / "frames" if engine.frames == "mapped" else None
        first = begun.sources.normalizers if begun else {}
        known = {name: Normalizer.from_dict(values) for name, values in first.items()}
        dataset, validation = _opened(data, files, limit, sizes.grid, config, mapped, ranks, known)
        if begun:
            begun.check_data(dataset.checksums, own)
        # Only training data: validation is read for diagnostics, a few batches in all.
        if engine.frames == "device":
            dataset = Dataset(dataset.frames.to(torch_device), dataset.normalizers, dataset.checksums)
        with board:
            model = _pretrain(
                name,
                dataset,
                run,
                config,
                validation=validation,
                device=torch_device,
                engine=engine,
                ranks=ranks,
                resuming=resume,
                stop_at=stop_at,
                progress=progress,
                line=board.write,
                model=sizes,
                start=begun.model if begun else None,
            )
        if validation:  # in the leading process
            setup = {"software": software(torch_device), "engine": dataclasses.asdict(engine), "processes": ranks.size}
            setup |= {**_nearest(data, dataset.checksums), "without": list(dict.fromkeys([*whole.without, *without]))}
            setup |= {"recorded": names} if (names := [name for name in files if name in own]) else {}
            _finish(model, name, run, config, dataset, validation, started, setup, files, data, begun)
        ranks.wait()
    return checkpoint.load(run / "model")


def _configured(
    config: profiles.PretrainConfig | None,
    preset: str,
    device: torch.device,
    steps: int | None,
    precision: str | None,
    ema: tuple[float, float] | None,
    objective: str | None,
) -> profiles.PretrainConfig:
    """Return the settings of a run: those given, or the preset's own that suit the device, with what else is said."""
    if config is None and preset not in profiles.PROFILES:
        raise ArgumentError(
            "expected the settings of a pretraining for sizes of your own, got none; give them as config=, such as "
            'rdjepa.pretraining.config.PROFILES["nano"]'
        )
    if config is None:
        usual = profiles.PROFILES[preset]
        config = dataclasses.replace(usual, precision=suited(usual.precision, device))
    if steps is not None:
        config = profiles.scaled(config, steps)
    if precision is not None:
        config = dataclasses.replace(config, precision=precision)
    if objective is not None and objective != config.objective:
        config = dataclasses.replace(config, objective=objective, options=None)
    if ema is not None:
        if not issubclass(objectives.model_class(config.objective), JEPA):
            raise ArgumentError(
                f"expected an objective with a target encoder to average, got {config.objective}, which has none; "
                "leave ema out"
            )
        config = dataclasses.replace(config, ema=ema)
    return config


def _opened(
    data: Path,
    files: Mapping[str, str],
    limit: Mapping[str, int] | None,
    grid: int,
    config: profiles.PretrainConfig,
    mapped: Path | None,
    ranks: processes.Ranks,
    known: Mapping[str, Normalizer],
) -> tuple[Dataset, Dataset | None]:
    """Return the trajectories that train and, in the leading process, those for diagnostics, as `config` takes them.

    An equation of which statistics are known is standardized with these, and diagnostics as what trains is.

    Raises:
        ArgumentError, DataError: data of another recipe, none of a system, or some that are shorter than a window.
    """
    rounded = config.precision == "bfloat16" and not objectives.model_class(config.objective).exact
    dtype = torch.bfloat16 if rounded else torch.float32
    # The leader writes the memory-mapped frames; the other processes then only open them.
    with ranks.leader_first():
        if (data / manifest.RECIPE).is_file():
            own = recorded(data)
            manifest.check(data, [get(each) for name, each in files.items() if name not in own])
        training = Dataset.open(data, files, limit=limit, dtype=dtype, mapped=mapped, grid=grid, known=known)
        validation = None
        if ranks.leads:
            validation = Dataset.open(data, files, "validation", dtype=dtype, grid=grid, known=training.normalizers)
    opened = (training, validation) if validation else (training,)
    shortest = min(length for each in opened for s in each.frames.spans.values() for _, length in s)
    dataclasses.replace(PRETRAINING, stride=max(config.strides)).count(shortest)
    return training, validation


def _systems(given: Sequence[str], recordings: Collection[str]) -> dict[str, str]:
    """Return a dictionary: name of every system -> the argument that named it, a name or a file that defines it."""
    known = (*every_name(), *recordings)
    unknown = [each for each in given if each not in known and not str(each).endswith(".py")]
    if unknown and recordings:
        raise ArgumentError(
            f"expected the name of a system, got {unknown[0]!r}; known: {', '.join(known)}, or a .py file"
        )
    files = {each if each in recordings else get(each).name: each for each in given}
    if not files or len(files) < len(given):
        raise ArgumentError(
            f"expected at least one system and each once, got {', '.join(map(str, given)) or 'none'}; name each once"
        )
    return files


def _limits(trajectories: int | Mapping[str, int] | None, names: Mapping[str, str]) -> dict[str, int] | None:
    """Return how many trajectories of each system are read at most; None for all.

    Raises:
        ArgumentError: fewer than one, or of a system that is not among the names.
    """
    if trajectories is None:
        return None
    found = dict(trajectories) if isinstance(trajectories, Mapping) else dict.fromkeys(names, trajectories)
    unknown = sorted(found.keys() - names.keys())
    if unknown:
        raise ArgumentError(f"expected trajectories of {', '.join(names)}, got some of {unknown[0]}; name its system")
    return {name: checked(number, Count, f"the trajectories of {name}") for name, number in found.items()}


def _nearest(data: Path | str, keys: Iterable[str]) -> dict[str, Any]:
    """Return, under "nearest", how near the families among the trajectories come to what is held out."""
    families = [key for key in map(Key.parse, keys) if key.system in family_names()]
    near = {str(key): store.read_record(store.path_of(data, key)).nearest for key in families}
    return {"nearest": manifest.nearest_of_all(near)} if near else {}


def _finish(
    model: RDJEPA,
    preset: str,
    run: Path,
    config: profiles.PretrainConfig,
    dataset: Dataset,
    validation: Dataset,
    started: float,
    setup: Mapping[str, Any],
    files: Mapping[str, str],
    data: Path,
    start: Start | None,
) -> None:
    """Write the folder `model` of a run: weights, configuration, data, curves and card."""
    from rdjepa.viz import figures  # matplotlib, which adaptation and forecasts do not need

    metrics = read_metrics(run / METRICS)
    sources = sealed.read(run / checkpoint.DATA, checkpoint.Sources, "pretrain again")
    objective = objectives.model_class(config.objective)
    record = {
        "objective": config.objective,
        "summary": objective.summary(config.options) or objectives.get(config.objective).summary,
        "pretrained": list(objective.kept(config.options)),  # the other networks are fresh
        "config": dataclasses.asdict(config),
        "steps": metrics[-1]["step"],
        "systems": list(files),
        "grid": model.config.grid,
        "trajectories": dataset.frames.counts,
        "validation_trajectories": validation.frames.counts,
        "diagnostics": next((m for m in reversed(metrics) if m.keys() & {"latent_loss", "latent_std"}), {}),
        "seconds_of_last_session": round(time.perf_counter() - started, 1),
        **setup,
    }
    folder = run / "model"
    folder.mkdir(exist_ok=True)
    if start is not None:
        record |= start.told(record)
        sources = start.sources_with(sources)
        for name, content in start.curves.items():
            write_bytes(folder / name, content)
    record["data"] = fingerprint(sources.trajectories)
    # the latent loss of the written weights, to be compared after loading
    normalizers = {name: Normalizer.from_dict(each) for name, each in sources.normalizers.items()}
    record["check"] = latent_error(model, normalizers, _held_out(run, data, files))
    sealed.write(folder / checkpoint.DATA, dataclasses.asdict(sources))
    write_bytes(folder / METRICS, (run / METRICS).read_bytes())
    figures.curves(metrics, folder / CURVES)
    checkpoint.save(model, folder, record, cards.model_card(preset, record))


def _held_out(run: Path, data: Path, files: Mapping[str, str]) -> Callable[[Key], Trajectory]:
    """Return what reads a trajectory of the systems that a run read, and simulates any other one."""
    # nobody has checked what else is there
    read, others = (Acquirer(run, known, sources=files) for known in (data, None))
    return lambda key: (read if key.system in files else others).get(key, keep=False)


def latent_error(
    model: RDJEPA, normalizers: Mapping[str, Normalizer], held_out: Callable[[Key], Trajectory] | None = None
) -> float:
    """Return the mean latent loss on the first validation trajectory of some systems.

    The online encoder gives the targets. The loss is recorded with a checkpoint, so that a loaded checkpoint can be
    compared with the run that wrote it. The systems are those of `CHECKED` that the model was trained on, or the first
    of its systems where it was trained on none of these.

    Args:
        model: a pretrained model.
        normalizers: the field statistics of its pretraining data, by system; of a family, whose trajectories have their
            own, by key.
        held_out: returns the trajectory of a key; it is simulated when None.
    """
    first = next(iter(normalizers)).split("/")[0]  # a system, or that of a key
    fields = {}
    for name in [name for name in CHECKED if name in normalizers] or [first]:
        trajectory = held_out(Key(name, "validation")) if held_out else simulate(name, split="validation")
        physical = block_means(trajectory.fields, model.config.grid)
        normalizer = normalizers.get(name) or Normalizer.fit([physical])
        fields[name] = [channels_first(normalizer.standardize(physical))]
    # A checkpoint has no target encoder; a copy of the online one makes the loss a function of the stored weights.
    jepa = JEPA(copy.deepcopy(model.encoder), model.predictor).to(next(model.parameters()).device)
    side = model.config.side
    targets = TargetConfig(sides=(2, min(6, side)))  # the paper's, within a grid of four tokens a side too
    batch = Dataset(Frames.of(fields), normalizers).batch(0, 0, SAMPLES, side, targets)
    return diagnose(jepa, [batch.to(next(model.parameters()).device)])["latent_loss"]
