"""The objectives of pretraining by name: title, what the encoder learns from, and location of the class.

Nothing here imports a network, so that settings and commands can ask for names without PyTorch.
"""

from dataclasses import dataclass

from rdjepa.errors import ArgumentError

DEFAULT = "predictive-latent"  # the paper's; runs and checkpoints that name no objective had it


@dataclass(frozen=True)
class Objective:
    """An objective as settings, records and commands know it.

    Attributes:
        name: its name in settings, records and commands.
        title: its name in tables and lines.
        summary: what pretraining does, as the end of "pretrained by ...".
        model: its `rdjepa.pretraining.objectives.base.ObjectiveModel`, as "module:Class" or as the class itself.
        trained: whether a run makes steps.
        continues: whether it needs a pretrained model to go on from.
    """

    name: str
    title: str
    summary: str
    model: str | type
    trained: bool = True
    continues: bool = False

    @property
    def path(self) -> str:
        """Location of its class, "module:Class"."""
        return self.model if isinstance(self.model, str) else f"{self.model.__module__}:{self.model.__qualname__}"


_REGISTERED: dict[str, Objective] = {}


def register(objective: Objective) -> Objective:
    """Make an objective known by its name, for the time of this process.

    Raises:
        ArgumentError: the name is taken.
    """
    if objective.name in _REGISTERED:
        raise ArgumentError(f"expected a name of its own, got {objective.name!r}, which is taken; give another name")
    _REGISTERED[objective.name] = objective
    return objective


def names() -> list[str]:
    """Return the registered names."""
    return list(_REGISTERED)


def get(name: str) -> Objective:
    """Return a registered objective.

    Raises:
        ArgumentError: no objective has that name; the registered ones are listed.
    """
    if name not in _REGISTERED:
        raise ArgumentError(
            f"expected an objective among {', '.join(names())}, got {name!r}; "
            "name one of them, or register it with rdjepa.pretraining.objectives.register"
        )
    return _REGISTERED[name]


_HERE = "rdjepa.pretraining.objectives"
for _entry in (
    Objective(
        DEFAULT,
        "Predictive latent",
        "predicting future states in latent space",
        f"{_HERE}.predictive_latent:PredictiveLatent",
    ),
    Objective(
        "field-forecast",
        "Direct forecast of fields",
        "forecasting the fields of later frames",
        f"{_HERE}.field_forecast:FieldForecast",
    ),
    Objective(
        "masked-fields",
        "Masked reconstruction of fields",
        "reconstructing hidden patches of the given frames",
        f"{_HERE}.masked_fields:MaskedFields",
    ),
    Objective(
        "variance-covariance",
        "Variance-covariance",
        "making two windows of a trajectory agree in decorrelated features (VICReg)",
        f"{_HERE}.variance_covariance:VarianceCovariance",
    ),
    Objective(
        "random",
        "Random weights",
        "nothing: its weights are the random ones of its seed",
        f"{_HERE}.random_weights:RandomWeights",
        trained=False,
    ),
    Objective(
        "decoder",
        "Decoder alone",
        "forecasting fields with the decoder alone",
        f"{_HERE}.decoder_alone:DecoderAlone",
        continues=True,
    ),
    Objective(
        "adaptation",
        "Adaptation to all systems",
        "forecasting fields with predictor and decoder",
        f"{_HERE}.adaptation:Adaptation",
        continues=True,
    ),
):
    register(_entry)
