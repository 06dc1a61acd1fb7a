"""Sizes of a study: the paper's, one for a single GPU, one for two processor cores, and two that pretrain."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from rdjepa.adaptation import adapt
from rdjepa.adaptation.adapt import AdaptConfig
from rdjepa.checks import Count, among, checked
from rdjepa.errors import ArgumentError
from rdjepa.models.rdjepa import PRESETS
from rdjepa.study import changes

POOL = 1_000


@dataclass(frozen=True)
class PretrainingSizes:
    """Sizes of the pretrainings of a study that compares them; what is not said is the preset's own.

    Attributes:
        steps: optimizer steps; warm-up keeps its share.
        trajectories: pool trajectories of each source.
        family: pool trajectories of each family of random equations, of which every one is another equation.
        validation: validation trajectories of each system; they are for diagnostics alone and decide no weight.
    """

    steps: int = 5_000
    trajectories: int = 300
    family: int = 1_000
    validation: int = 10


@dataclass(frozen=True)
class Profile:
    """Sizes and settings with which every cell of a study is run.

    Attributes:
        name: as in commands and cells.
        checkpoint: pretrained model, by name or directory.
        preset: sizes and learning rates of RD-JEPA and its two controls.
        external_preset: sizes and learning rates of the other forecasters.
        adapt: optimization; its `steps` are the updates of every cell, its `seed` the model-training seed (S3.3).
        test: number of test trajectories of a system, shared equally among its regimes.
        statistics: number of pool trajectories that a system's field statistics are taken from, at most the whole pool.
        curve: numbers of updates after which the errors are measured on the way, with the last and, where weights are
            averaged, with the averaged weights.
        stride: on the way every `stride`-th window of a test trajectory is evaluated; in the end all are.
        pretraining: sizes of the pretrainings of the study itself; None where its cells start from `checkpoint`.
    """

    name: str
    checkpoint: str
    preset: str
    external_preset: str
    adapt: AdaptConfig
    test: int = 300
    statistics: int = POOL
    curve: tuple[int, ...] = ()
    stride: int = 4
    pretraining: PretrainingSizes | None = None

    def __post_init__(self) -> None:
        """Check the numbers of trajectories and windows."""
        for name in ("test", "statistics", "stride"):
            object.__setattr__(self, name, checked(getattr(self, name), Count, name))

    @property
    def grid(self) -> int:
        """Points per side of the fields of every forecaster; stored frames that are finer are averaged over blocks."""
        return PRESETS[self.preset].grid

    @property
    def observed(self) -> tuple[int, ...]:
        """The numbers of updates of the curve that a run of this length reaches."""
        return tuple(updates for updates in self.curve if updates <= self.adapt.steps)

    def preset_of(self, forecaster: str) -> str:
        """Return the name of the preset of a forecaster or of a change."""
        return self.preset if changes.baseline(forecaster).sized_by_checkpoint else self.external_preset

    def settings(self) -> dict[str, Any]:
        """Return all attributes but the path of the checkpoint, whose content is compared by fingerprint instead.

        Without pretrainings it has no entry of them, as before there were any.
        """
        hidden = ("checkpoint",) if self.pretraining else ("checkpoint", "pretraining")
        return {name: value for name, value in asdict(self).items() if name not in hidden}


# The errors are those of float32 within what another seed changes, and an update takes two fifths of the time.
_NANO = replace(adapt.PROFILES["nano"], precision="bfloat16")
_ABLATION = Profile(
    "ablation",
    "nano",
    "nano",
    "nano",
    replace(_NANO, steps=1_000),
    test=30,
    statistics=300,
    curve=(100, 400, 1_000),
    pretraining=PretrainingSizes(),
)
PROFILES = {
    "paper": Profile("paper", "runs/paper/model", "paper", "paper", adapt.PROFILES["paper"]),
    "small": Profile("small", "runs/small/model", "small", "paper", adapt.PROFILES["small"]),
    "nano": Profile("nano", "nano", "nano", "nano", _NANO, test=30, curve=(100, 400, 1_000, 2_000)),
    "ablation": _ABLATION,
    "ablation-long": replace(
        _ABLATION, name="ablation-long", pretraining=PretrainingSizes(steps=50_000, trajectories=1_000, family=10_000)
    ),
}


def profile(
    name: str,
    checkpoint: str | None = None,
    precision: str | None = None,
    steps: int | None = None,
) -> Profile:
    """Return a profile by name; another checkpoint, precision or number of updates than its own where one is given.

    Raises:
        ArgumentError: unknown name or precision, a negative number of updates, or a checkpoint for a profile that
            pretrains its own.
    """
    among(name, PROFILES, "a profile")
    if checkpoint is not None and PROFILES[name].pretraining:
        raise ArgumentError(
            f"expected no checkpoint with the profile {name}, which pretrains its own, got {checkpoint}; leave it out"
        )
    found = PROFILES[name]
    adapt = replace(
        found.adapt,
        precision=found.adapt.precision if precision is None else precision,
        steps=found.adapt.steps if steps is None else steps,
    )
    return replace(found, checkpoint=checkpoint or found.checkpoint, adapt=adapt)
