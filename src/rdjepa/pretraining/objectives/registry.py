"""The objectives of pretraining by name: title, what the encoder learns from, and location of the class.

Nothing here imports a network, so that settings and commands can ask for names without PyTorch.
"""

from dataclasses import dataclass

from rdjepa.registry import Registry, path_of

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
        return path_of(self.model)


_REGISTERED = Registry(Objective, "an objective", "rdjepa.pretraining.objectives.register")


def register(objective: Objective) -> Objective:
    """Make an objective known by its name, for the time of this process.

    Raises:
        ArgumentError: the name is taken.
    """
    return _REGISTERED.add(objective)


def names() -> list[str]:
    """Return the registered names."""
    return _REGISTERED.names()


def get(name: str) -> Objective:
    """Return a registered objective.

    Raises:
        ArgumentError: no objective has that name; the registered ones are listed.
    """
    return _REGISTERED.get(name)


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
