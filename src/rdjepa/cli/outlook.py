"""What commands say about how far a forecast can be trusted: its calibration, its novelty, the growth of its error."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rdjepa.cli.console import console, error_text, say, table
from rdjepa.errors import Note, warn

if TYPE_CHECKING:
    import numpy as np

    from rdjepa.adaptation.forecaster import Forecaster
    from rdjepa.evaluation.evaluate import Row

ENOUGH = 9  # trajectories: fewer, as blocks of one each, could not give an interval of 0.9
SIMPLE = {"persistence", "equation", "autoregression", "linear"}  # of extrapolation `say_better_base` speaks
CLEARLY = 0.95  # of a forecaster's error: no more than this is clearly less
SHOWN = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)  # frames of a rollout in the table


def say_calibration(forecaster: "Forecaster") -> None:
    """Print what a forecaster was calibrated on, if it was."""
    calibration, record = forecaster.calibration, forecaster.record
    if calibration is None:
        return
    several = "trajectory" if calibration.trajectories == 1 else "trajectories"
    kept = f"{calibration.trajectories} {several}"
    if record["held_out"]:
        frames = record["held_out"].get("frames")
        kept = f"the last {frames} frames" if frames else f"the last {kept}"
        kept += ", which were not adapted to"
    few = "; new ones may be covered less, as these are few" if calibration.trajectories < ENOUGH else ""
    if calibration.trajectories == 1:
        few = "; of one trajectory, they may be far too narrow or too wide for others"
    say(f"calibrated on {kept}: {calibration.blocks} blocks of windows, intervals up to {calibration.highest:.3f}{few}")


def say_width(forecaster: "Forecaster", lower: "np.ndarray", upper: "np.ndarray") -> None:
    """Print how wide an interval is, compared with the range of what was adapted to, and whether that says anything.

    A component that did not vary there has no range to compare with and is left out.

    Args:
        forecaster: that made it.
        lower: (N, H, W, C).
        upper: the same.
    """
    ranges = zip(*forecaster.record["range"], strict=True)
    widths = {place: high - low for place, (low, high) in enumerate(ranges) if high > low}
    if not widths:
        return
    wide = [
        sum(frame[place] / width for place, width in widths.items()) / len(widths)
        for frame in (upper - lower).mean((1, 2)).tolist()
    ]
    empty = "; as wide as the range itself they say nothing" if max(wide) >= 1 else ""
    frames = f"{wide[0]:.2g} in the first frame, {wide[-1]:.2g} in the last" if len(wide) > 1 else f"{wide[0]:.2g}"
    say(f"mean width of the intervals, of the range of what was adapted to: {frames}{empty}")


def say_retention(forecaster: "Forecaster") -> None:
    """Print what adaptation decided about the weights before it, if it was left to decide."""
    record = forecaster.record
    if "unadapted" not in record:
        return
    done = f"{len(forecaster.losses)} updates"
    if record.get("encoder") == "tuned":
        done += ", encoder included"
    if (others := record.get("augmented", 0) - 1) > 0:
        done += f", {others} turned or mirrored image{'s' * (others > 1)} of each trajectory too"
    if record["retained"]:
        done += f", then {100 * record['retained']:.0f} % of the pretrained weights mixed in"
    if "combined" in record:
        of_frames = [100 * sum(each) / len(each) for each in record["combined"]]
        shares = f"at most {max(of_frames):.0f} % of a frame from the network, alone or blended with the equation"
        if max(of_frames) < 0.5:
            shares = "next to nothing of a frame from the network, so that updates change hardly any forecast"
        done += "; " + (shares if min(of_frames) < 100 else "blended with the equation of each context")
    errors = f"{record['unadapted']:.3f}"
    if "together" in record:
        errors += f", combined with simple forecasts {record['together']:.3f}"
    say(f"standardized error on the data before any update: {errors}; {done}")


def say_measured(forecaster: "Forecaster") -> None:
    """Print what the second component is where one was measured."""
    if forecaster.record.get("measured") == 1:
        say(
            "one component was measured: errors are its own; the second of a forecast is the same field a frame earlier"
        )


def say_spread(rows: Iterable["Row"], metric: str) -> None:
    """Print how far the mean errors of single trajectories lie apart, and which one has the largest.

    Args:
        rows: of one forecaster.
        metric: which of them to take.
    """
    found: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        if row.metric == metric:
            found.setdefault((row.regime, row.trajectory), []).append(row.value)
    means = {place: sum(values) / len(values) for place, values in found.items()}
    regime, worst = max(means, key=means.__getitem__)
    few, many = error_text(min(means.values())), error_text(max(means.values()))
    if len(means) == 1:
        say("means over the windows of one trajectory")
    else:
        say(
            f"means over {len(means)} trajectories; on single ones the forecaster's mean {metric} is {few} to {many}, "
            f"largest on trajectory {worst}{f' ({regime})' if regime else ''}"
        )


def say_choice(forecaster: "Forecaster") -> None:
    """Print whether the network is combined with simple forecasts, if data that were not adapted to decided."""
    if tried := forecaster.record.get("on_others"):
        left = "network alone" if forecaster.base == "none" else "combination"
        same = "frames" in forecaster.record.get("held_out", {})  # of the only recording
        first = forecaster.record.get("withheld")
        where = (
            f"the last trajectory, which the first {first} updates did not see" if first else "data that were held out"
        )
        say(
            f"standardized error on {where}: network alone {tried['network']:.3f}, combined with "
            f"simple forecasts {tried['combined']:.3f}; the {left} forecasts"
            + "; they are of the same recording, and on others the choice may be another"
            * same
        )


def say_better_base(forecaster: "Forecaster", error: float, extrapolation: float) -> None:
    """Print what else the network could be combined with where continuing the last change has less error than it.

    Args:
        forecaster: with a pretrained network, or nothing is printed.
        error: of its network or combination.
        extrapolation: error of continuing the last change, in the same metric.
    """
    record = forecaster.record
    if not record.get("fingerprint") or extrapolation >= error or forecaster.base == "linear":
        return
    combinable = forecaster.base == "none" and record.get("decoder") == "pretrained" and "on_others" not in record
    other = "--base auto" if combinable and forecaster.losses else "updates" if combinable else "--base linear"
    say(f"continuing the last change is better here; adapt again with {other}")


def say_simpler(errors: Mapping[str, float], own: str) -> None:
    """Print which rule or fit has clearly less error than a forecaster, and how to have that alone.

    Args:
        errors: name -> error, of the forecaster and what it was compared with.
        own: name of the forecaster.
    """
    simple = {name: errors[name] for name in errors.keys() & SIMPLE - {own}}
    best = min(simple, key=simple.__getitem__, default=own)
    if errors[best] < CLEARLY * errors[own]:
        say(f"{best} has less error here than the forecaster; rdjepa adapt --model {best} makes one of it alone")


def title_of(name: str, forecaster: "Forecaster") -> str:
    """Return the title of a row: a network that is combined with simple forecasts, or anchored, is named for that."""
    from rdjepa.forecasters import registry

    if name == forecaster.model.name and forecaster.base == "anchored":
        return f"{registry.title(name)}, anchored in its context"
    decided = name == forecaster.model.name and forecaster.base == "combined"
    return registry.title("rd-jepa-auto-augmented" if decided else name)


def warn_of_novelty(forecaster: "Forecaster", context: "np.ndarray") -> None:
    """Warn of a context (4, H, W, C) that is unlike the support; of a single recording that is no more than a note."""
    novelty = forecaster.novelty(context)
    if novelty is None or novelty <= 1:
        return
    if forecaster.calibration is None and len(forecaster.record["frames"]) == 1:
        warn(
            f"the context lies {novelty:.2f} times as far from the recording that was adapted to as its own windows "
            "lie apart, which others of the same kind may do as well; adapt with --calibrate and some of these to know",
            Note,
        )
        return
    warn(
        f"expected a context like the trajectories that were adapted to, got one {novelty:.2f} times as far off as any "
        "window known to be of the same kind; errors may be larger, and intervals may miss more, than those measured",
    )


def say_growth(forecaster: "Forecaster", made: "np.ndarray", reference: "np.ndarray", newest: "np.ndarray") -> None:
    """Print the error of a rollout frame by frame where the truth is known, and how long it is worth something.

    Args:
        forecaster: that made it.
        made: (N, H, W, C), the rollout.
        reference: (n, H, W, C), the frames that followed; may be empty.
        newest: (H, W, C), the last given frame.
    """
    import numpy as np

    from rdjepa.evaluation.growth import growth

    if not len(reference):
        say("no frame follows the context, so the error is unknown; start earlier with --start to measure it")
        return
    own = forecaster.record.get("measured")  # of two components the second may be the first, a frame earlier
    mean = np.array(forecaster.normalizer.mean)
    found = growth(made[..., :own], reference[..., :own], newest[..., :own], mean[:own])
    count = len(found.forecast)
    shown = sorted({frame for frame in SHOWN if frame < count} | {count})
    by_frame = table("relative_l2 by frame", "", *map(str, shown))
    for name, errors in found._asdict().items():
        by_frame.add_row(name, *(error_text(errors[frame - 1]) for frame in shown))
    console.print(by_frame)
    if found.skilful == count:
        say(f"better than persistence and climatology at all {count} frames that can be compared")
        return
    place = found.skilful
    rival = "persistence" if not found.forecast[place] < found.persistence[place] else "climatology"
    say(f"no better than {rival} from frame {place + 1} of {count} that can be compared")
