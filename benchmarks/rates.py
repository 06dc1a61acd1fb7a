"""Learning rates of the nano forecasters, chosen by leaving one source out, or on random equations.

    python benchmarks/rates.py run --left-out gray-scott --model runs/without-gray-scott/model --data datasets
    python benchmarks/rates.py run --left-out family/validation/id/00020 --model nano-wide --statistics 20
    python benchmarks/rates.py table benchmarks/results/rates.csv

RD-JEPA starts from a model that was pretrained on the other four sources; the others start from random weights. A model
that has seen all sources is tried on a random equation that it has not seen: the key is that of a trajectory of the
family, and its equation becomes a system whose coefficients are drawn within 30 % of those of that trajectory (those of
the sources vary by 28 to 78 % on average, all boxes of a regime taken together). Each forecaster is adapted to `--k`
pool trajectories of what was left out (support seed 777) with its preset's rates times a factor, the same factors for
all, and evaluated on its validation trajectories. With `--trunk`, the rates of what stands before the decoder
(predictor, and encoder where it is trained) are multiplied once more: a slow trunk keeps what it brought along. With
`--base linear` forecasters correct a linear forecast of every point from its own last four values, fitted to the same
trajectories; `linear` among `--forecasters` is that forecast alone, and `equation` has these trajectories behind it.
Rows have the learning rates themselves, in the order of the parameter groups, the decoder last. `--seed` starts decoder
(or all weights) and the order of windows anew, which shows how far two rows differ by chance. With `--stride` all
frames are further apart. With `--combined` there are two more rows of each, for the same network combined with simple
forecasts in the shares that the supports tell, and blended with one of them without any
(`rdjepa.adaptation.combination`), trusting the network equally in all contexts. With `--powers` there is a row more for
each power of the novelty by which the blend trusts the network in familiar contexts (`rdjepa.forecasters.combined`).
`support` is the error on the supports before any update, standardized (`rdjepa.adaptation.retention.relative_error`).
Forecasters that nothing trains have a row after 0 updates; so has `rd-jepa-decoder` with 0 among `--updates`, whose
`--model` needs a pretrained decoder. Those that rehearse take trajectories that `--model` was pretrained on, those that
augment the turned and mirrored images of the supports, as many as `adapt` would. No held-out system and no test
trajectory is used. `run` appends a line per trial, number of updates and kind of weights, and skips what the file has;
`table` prints a row per trial.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn

import rdjepa
from rdjepa import extensions, forecasters, systems
from rdjepa.adaptation import combination, retention
from rdjepa.adaptation.adapt import AVERAGED, PROFILES, extended, fitted, standardized, tensors, train, windows
from rdjepa.adaptation.augmentation import images, number_of_images
from rdjepa.adaptation.novelty import familiar, summarize
from rdjepa.api import rehearsing
from rdjepa.api.start import FRESH, FROZEN, PRETRAINED, TUNED, forecaster_of
from rdjepa.data import manifest
from rdjepa.data.acquire import Acquirer
from rdjepa.data.simulate import simulate
from rdjepa.data.splits import support
from rdjepa.data.trajectory import Key
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import ArgumentError, DivergenceError
from rdjepa.evaluation.aggregate import horizon_average
from rdjepa.evaluation.evaluate import evaluate
from rdjepa.forecasters.anchored import Anchored, missed_by_continuations
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.combined import POWER, Combined
from rdjepa.forecasters.equation import Remembering
from rdjepa.forecasters.rd_jepa import EncoderTuned
from rdjepa.io import checkpoint
from rdjepa.models.decoder import Decoder, normalization
from rdjepa.models.rdjepa import PRESETS
from rdjepa.pde.sampling import Box, around
from rdjepa.pde.system import Regime, System
from rdjepa.systems import SOURCES
from rows import append, call, commands, done, read
from stride import strided

PRESET, SUPPORT_SEED, METRIC = "nano", 777, "relative_l2"
SHARE = 0.3  # by which coefficients of a random equation differ between its trajectories
DEFAULT = [name for name in forecasters.usual() if forecasters.get(name).trained]
TRIAL = ("left_out", "k", "forecaster", "base", "groups", "stride", "rates", "precision", "seed")
FIELDS = (*TRIAL, "updates", "weights", "relative_l2", "support", "validation", "fingerprint")
KEY = (*TRIAL, "fingerprint")  # of the pretrained weights


def run(arguments: argparse.Namespace) -> None:
    """Run the missing trials, in the order of the factors, so that an early stop leaves equal numbers of them."""
    torch.set_num_threads(arguments.threads)
    if arguments.load:
        extensions.load(arguments.load)
    known = done(arguments.out, KEY)
    system = arguments.left_out
    learning, unseen, normalizer = material(arguments, arguments.k)
    for factor in (float(f) for f in arguments.factors.split(",")):
        for name in arguments.forecasters.split(","):
            model, fingerprint = start(name, learning, normalizer, arguments)
            groups = scaled(model, factor, arguments.trunk)
            settings = (text(groups), arguments.precision, str(arguments.seed))
            parts = (regrouped(model, arguments.groups), str(arguments.stride))
            described = (system, str(arguments.k), name, arguments.base, *parts, *settings)
            if (*described, fingerprint) not in known:
                if arguments.base == "linear" and groups:
                    model = combination.correcting(model, standardized([each.fields for each in learning], normalizer))
                beside = rehearsed(name, arguments), forecasters.get(name).augments
                rows = trial(model, groups, learning, unseen, normalizer, arguments, *beside)
                append(arguments.out, FIELDS, [(*described, *row, len(unseen), fingerprint) for row in rows])
                known.add((*described, fingerprint))
                print(" ".join(described), rows[-1][2], flush=True)


def regrouped(model: ForecastModel, groups: int | None) -> str:
    """Give RD-JEPA's decoder, where a forecaster has it, other groups if asked for; return their number, or "".

    Normalizations have no random weights, so those of everything else are the same with any number.
    """
    if not isinstance(decoder := getattr(model, "decoder", None), Decoder):
        return ""
    layers = [layer for layer in decoder.modules() if isinstance(layer, nn.Sequential)]
    for layer in layers if groups is not None else []:
        for i in range(1, len(layer)):
            if isinstance(layer[i], nn.GroupNorm | nn.Identity):
                layer[i] = normalization(groups or 0, cast(nn.Conv2d, layer[i - 1]).out_channels)
    norm = decoder.head[1]
    return str(norm.num_groups) if isinstance(norm, nn.GroupNorm) else "0"


def material(
    arguments: argparse.Namespace, k: int = 1
) -> tuple[list[rdjepa.Trajectory], list[rdjepa.Trajectory], rdjepa.Normalizer]:
    """Return the K supports of what is left out, its unseen trajectories, and its field statistics."""
    acquirer, system = Acquirer(arguments.data, arguments.data), left_out(arguments)
    manifest.claim(arguments.data, [systems.get(system)])

    def get(split: str, index: int) -> rdjepa.Trajectory:
        return strided(acquirer.get(Key(system, split, "id", index)).coarsened(PRESETS[PRESET].grid), arguments.stride)

    learning = [get("pool", i) for i in support(1000, k, SUPPORT_SEED)]
    unseen = [get("validation", i) for i in range(arguments.validation)]
    return learning, unseen, rdjepa.Normalizer.fit(get("pool", i).fields for i in range(arguments.statistics))


def left_out(arguments: argparse.Namespace) -> str:
    """Return the name of the system that is left out; a random equation is registered first."""
    if arguments.left_out in SOURCES:
        return str(arguments.left_out)
    key = Key.parse(arguments.left_out)
    if key.system not in systems.family_names():
        raise ArgumentError(
            f"expected one of {', '.join(SOURCES)}, or the key of a random equation, got {arguments.left_out}; nothing "
            "is chosen on another system"
        )
    name = f"{key.system}-{key.split}-{key.index:05d}-within-{100 * SHARE:.0f}"
    if name not in systems.names():
        found = simulate(key.system, key.index, key.regime, key.split)
        systems.register(near(systems.get(key.system), found, name), "source")
    return name


def near(family: System, found: rdjepa.Trajectory, name: str) -> System:
    """Return the equation of one trajectory of a family as a system with many, as the named ones are.

    Every coefficient is drawn within `SHARE` of its value, with initial states as that of the trajectory. The step is
    shorter by as much as coefficients may be larger, since diffusivities limit it.
    """
    spans = {each.name: around(found.coefficients[each.name], SHARE) for each in family.coefficients}
    box = Box({each: (min(span), max(span)) for each, span in spans.items()})
    starts = [each for each in family.regime("id").initial_conditions if each.name == found.initial_condition]
    numerics = replace(family.numerics, dt=family.numerics.dt / (1 + SHARE))
    regimes = {"id": Regime((box,), tuple(starts))}
    return replace(family, name=name, title=name, label="", regimes=regimes, family="", numerics=numerics)


def start(
    name: str, learning: list[rdjepa.Trajectory], normalizer: rdjepa.Normalizer, arguments: argparse.Namespace
) -> tuple[ForecastModel, str]:
    """Return a forecaster and the fingerprint of its pretrained weights; some that nothing trains know the supports.

    Raises:
        ArgumentError: the pretrained model has seen the source that is left out, or has no decoder that could be kept.
    """
    if not forecasters.get(name).pretrained:
        fresh = forecasters.build(name, PRESET, seed=arguments.seed)
        return fitted(fresh, [each.fields for each in learning], normalizer), ""
    sources = checkpoint.read_sources(arguments.model)
    if arguments.left_out in {*sources.systems, *sources.trajectories}:
        raise ArgumentError(
            f"expected a model pretrained without {arguments.left_out}, got one of {', '.join(sources.systems)}; make "
            "one with: rdjepa pretrain --systems"
        )
    decoder = PRETRAINED if forecasters.get(name).keeps_decoder else FRESH
    encoder = TUNED if name == EncoderTuned.name else FROZEN
    return forecaster_of(rdjepa.load(arguments.model), arguments.seed, decoder=decoder, encoder=encoder)


def rehearsed(name: str, arguments: argparse.Namespace) -> list[np.ndarray]:
    """Return what a forecaster rehearses: trajectories that the model was pretrained on."""
    if not forecasters.get(name).rehearses:
        return []
    acquirer, sources = Acquirer(arguments.data, arguments.data), checkpoint.read_sources(arguments.model)
    keys = rehearsing.rehearsed_keys(sources, rehearsing.REHEARSED)
    return rehearsing.standardized(sources, keys, lambda key: acquirer.get(key).coarsened(PRESETS[PRESET].grid))


def scaled(model: ForecastModel, factor: float, trunk: float) -> list[dict]:
    """Return the parameter groups of a forecaster with its rates times a factor, all but the last times `trunk` too."""
    groups = model.parameter_groups()
    factors = [factor * trunk] * (len(groups) - 1) + [factor]
    return [{**group, "lr": scale * group["lr"]} for group, scale in zip(groups, factors, strict=False)]


class Powered(Combined):
    """A blend that goes by another power of the novelty."""

    power = float(POWER)

    def _novelty(self, *features: torch.Tensor) -> torch.Tensor | None:
        found = super()._novelty(*features)
        return None if found is None else found ** (self.power / POWER)


def text(groups: Sequence[dict]) -> str:
    """Return the learning rates of parameter groups as they stand in a row."""
    return " ".join(f"{group['lr']:.3g}" for group in groups)


def trial(
    model: ForecastModel,
    groups: list[dict],
    learning: list[rdjepa.Trajectory],
    unseen: list[rdjepa.Trajectory],
    normalizer: rdjepa.Normalizer,
    arguments: argparse.Namespace,
    beside: Sequence[np.ndarray] = (),
    augments: bool = False,
) -> list[tuple[int, str, str, str]]:
    """Adapt the groups of parameters; return updates, kind of weights, error and that on the supports, observed."""
    rows: list[tuple[int, str, str, str]] = []
    shares = [float(share) for share in arguments.retained.split(",") if share]
    first = retention.weights(model) if shares else {}
    support = standardized([each.fields for each in learning], normalizer)
    data = recorded = windows(model, support, tensors(beside))
    if augments and (count := number_of_images(len(support), data.own)) > 1:
        data = extended(data, windows(model, [image for own in support for image in images(own)[1:count]]))
    beside_it: dict[str, Combined] = {}
    if arguments.combined and groups:
        beside_it["combined"], _ = combination.combined(model.eval(), support)
        beside_it["blended"] = combination.blended(model, beside_it["combined"].equation)
        memory = Remembering.of(beside_it["combined"].equation)  # the same contexts are forecast after all updates

    def measure(updates: int, weights: str, snapshot: ForecastModel) -> None:
        on_supports = "" if updates else f"{retention.relative_error(snapshot, data):.6g}"
        kinds: dict[str, ForecastModel] = {weights: snapshot}
        for how, made in beside_it.items():
            kinds[f"{weights}, {how}"] = Combined(snapshot, made.linear, made.shares, memory)
        if arguments.powers and beside_it:
            counts = [FORECASTING.count(len(fields)) for fields in support]
            rows_of = summarize(snapshot, recorded)
            known = None if rows_of is None else familiar(rows_of, counts)
            for power in arguments.powers.split(","):
                made = Powered(snapshot, None, beside_it["blended"].shares, memory, known)
                made.power = float(power)
                kinds[f"{weights}, blended, novelty^{power}"] = made
        if arguments.anchored:
            kinds[f"{weights}, anchored"] = Anchored(snapshot, missed_by_continuations(support))
        for kind, forecaster in kinds.items():
            forecast = rdjepa.Forecaster(forecaster, normalizer).forecast
            every = max(1, 4 // arguments.stride)  # the same number of frames apart
            error = horizon_average(evaluate(forecast, unseen, metrics=(METRIC,), stride=every), METRIC)
            rows.append((updates, kind, f"{error:.6g}", on_supports))

    def observe(updates: int, weights: str, snapshot: ForecastModel) -> None:
        measure(updates, weights, snapshot)
        for share in shares if weights == AVERAGED else ():
            with retention.retaining(snapshot, first, share):
                measure(updates, f"retained {share:g}", snapshot)

    if not groups:
        observe(0, "last", model)
        return rows
    model.parameter_groups = lambda: groups  # type: ignore[method-assign]
    at = [int(n) for n in arguments.updates.split(",")]
    if 0 in at:
        observe(0, "last", model.eval())
    if not max(at):
        return rows
    config = replace(PROFILES[PRESET], steps=max(at), precision=arguments.precision, seed=arguments.seed)
    try:
        train(model, data, config, None, observe, at)
    except DivergenceError:
        rows.append((max(at), "last", "nan", ""))
    return rows


def table(arguments: argparse.Namespace) -> None:
    """Print the errors as a table in Markdown: a row per trial, a column per number of updates."""
    found: dict[tuple[str, ...], dict[int, str]] = defaultdict(dict)
    for row in read(arguments.rows):
        if row["weights"] == arguments.weights or row["updates"] == "0":
            trial = (*(row[name] for name in TRIAL), row["fingerprint"][:12])
            found[trial][int(row["updates"])] = f"{float(row[METRIC]):.4f}"
    at = sorted({updates for errors in found.values() for updates in errors})
    print(f"| {' | '.join(KEY)} | {' | '.join(f'{updates} updates' for updates in at)} |")
    print("|" + "---|" * (len(KEY) + len(at)))
    for trial, errors in sorted(found.items()):
        print(f"| {' | '.join((*trial, *(errors.get(updates, '') for updates in at)))} |")


def trajectories(go: argparse.ArgumentParser, **left_out: Any) -> None:
    """Add the options of what is left out and of its trajectories; `left_out` restricts or describes the first."""
    go.add_argument("--left-out", required=True, **left_out)
    go.add_argument("--data", type=Path, default=Path("datasets"))
    go.add_argument("--stride", type=int, default=1, help="take every so many frames of each trajectory")
    go.add_argument("--validation", type=int, default=8)
    go.add_argument("--statistics", type=int, default=1_000)


def common(go: argparse.ArgumentParser, **left_out: Any) -> None:
    """Add the options of an adaptation to what is left out."""
    trajectories(go, **left_out)
    go.add_argument("--trunk", type=float, default=1.0)
    go.add_argument("--updates", default="400,1600")
    go.add_argument(
        "--groups", type=int, help="of the decoder's normalizations, 0 for none; the preset's when not given"
    )
    go.add_argument("--precision", choices=("float32", "bfloat16"), default=PROFILES[PRESET].precision)
    go.add_argument("--retained", default="", help="shares of the first weights, mixed with the averaged ones")
    go.add_argument("--combined", action="store_true", help="each forecast beside simple ones too")
    go.add_argument("--powers", default="", help="of the novelty, for blends that go by it, with --combined")
    go.add_argument("--anchored", action="store_true", help="each forecast anchored in its context too")
    go.add_argument("--seed", type=int, default=SUPPORT_SEED, help="of fresh weights and the order of windows")


def main() -> None:
    """Run trials or print their table."""
    parser, go, show = commands(__doc__, run, table, "rates.csv")
    common(go, help="a source, or the key of a random equation")
    go.add_argument("--model", help="directory of a model pretrained on the other sources")
    go.add_argument("--forecasters", default=",".join(DEFAULT))
    go.add_argument("--load", type=Path, help="a Python file that registers forecasters")
    go.add_argument("--factors", default="1,0.3,3")
    go.add_argument("--k", type=int, default=1)
    go.add_argument("--base", choices=("none", "linear"), default="none", help="what the forecasters add to")
    show.add_argument("--weights", default="averaged", help='such as last, averaged, "retained 0.5"')
    call(parser)


if __name__ == "__main__":
    main()
