"""Which link is the weak one: a decoder that is given the true future tokens, beside the whole forecaster.

    python benchmarks/oracle.py --model nano --system schnakenberg --data datasets

Three ways to decode the same windows, each trained on `--k` pool trajectories (support seed 777) and measured on
validation trajectories: `oracle`, a decoder that gets the encoder's tokens of the true future frames; `frozen`, a
decoder of the pretrained predictor's tokens, which are not trained; `rd-jepa`, predictor and decoder trained together,
as in adaptation. If the oracle is poor, tokens do not hold the field or the decoder cannot read them; if it is good and
the others are not, the predictor is the weak link. One that is poor with one trajectory and good with ten says that
the tokens hold the field and a decoder has not seen enough to read them. `crossed` is the oracle's decoder, which has
learned to rely on tokens, given the predictor's: where it is better than `frozen`, a decoder that learns from predicted
tokens passes over what they say. Beside each error stands the one that is left when level and contrast of every
forecast component are mended, by the best map a x + b of its field: what is not a matter of the pattern. One line of
JSON per way is appended to --out.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import rates
import rdjepa
from rdjepa import systems
from rdjepa.adaptation.adapt import PROFILES, Windows, standardized, train, windows
from rdjepa.data.acquire import Acquirer
from rdjepa.data.fields import channels_first, channels_last
from rdjepa.data.splits import support
from rdjepa.data.trajectory import Key
from rdjepa.data.windows import FORECASTING
from rdjepa.evaluation.metrics import relative_l2
from rdjepa.forecasters.base import HORIZONS
from rdjepa.forecasters.loss import log_magnitude
from rdjepa.forecasters.rd_jepa import LearningRates, RDJEPAForecaster
from rdjepa.models.rdjepa import with_fresh_decoder

CPU, SEED, STRIDE = torch.device("cpu"), 777, 4
KINDS = ("relative_l2", "mended")


class Decoded(RDJEPAForecaster):
    """The decoder alone: its features are the tokens that it is given and the newest frame."""

    name = "decoder"

    def predict(self, *features: Tensor) -> Tensor:
        """Decode tokens (B, N, S, d) and newest frame (B, C, H, W)."""
        tokens, frame = features
        return self.decoder(tokens, frame)

    def parameter_groups(self) -> list[dict]:
        """Return the group of the decoder."""
        return super().parameter_groups()[-1:]


@torch.no_grad()
def tokens(model: RDJEPAForecaster, way: str, context: Tensor, future: Tensor) -> tuple[Tensor, ...]:
    """Return what a way of decoding is given, for windows of standardized frames."""
    if way == "rd-jepa":
        return model.features(context)
    if way in ("frozen", "crossed"):
        return model.predictor.full_grid(model.encoder(context), HORIZONS), context[:, -1]
    single = model.encoder(future.flatten(0, 1)[:, None])  # each frame alone, as the target encoder sees it
    return single.unflatten(0, future.shape[:2]), context[:, -1]


def measure(way: str, arguments: argparse.Namespace, data: dict[str, Any]) -> dict[str, dict[int, list[float]]]:
    """Train one way of decoding; return way -> number of updates -> errors of averaged weights on unseen windows."""
    pretrained, normalizer = with_fresh_decoder(rdjepa.load(arguments.model), SEED), data["normalizer"]
    model = (RDJEPAForecaster if way == "rd-jepa" else Decoded)(pretrained)
    rates.regrouped(model, arguments.groups)
    # With a trained encoder the features of a window are its frames.
    trained = RDJEPAForecaster(pretrained, LearningRates(1.0, 1.0, 1.0))
    cut = windows(trained, standardized(data["learning"], normalizer))
    (context,) = cut.features
    given = zip(
        *(tokens(model, way, a, b) for a, b in zip(context.split(8), cut.targets.split(8), strict=True)), strict=True
    )
    errors: dict[str, dict[int, list[float]]] = {name: {} for name in ((way, "crossed") if way == "oracle" else (way,))}

    def observe(updates: int, weights: str, snapshot: Any) -> None:
        for name in errors if weights == "averaged" else ():
            found = np.mean([both_errors(snapshot, name, each, normalizer) for each in data["unseen"]], axis=0)
            errors[name][updates] = found.tolist()
            print(f"{arguments.system} {name} {updates}: {found[0]:.4f}, mended {found[1]:.4f}", flush=True)

    at = [int(n) for n in arguments.updates.split(",")]
    config = replace(PROFILES["nano"], steps=max(at), precision=arguments.precision)
    features = tuple(torch.cat(parts) for parts in given)
    train(
        model, Windows(len(cut.targets), features, cut.targets, log_magnitude(cut.targets)), config, None, observe, at
    )
    return errors


@torch.no_grad()
def both_errors(
    model: RDJEPAForecaster, way: str, fields: np.ndarray, normalizer: rdjepa.Normalizer
) -> tuple[float, float]:
    """Return the relative L2 error of one trajectory, in physical units, as it is and mended; means over windows."""
    starts = FORECASTING.starts(len(fields))[::STRIDE]
    context, future = FORECASTING.stack(fields, starts)
    standard = [torch.from_numpy(channels_first(normalizer.standardize(part))) for part in (context, future)]
    predicted = normalizer.restore(channels_last(model.predict(*tokens(model, way, *standard)).numpy()))
    return float(relative_l2(predicted, future).mean()), float(relative_l2(mended(predicted, future), future).mean())


def mended(predicted: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Return fields (..., H, W, C), each component's after the map a x + b that brings it nearest to the true one."""
    space = (-3, -2)
    centered = predicted - predicted.mean(space, keepdims=True)
    level = true.mean(space, keepdims=True)
    square = np.square(centered).sum(space, keepdims=True)
    contrast = (centered * (true - level)).sum(space, keepdims=True) / np.maximum(square, np.finfo(np.float32).tiny)
    return level + contrast * centered


def main() -> None:
    """Measure all ways and append their lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="nano")
    parser.add_argument("--system", choices=systems.names(), default="schnakenberg")
    parser.add_argument("--data", type=Path, default=Path("datasets"))
    parser.add_argument("--k", type=int, default=1)
    parser.add_argument(
        "--groups", type=int, help="of the decoder's normalizations, 0 for none; the model's when not given"
    )
    parser.add_argument("--ways", default="oracle,frozen,rd-jepa")
    parser.add_argument("--updates", default="100,400,1600")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default=PROFILES["nano"].precision)
    parser.add_argument("--validation", type=int, default=8)
    parser.add_argument("--statistics", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/oracle.jsonl"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    acquirer, pretrained = Acquirer(arguments.data, arguments.data), rdjepa.load(arguments.model)

    def get(split: str, index: int) -> np.ndarray:
        return acquirer.get(Key(arguments.system, split, "id", index)).coarsened(pretrained.config.grid).fields

    data = {
        "learning": [get("pool", i) for i in support(1000, arguments.k, SEED)],
        "unseen": [get("validation", i) for i in range(arguments.validation)],
        "normalizer": rdjepa.Normalizer.fit(get("pool", i) for i in range(arguments.statistics)),
    }
    groups = pretrained.config.decoder_groups if arguments.groups is None else arguments.groups
    for way in arguments.ways.split(","):
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        for name, found in measure(way, arguments, data).items():
            row = {"system": arguments.system, "k": arguments.k, "way": name, "precision": arguments.precision}
            row |= {"groups": groups}
            row |= {kind: {n: errors[i] for n, errors in found.items()} for i, kind in enumerate(KINDS)}
            row |= {"validation": arguments.validation, "fingerprint": pretrained.fingerprint}
            with arguments.out.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
