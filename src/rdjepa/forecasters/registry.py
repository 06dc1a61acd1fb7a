"""The forecasters that a study compares, by name: title, line style in figures, and location of the class.

Nothing here imports a network, so that reports can ask for names and titles without PyTorch.
"""

import zlib
from dataclasses import dataclass
from functools import partial

from rdjepa.registry import Registry, path_of

LAST = 1_000  # place of an entry without one
SPARE_COLORS = ("#DDCC77", "#44AA99", "#6699CC", "#AA4466", "#4477AA")
SPARE_MARKERS = (">", "8", "X", "d", "s", "^", "*")
SPARE_LINES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Baseline:
    """A forecaster as studies, tables and figures know it.

    Attributes:
        name: its name in cells, rows and commands.
        title: its name in tables and legends.
        model: its `rdjepa.forecasters.base.ForecastModel`, as "module:Class" or as the class itself.
        short: shorter title for narrow columns and legends; the title by default.
        trained: whether adaptation trains it.
        fitted: whether something else in it is fitted to the support, so that its errors depend on the selection.
        pretrained: whether it starts from a pretrained checkpoint; its class then takes the loaded model.
        keeps_decoder: whether it goes on with the checkpoint's pretrained decoder, not with a fresh one.
        rehearses: whether it is adapted with trajectories beside the support that the checkpoint was pretrained on.
        retains: share of its pretrained weights that is mixed into those after adaptation; "auto" decides this, and
            whether its encoder is tuned, as `rdjepa.adapt` does.
        base: base of its forecast, as for `rdjepa.adapt`.
        augments: whether it learns turned and mirrored images of the support too.
        sized_by_checkpoint: whether it is built at the preset of a study's checkpoint, not at that of the other models.
        place: position in tables, from 1; trained ones come first, equal places in the order of registration.
        color, marker, line: of its line in figures, as matplotlib names them; spare ones by default.
    """

    name: str
    title: str
    model: str | type
    short: str = ""
    trained: bool = True
    fitted: bool = False
    pretrained: bool = False
    keeps_decoder: bool = False
    rehearses: bool = False
    retains: float | str = 0.0
    base: str = "none"
    augments: bool = False
    sized_by_checkpoint: bool = False
    place: int = LAST
    color: str = ""
    marker: str = ""
    line: str = ""

    def __post_init__(self) -> None:
        """Use the title where there is no short one."""
        object.__setattr__(self, "short", self.short or self.title)

    @property
    def path(self) -> str:
        """Location of its class, "module:Class"."""
        return path_of(self.model)


_REGISTERED = Registry(Baseline, "a forecaster", "rdjepa.forecasters.register")


def register(baseline: Baseline) -> Baseline:
    """Make a forecaster known by its name, for the time of this process.

    Raises:
        ArgumentError: the name is taken, or none, see `rdjepa.registry`.
    """
    return _REGISTERED.add(baseline)


def names() -> list[str]:
    """Return the registered names: those of the benchmark, then those that users registered."""
    return _REGISTERED.names()


def get(name: str) -> Baseline:
    """Return a registered forecaster.

    Raises:
        ArgumentError: no forecaster has that name; the registered ones are listed.
    """
    return _REGISTERED.get(name)


def usual() -> list[str]:
    """Return the names that a comparison takes which names none.

    Forecasters that keep a pretrained decoder, rehearse, augment or have a base are not among them: the paper has
    none, and not every checkpoint has what they need.
    """
    plain = (each for each in _REGISTERED if not (each.keeps_decoder or each.rehearses or each.augments))
    return [each.name for each in plain if each.base == "none"]


def title(name: str) -> str:
    """Return the title of a forecaster; for a name that is not registered, the name."""
    known = _REGISTERED.find(name)
    return known.title if known else name


def in_print() -> list[str]:
    """Return the registered names in the order of tables and legends."""
    return [entry.name for entry in sorted(_REGISTERED, key=lambda entry: (not entry.trained, entry.place))]


