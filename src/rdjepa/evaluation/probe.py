"""Linear probes of a frozen encoder: from its latents to the coefficients, the system, and the change that follows.

Every trajectory gives a few windows of four frames. A window's features are the mean and the standard deviation over
patches of its latent tokens. A ridge regression from features to coefficients is fitted on pool trajectories of one
system and tested on that system's test trajectories; a prediction is the mean over a trajectory's windows. Two
references are an encoder with random weights, and as many principal components of the raw fields as the encoder has
features. System identification is a ridge regression to one-hot names, over all systems together.

A forecast depends most on local information: what a patch holds, and how it will change. So further regressions go from
single tokens to the change of their own patch's mean over the next h frames, to the values of their own patch in the
newest frame (h = 0), and to its values h frames later. Their reference is as many principal components of that patch
in the four frames as a token has components.

Fields are averaged over blocks of points to the grid of the model.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from rdjepa.checks import Few, Seed, check
from rdjepa.data import manifest
from rdjepa.data.acquire import Acquirer
from rdjepa.data.fields import channels_first
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import ArgumentError
from rdjepa.evaluation.ridge import fit_cross_validated, r_squared
from rdjepa.models.encoder import Encoder
from rdjepa.models.rdjepa import RDJEPA, build
from rdjepa.progress import Progress
from rdjepa.systems import HELD_OUT, SOURCES, get

REGIMES = ("id", "coeff-ood")
FEATURES = ("pretrained", "random", "pca")
IDENTIFICATION = "system"
LEADS = (1, 5)  # lead times h of the changes, in frames
PATCH_LEADS = (0, 1, 5)  # those of a patch's values
COARSE = 4  # points per side of the blocks over which raw fields are averaged before their principal components


@dataclass(frozen=True)
class ProbeConfig:
    """Data and seed of a probe.

    Attributes:
        systems: names; those held out of pretraining may be among them.
        train: number of pool trajectories per system that the probes are fitted on.
        test: number of test trajectories per system and regime.
        windows: number of windows per trajectory, evenly spaced.
        patches: number of patches per window whose changes are predicted.
        seed: of the random encoder and of the choice of patches.
    """

    systems: tuple[str, ...] = SOURCES + HELD_OUT
    train: Few = 60
    test: Few = 20
    windows: Few = 4
    patches: Few = 64
    seed: Seed = 0

    def __post_init__(self) -> None:
        """Check the numbers; a system that is named twice would be counted twice."""
        check(self)
        if len(set(self.systems)) < len(self.systems):
            raise ArgumentError(f"expected each system once, got {', '.join(self.systems)}; name each once")
        if self.test < 2:
            raise ArgumentError("expected at least two test trajectories, which R^2 compares, got 1; raise test")


@dataclass(frozen=True)
class ProbeRow:
    """One result.

    Attributes:
        system: name of the system; "all" for system identification.
        target: a coefficient, "change h=1" or "change h=5", "patch h=0" to "patch h=5", or "system" for identification.
        regime: of the test trajectories.
        features: "pretrained", "random" or "pca".
        value: R^2 of a coefficient, of a change (mean over components) or of a patch's values (all of them together);
            accuracy for system identification.
    """

    system: str
    target: str
    regime: str
    features: str
    value: float


@dataclass(frozen=True)
class Part:
    """Windows of the trajectories of one system.

    Attributes:
        features: (n, p) by kind.
        groups: (n,) trajectory of each window.
        coefficients: (n, q) coefficients of that trajectory.
        tokens: (n m, p) tokens of the m drawn patches of each window, by kind.
        local: target -> (n m, q) values in standardized units: the change of a patch's C means over the next h frames,
            and all its values h frames later.
    """

    features: dict[str, np.ndarray]
    groups: np.ndarray
    coefficients: np.ndarray
    tokens: dict[str, np.ndarray]
    local: dict[str, np.ndarray]

    def per_trajectory(self, values: np.ndarray) -> np.ndarray:
        """Return the means over the windows of each trajectory: (n, ...) to (trajectories, ...)."""
        return np.stack([values[self.groups == group].mean(axis=0) for group in np.unique(self.groups)])


def probe(
    model: RDJEPA,
    data: Path | str,
    config: ProbeConfig = ProbeConfig(),
    device: torch.device | None = None,
    progress: Progress | None = None,
) -> list[ProbeRow]:
    """Probe the encoder of a pretrained model.

    Args:
        model: its encoder is only read.
        data: dataset directory; missing trajectories are simulated and stored there, and listed in its manifest.
        config: data and seed.
        device: device of the encoders; the CPU when None.
        progress: called with the number of systems done, their total and the name of the latest.
    """
    device = device or torch.device("cpu")
    manifest.claim(data, map(get, config.systems))
    acquirer = Acquirer(Path(data))
    lacking = lacks(data, config)
    encoders = {"pretrained": model.encoder, "random": build(model.config, seed=config.seed).encoder}
    for encoder in encoders.values():
        encoder.to(device).eval()
    parts: dict[tuple[str, str], Part] = {}
    names: dict[str, list[str]] = {}
    for number, system in enumerate(config.systems):

        def get_all(split: str, regime: str, count: int, system: str = system) -> list[Trajectory]:
            keys = [Key(system, split, regime, i) for i in range(count)]
            return [acquirer.get(key).coarsened(model.config.grid) for key in keys]

        learning = get_all("pool", "id", config.train)
        normalizer = Normalizer.fit([trajectory.fields for trajectory in learning])
        names[system] = [n for n in learning[0].coefficients if len({t.coefficients[n] for t in learning}) > 1]
        parts[system, "train"] = _part(learning, names[system], encoders, normalizer, config, device)
        for regime in _regimes(system):
            parts[system, regime] = _part(
                get_all("test", regime, config.test), names[system], encoders, normalizer, config, device
            )
        if progress:
            progress(number + 1, len(config.systems), system)
    if lacking:
        manifest.write(data)
    _add_principal_components(parts)
    rows = _coefficients(parts, names)
    for system in config.systems:
        rows += _local(system, {split: part for (name, split), part in parts.items() if name == system})
    return rows + _identification(parts, config.systems)


def lacks(data: Path | str, config: ProbeConfig) -> list[Key]:
    """Return the keys of the trajectories that a probe simulates, since a data set has no file of them."""
    keys = [Key(name, "pool", "id", i) for name in config.systems for i in range(config.train)]
    keys += [
        Key(name, "test", regime, i) for name in config.systems for regime in _regimes(name) for i in range(config.test)
    ]
    return Acquirer(Path(data)).lacks(keys)


def _regimes(system: str) -> list[str]:
    """Return the regimes whose test trajectories are probed."""
    return [regime for regime in REGIMES if regime in get(system).regimes]


def _part(
    trajectories: Sequence[Trajectory],
    names: Sequence[str],
    encoders: dict[str, Encoder],
    normalizer: Normalizer,
    config: ProbeConfig,
    device: torch.device,
) -> Part:
    """Cut windows and encode them with every encoder; under "raw", take coarse fields and patches themselves."""
    found: dict[str, list[np.ndarray]] = {name: [] for name in (*encoders, "raw")}
    tokens: dict[str, list[np.ndarray]] = {name: [] for name in (*encoders, "raw")}
    local: dict[str, list[np.ndarray]] = defaultdict(list)
    cut = next(iter(encoders.values())).tokenizer.patches
    rng = np.random.default_rng(config.seed)
    for trajectory in trajectories:
        standard = torch.from_numpy(channels_first(normalizer.standardize(trajectory.fields)))
        starts = FORECASTING.spread(len(standard), config.windows)
        context = FORECASTING.stack(standard, starts).context
        patches = cut(context)  # (windows, T, C, S, patch^2)
        drawn = torch.from_numpy(rng.permutation(patches.shape[-2])[: config.patches])
        for name, encoder in encoders.items():
            with torch.no_grad():
                latent = encoder(context.to(device)).float().cpu()
            found[name].append(torch.cat([latent.mean(1), latent.std(1)], dim=-1).numpy())
            tokens[name].append(latent[:, drawn].flatten(0, 1).numpy())
        found["raw"].append(torch.nn.functional.avg_pool2d(context.flatten(1, 2), COARSE).flatten(1).numpy())
        tokens["raw"].append(patches[:, :, :, drawn].permute(0, 3, 1, 2, 4).flatten(0, 1).flatten(1).numpy())
        own = cut(standard)[:, :, drawn].permute(0, 2, 1, 3)  # (frames, m, C, patch^2)
        now = own[FORECASTING.at(starts, 0)]
        for lead in LEADS:
            change = (own[FORECASTING.at(starts, lead)] - now).mean(-1)
            local[f"change h={lead}"].append(change.flatten(0, 1).numpy())
        for lead in PATCH_LEADS:
            local[f"patch h={lead}"].append(own[FORECASTING.at(starts, lead)].flatten(0, 1).flatten(1).numpy())
    values = np.array([[t.coefficients[name] for name in names] for t in trajectories])
    return Part(
        {name: np.concatenate(each) for name, each in found.items()},
        np.repeat(np.arange(len(trajectories)), config.windows),
        np.repeat(values, config.windows, axis=0),
        {name: np.concatenate(each) for name, each in tokens.items()},
        {name: np.concatenate(each) for name, each in local.items()},
    )


def _principal_axes(rows: np.ndarray, count: int) -> np.ndarray:
    """Return the orthonormal directions (p, count) of largest variance of centered rows (n, p).

    They come from the smaller of the two Gram matrices: raw fields have more values p than there are windows n.
    """
    wide = len(rows) < rows.shape[1]
    values, vectors = np.linalg.eigh(rows @ rows.T if wide else rows.T @ rows)
    largest = slice(None, -count - 1, -1)
    if not wide:
        return vectors[:, largest]
    return rows.T @ (vectors[:, largest] / np.sqrt(np.maximum(values[largest], 1e-9)))


def _add_principal_components(parts: dict[tuple[str, str], Part]) -> None:
    """Replace raw fields by their scores on the principal components of all training windows."""
    raw = np.concatenate([part.features["raw"] for (_, split), part in parts.items() if split == "train"])
    mean = raw.mean(axis=0)
    count = min(next(iter(parts.values())).features["pretrained"].shape[1], len(raw) - 1)
    axes = _principal_axes(raw - mean, count)
    for part in parts.values():
        part.features["pca"] = (part.features.pop("raw") - mean) @ axes


def _local(system: str, parts: dict[str, Part]) -> list[ProbeRow]:
    """Return the R^2 of every local target, by regime and features."""
    train = parts["train"]
    raw = train.tokens["raw"]
    groups = np.repeat(train.groups, len(raw) // len(train.groups))
    mean = raw.mean(axis=0)
    axes = _principal_axes(raw - mean, min(train.tokens["pretrained"].shape[1], raw.shape[1]))
    for part in parts.values():
        part.tokens["pca"] = (part.tokens.pop("raw") - mean) @ axes
    rows = []
    for kind in FEATURES:
        ridge = fit_cross_validated(train.tokens[kind], np.concatenate([*train.local.values()], axis=1), groups)
        ends = np.cumsum([values.shape[1] for values in train.local.values()])[:-1]
        for regime in (r for r in REGIMES if r in parts):
            predicted = np.split(ridge.predict(parts[regime].tokens[kind]), ends, axis=1)
            for (target, true), each in zip(parts[regime].local.items(), predicted, strict=True):
                score = _together(each, true) if target.startswith("patch") else r_squared(each, true).mean()
                rows.append(ProbeRow(system, target, regime, kind, float(score)))
    return rows


def _together(predicted: np.ndarray, true: np.ndarray) -> float:
    """Return one R^2 of all targets (n, q) together: each counts by its variance."""
    return 1 - ((predicted - true) ** 2).sum() / ((true - true.mean(axis=0)) ** 2).sum()


def _coefficients(parts: dict[tuple[str, str], Part], names: dict[str, list[str]]) -> list[ProbeRow]:
    """Return the R^2 of every coefficient that varies, by system, regime and features."""
    rows = []
    for system, coefficients in names.items():
        if not coefficients:  # all are fixed
            continue
        train = parts[system, "train"]
        for kind in FEATURES:
            ridge = fit_cross_validated(train.features[kind], train.coefficients, train.groups)
            for regime in (r for r in REGIMES if (system, r) in parts):
                part = parts[system, regime]
                predicted = part.per_trajectory(ridge.predict(part.features[kind]))
                scores = r_squared(predicted, part.per_trajectory(part.coefficients))
                rows += [
                    ProbeRow(system, name, regime, kind, float(score))
                    for name, score in zip(coefficients, scores, strict=True)
                ]
    return rows


def _identification(parts: dict[tuple[str, str], Part], systems: Sequence[str]) -> list[ProbeRow]:
    """Return the share of test trajectories whose system is identified correctly, by regime and features."""
    trains = [parts[system, "train"] for system in systems]
    truth = np.repeat(np.eye(len(systems)), [len(part.groups) for part in trains], axis=0)
    firsts = np.cumsum([0, *(part.groups.max() + 1 for part in trains[:-1])])
    groups = np.concatenate([part.groups + first for part, first in zip(trains, firsts, strict=True)])
    rows = []
    for kind in FEATURES:
        ridge = fit_cross_validated(np.concatenate([part.features[kind] for part in trains]), truth, groups)
        for regime in REGIMES:
            right = [
                part.per_trajectory(ridge.predict(part.features[kind])).argmax(axis=1) == number
                for number, system in enumerate(systems)
                if (part := parts.get((system, regime))) is not None
            ]
            if right:
                rows.append(ProbeRow("all", IDENTIFICATION, regime, kind, float(np.concatenate(right).mean())))
    return rows


def record(rows: Sequence[ProbeRow], config: ProbeConfig, fingerprint: str) -> dict:
    """Return as JSON values the rows, their configuration, and the fingerprint of the probed weights."""
    return {"fingerprint": fingerprint, "config": asdict(config), "rows": [asdict(row) for row in rows]}
