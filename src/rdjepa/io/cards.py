"""The model card of a pretrained checkpoint, written from the record of its run."""

from collections.abc import Collection, Mapping

LATENT = ("latent_loss", "mean_loss", "persistence_loss", "target_std", "target_rank", "target_cosine")
FIELD = ("held_out_loss", "latent_std", "latent_rank", "latent_cosine")
PAPER = "predictive-latent"  # the paper's objective


def model_card(preset: str, record: Mapping) -> str:
    """Return a Markdown text on what a checkpoint is, what it was trained on, and what its limits are.

    Args:
        preset: name of the model's sizes.
        record: the run's record, as `rdjepa.pretrain` makes it.
    """
    config, diagnostics = record["config"], record["diagnostics"]
    summary, pretrained, without = (record[name] for name in ("summary", "pretrained", "without"))
    paper = record["objective"] == PAPER
    shown, legend = (LATENT, _OF_LATENT) if paper else (FIELD, _OF_FIELD)
    counts = "\n".join(
        f"| {name} | {count} | {record['validation_trajectories'].get(name, 0)} |"
        for name, count in record["trajectories"].items()
    )
    averaging = f"; averaging coefficient {config['ema'][0]} to {config['ema'][1]}" if paper else ""
    drawn = "".join(f" {name} is drawn {times} times as often as another." for name, times in config["weights"])
    left_out = f" Left out of the method: {', '.join(without)}." if without else ""
    measured = "\n".join(f"| {key} | {diagnostics[key]:.4g} |" for key in shown if key in diagnostics)
    software = ", ".join(f"{name} {version}" for name, version in record["software"].items())
    return f"""---
license: mit
library_name: rdjepa
tags: [reaction-diffusion, pde, jepa, scientific-machine-learning]
---

# RD-JEPA {preset}

{_parts(pretrained)} of RD-JEPA, pretrained by {summary}. {_networks(pretrained)} Half precision; float32 once loaded.

## Data

{_origin(record)}

| system | pool trajectories (training) | validation trajectories (diagnostics only) |
|---|---|---|
{counts}

## Training

{record["steps"]} steps of batch {config["batch"]}, seed {config["seed"]}, {config["precision"]}; learning rate
{config["peak"]:g} after {config["warmup"]} warm-up steps, on a cosine to {config["minimum"]:g}; weight decay
{config["weight_decay"]:g}{averaging}.{drawn}{left_out}{_before(record)}

Made with {software}. Curves: `curves.png`, from `metrics.jsonl`.

## Diagnostics at the end, on validation trajectories

| quantity | value |
|---|---|
{measured}

{legend}

## Limits

Two components, {record["grid"]} x {record["grid"]} points (finer frames are averaged over blocks), four frames in, up
to eight frames ahead, fields standardized per system, those of a family of random equations per trajectory.
"""


_OF_LATENT = """\
`latent_loss` is the pretraining loss; `mean_loss` and `persistence_loss` are the same loss for predicting the mean
target of each position and the newest frame's own target. A collapsed model has `target_std` near 0 and
`target_cosine` near 1."""

_OF_FIELD = """\
`held_out_loss`, where anything is trained, is the pretraining loss; the other three say how much the encoder's tokens
of complete contexts differ across samples. A collapsed encoder has `latent_std` near 0 and `latent_cosine` near 1."""


def _origin(record: Mapping) -> str:
    """Say where the trajectories of all runs are from, as a paragraph."""
    recorded = record.get("recorded", [])
    simulated = [name for name in record["systems"] if name not in recorded]
    together = f"{', '.join(simulated)} (all runs together)" if "start" in record else ", ".join(simulated)
    systems = together if "start" in record or recorded else "these systems"
    said = f"""\
Simulated by this package: only in-distribution pool trajectories of {systems}, no test trajectory. The key and
checksum of every trajectory, and the field statistics, are in `data.json`; the same keys make the same trajectories."""
    if not recorded:
        return said
    other = f"""\
Not simulated by this package but recorded: {", ".join(recorded)}. Nothing is known here of their equations, so they may
be what a study holds out. The checksum of every trajectory, and the field statistics, are in `data.json`."""
    return f"{said}\n\n{other}" if simulated else other


def _parts(pretrained: Collection[str]) -> str:
    """Name the pretrained networks of a checkpoint; encoder and predictor, random ones, where there are none."""
    *first, last = pretrained or ("encoder", "predictor")
    return f"{', '.join(first)} and {last}".capitalize() if first else last.capitalize()


def runs(record: Mapping) -> list[Mapping]:
    """Return the record of a run and those of the runs that it went on from, the last one first."""
    return [record, *(runs(record["start"]) if "start" in record else [])]


def _before(record: Mapping) -> str:
    """Say what the run went on from, and that run again, as a paragraph of its own."""
    said = []
    for start in runs(record)[1:]:
        counts = ", ".join(f"{count} of {name}" for name, count in start["trajectories"].items())
        said.append(
            f"{start['fingerprint'][:12]}, {start['steps']} steps of batch {start['config']['batch']} on pool "
            f"trajectories {counts}"
        )
    if not said:
        return ""
    return f"""

It went on from the model {"; that one from ".join(said)}. The record of each run is under `start` in that of the next,
in `config.json`; curves of the run before, where it had any, are in `start-metrics.jsonl` and `start-curves.png`."""


def _networks(pretrained: Collection[str]) -> str:
    """Say which networks of a checkpoint are fresh."""
    fresh = [name for name in ("encoder", "predictor") if name not in pretrained]
    said = [f"The {' and the '.join(fresh)} {'have' if len(fresh) > 1 else 'has'} random weights."] if fresh else []
    if "decoder" in pretrained:
        said.append(
            "The decoder is part of it, and `rdjepa.adapt` goes on with it unless it is asked for a fresh one, as in "
            'the paper (`decoder="fresh"`).'
        )
    else:
        said.append("The decoder is not part of it: `rdjepa.adapt` starts a fresh one for every new system.")
    return " ".join(said)
