"""Optimization settings of pretraining and the three profiles (S2.5, Table S4)."""

from dataclasses import dataclass, field, replace
from typing import Any

from rdjepa.checks import BelowOne, Count, Few, NotNegative, Number, Precision, Rate, Seed, check
from rdjepa.errors import ArgumentError
from rdjepa.pretraining.objectives import registry
from rdjepa.pretraining.targets import TargetConfig


@dataclass(frozen=True)
class PretrainConfig:
    """Optimization of pretraining; the defaults are the paper's (Table S4).

    Attributes:
        steps: optimizer steps of the whole run; the schedules end with it.
        batch: samples per step.
        peak: learning rate after warm-up.
        minimum: learning rate at the end.
        warmup: steps of linear warm-up.
        weight_decay: of AdamW, on every parameter.
        betas: of AdamW.
        clip: global norm that gradients are clipped to.
        ema: averaging coefficient of the target encoder, first and last; the predictive latent objective alone has one.
        seed: seed of the weights and of the sequence of batches.
        precision: "float32", or "bfloat16" for autocast (weights, optimizer and spectral layers stay float32).
        save_every: steps between saved states.
        log_every: steps between lines of metrics.jsonl.
        diagnose_every: steps between diagnostics on validation trajectories.
        targets: distributions of regions, offsets, queries and masks; other objectives use the largest offset alone.
        objective: name of the objective, among `rdjepa.pretraining.objectives.names()`.
        weights: (system, how many times as often as another it is drawn); once each where it is not named.
        strides: those of the windows, in stored frames, drawn equally often: the same trajectories seen less often.
        options: the objective's own settings, a record of its class `options`; its defaults when None.
    """

    steps: Count = 200_000
    batch: Count = 4
    peak: NotNegative = 7e-5
    minimum: NotNegative = 1e-6
    warmup: Number = 5_000
    weight_decay: NotNegative = 0.05
    betas: tuple[BelowOne, BelowOne] = (0.9, 0.95)
    clip: Rate = 1.0
    ema: tuple[BelowOne, BelowOne] = (0.996, 0.99995)
    seed: Seed = 1234
    precision: Precision = "float32"
    save_every: Count = 1_000
    log_every: Count = 50
    diagnose_every: Count = 1_000
    targets: TargetConfig = field(default_factory=TargetConfig)
    objective: str = registry.DEFAULT
    weights: tuple[tuple[str, Few], ...] = ()
    strides: tuple[Count, ...] = (1,)
    options: Any = None

    def __post_init__(self) -> None:
        """Check the values; schedules that cannot do what they are for are mistakes."""
        check(self)
        registry.get(self.objective)
        if not self.strides:
            raise ArgumentError("expected at least one stride of the windows, got none; give 1 for every stored frame")
        names = [name for name, _ in self.weights]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ArgumentError(f"expected one weight of each system, got several of {twice[0]}; name it once")
        if self.ema[0] > self.ema[1]:
            raise ArgumentError(
                f"expected the first averaging coefficient not to be above the last, got {self.ema}; exchange them"
            )
        if self.warmup > self.steps:
            raise ArgumentError(
                f"expected a warm-up within the {self.steps} steps of the run, got one of {self.warmup}; shorten it, "
                "or change steps with rdjepa.pretraining.config.scaled, which keeps its share"
            )
        if self.minimum > self.peak:
            raise ArgumentError(
                f"expected a learning rate that falls from its peak, got a peak of {self.peak} and a minimum of "
                f"{self.minimum}; exchange or change them"
            )


PROFILES = {
    "paper": PretrainConfig(precision="bfloat16"),
    "small": PretrainConfig(precision="bfloat16", peak=3e-4, batch=16, steps=100_000, warmup=2_000),
    "nano": PretrainConfig(
        precision="bfloat16",
        peak=8e-4,
        batch=8,
        steps=37_500,
        warmup=1_200,
        ema=(0.999, 0.9999),
        save_every=500,
        diagnose_every=500,
    ),
}


def scaled(config: PretrainConfig, steps: int) -> PretrainConfig:
    """Return the same profile over another number of steps; warm-up keeps its share, schedules end with the run."""
    warmup = max(1, round(config.warmup * steps / config.steps)) if config.warmup else 0
    return replace(config, steps=steps, warmup=warmup)