def line_style(name: str, number: int | None = None) -> dict[str, str]:
    """Return color, marker and line style of a forecaster, also of one that is not registered here.

    Args:
        name: of the forecaster.
        number: which spare style it has where it has none of its own; by default its place among the registered ones,
            or a checksum of its name. As many in a row as there are pairs of spare colors and markers differ.
    """
    known = _REGISTERED.find(name)
    if number is None:  # a checksum, unlike `hash`, gives the same style in every process
        number = names().index(name) if known else zlib.crc32(name.encode())
    color, marker, line = (known.color, known.marker, known.line) if known else ("", "", "")
    return {
        "color": color or SPARE_COLORS[number % len(SPARE_COLORS)],
        "marker": marker or SPARE_MARKERS[number // len(SPARE_COLORS) % len(SPARE_MARKERS)],
        "ls": line or SPARE_LINES[number % len(SPARE_LINES)],
    }


# The forecasters of the benchmark, in the order of cells; `place` is the order of the paper's tables. Colors are those
# of Okabe and Ito and of Tol, which color-blind readers tell apart; markers repeat the distinction.
_HERE = "rdjepa.forecasters"
_sized = partial(Baseline, sized_by_checkpoint=True)
_kept = partial(_sized, model=f"{_HERE}.rd_jepa:DecoderKept", pretrained=True, keeps_decoder=True, place=1)
_scratch = partial(_sized, model=f"{_HERE}.scratch:Scratch", place=3)
_no_latent = partial(_sized, model=f"{_HERE}.no_latent:NoLatent", place=2)
for _entry in (
    Baseline(
        "rd-jepa",
        "RD-JEPA",
        f"{_HERE}.rd_jepa:RDJEPAForecaster",
        pretrained=True,
        sized_by_checkpoint=True,
        place=1,
        color="#0072B2",
        marker="o",
        line="-",
    ),
    _kept(
        "rd-jepa-decoder",
        "RD-JEPA, decoder pretrained",
        short="RD-JEPA + decoder",
        color="#332288",
        marker="*",
        line="-",
    ),
    _scratch("scratch", "Architecture-matched scratch", color="#009E73", marker="^", line="-."),
    _no_latent("no-latent", "No predictive latent", short="No latent", color="#E69F00", marker="s", line="--"),
    _kept(
        "rd-jepa-rehearsal",
        "RD-JEPA, decoder pretrained, sources rehearsed",
        short="RD-JEPA + rehearsal",
        rehearses=True,
        color="#661100",
        marker="h",
        line="-",
    ),
    _scratch(
        "scratch-rehearsal",
        "Architecture-matched scratch, sources beside the support",
        short="Scratch + sources",
        rehearses=True,
        color="#117733",
        marker="p",
        line="-.",
    ),
    _no_latent(
        "no-latent-rehearsal",
        "No predictive latent, sources beside the support",
        short="No latent + sources",
        rehearses=True,
        color="#CC6677",
        marker="d",
        line="--",
    ),
    _kept(
        "rd-jepa-retained",
        "RD-JEPA, weights interpolated",
        short="RD-JEPA, interpolated",
        retains=0.5,
        color="#EE3377",
        marker="4",
        line="-",
    ),
    _kept(
        "rd-jepa-auto",
        "RD-JEPA, as adapt decides, without images",
        short="RD-JEPA, auto, no images",
        retains="auto",
        base="auto",
        color="#AA3377",
        marker="8",
        line="-",
    ),
    _kept(
        "rd-jepa-alone",
        "RD-JEPA, network alone",
        short="RD-JEPA alone",
        retains="auto",
        color="#CC3311",
        marker=">",
        line="-",
    ),
    _kept(
        "rd-jepa-augmented",
        "RD-JEPA, network alone, turned and mirrored images too",
        short="RD-JEPA alone, augmented",
        retains="auto",
        augments=True,
        color="#EE7733",
        marker="H",
        line="--",
    ),
    _kept(
        "rd-jepa-auto-augmented",
        "RD-JEPA, as adapt decides",
        short="RD-JEPA, auto",
        retains="auto",
        base="auto",
        augments=True,
        color="#CC6611",
        marker="$I$",
        line="-",
    ),
    _scratch(
        "scratch-augmented",
        "Architecture-matched scratch, turned and mirrored images too",
        short="Scratch, augmented",
        augments=True,
        color="#228833",
        marker=".",
        line="--",
    ),
    _kept(
        "rd-jepa-anchored",
        "RD-JEPA, network anchored in its context",
        short="RD-JEPA, anchored",
        retains="auto",
        base="anchored",
        color="#004488",
        marker="$A$",
        line="--",
    ),
    _scratch(
        "scratch-anchored",
        "Architecture-matched scratch, anchored in its context",
        short="Scratch, anchored",
        base="anchored",
        color="#44BB99",
        marker="$S$",
        line="--",
    ),
    _kept(
        "rd-jepa-tuned",
        "RD-JEPA, decoder pretrained, encoder tuned",
        model=f"{_HERE}.rd_jepa:EncoderTuned",
        short="RD-JEPA, tuned",
        color="#225522",
        marker="2",
        line="-",
    ),
    _kept(
        "rd-jepa-zero-shot",
        "RD-JEPA, zero-shot",
        model=f"{_HERE}.rd_jepa:ZeroShot",
        trained=False,
        color="#88CCEE",
        marker="+",
        line=":",
    ),
    Baseline("fno", "FNO", f"{_HERE}.fno:FNO", place=4, color="#AA4499", marker="D", line=":"),
    Baseline("lno", "LNO", f"{_HERE}.lno:LNO", place=5, color="#56B4E9", marker="v", line="--"),
    Baseline("riesz-no", "RieszNO", f"{_HERE}.riesz_no:RieszNO", place=7, color="#882255", marker="X", line=":"),
    Baseline("revit", "ReViT", f"{_HERE}.revit:ReViT", place=6, color="#D55E00", marker="P", line="-."),
    Baseline(
        "cnext-unet", "CNextU-Net", f"{_HERE}.cnext_unet:CNextUNet", place=8, color="#999933", marker="<", line="--"
    ),
    Baseline(
        "persistence",
        "Persistence",
        f"{_HERE}.persistence:Persistence",
        trained=False,
        place=9,
        color="#555555",
        marker="|",
        line=":",
    ),
    Baseline(
        "extrapolation",
        "Linear extrapolation",
        f"{_HERE}.persistence:Extrapolation",
        trained=False,
        place=10,
        color="#AAAAAA",
        marker="x",
        line=":",
    ),
    Baseline(
        "linear",
        "Linear in four frames",
        f"{_HERE}.linear:Linear",
        trained=False,
        fitted=True,
        place=11,
        color="#000000",
        marker="_",
        line=":",
    ),
    Baseline(
        "autoregression",
        "Autoregression of the context",
        f"{_HERE}.autoregression:Autoregression",
        short="Autoregression",
        trained=False,
        place=12,
        color="#777777",
        marker="1",
        line="--",
    ),
    Baseline(
        "equation",
        "Equation of the context",
        f"{_HERE}.equation:Equation",
        short="Equation",
        trained=False,
        fitted=True,
        place=13,
        color="#CC79A7",
        marker="3",
        line="-",
    ),
):
    register(_entry)
