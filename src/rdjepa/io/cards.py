"""The model card of a pretrained checkpoint, written from the record of its run."""

from collections.abc import Mapping

MEASURED = ("latent_loss", "mean_loss", "persistence_loss", "target_std", "target_rank", "target_cosine")


def model_card(preset: str, record: Mapping) -> str:
    """Return a Markdown text on what a checkpoint is, what it was trained on, and what its limits are.

    Args:
        preset: name of the model's sizes.
        record: the run's record, as `rdjepa.pretrain` makes it.
    """
    config, diagnostics = record["config"], record["diagnostics"]
    counts = "\n".join(
        f"| {name} | {count} | {record['validation_trajectories'].get(name, 0)} |"
        for name, count in record["trajectories"].items()
    )
    measured = "\n".join(f"| {key} | {diagnostics[key]:.4g} |" for key in MEASURED if key in diagnostics)
    software = ", ".join(f"{name} {version}" for name, version in record["software"].items())
    return f"""---
license: mit
library_name: rdjepa
tags: [reaction-diffusion, pde, jepa, scientific-machine-learning]
---

# RD-JEPA {preset}

Encoder and predictor of RD-JEPA, pretrained by predicting future states in latent space. The decoder is not part of
it: `rdjepa.adapt` starts a fresh one for every new system. Half precision; float32 once loaded.

## Data

Simulated by this package, in-distribution pool trajectories of these systems only, no test trajectory. The key and
checksum of every trajectory, and the field statistics, are in `data.json`; the same keys make the same trajectories.

| system | pool trajectories (training) | validation trajectories (diagnostics only) |
|---|---|---|
{counts}

## Training

{record["steps"]} steps of batch {config["batch"]}, seed {config["seed"]}, {config["precision"]}; learning rate
{config["peak"]:g} after {config["warmup"]} warm-up steps, on a cosine to {config["minimum"]:g}; weight decay
{config["weight_decay"]:g}; averaging coefficient {config["ema"][0]} to {config["ema"][1]}.

Made with {software}. Curves: `curves.png`, from `metrics.jsonl`.

## Diagnostics at the end, on validation trajectories

| quantity | value |
|---|---|
{measured}

`latent_loss` is the pretraining loss; `mean_loss` and `persistence_loss` are the same loss for predicting the mean
target of each position and the newest frame's own target. A collapsed model has `target_std` near 0 and
`target_cosine` near 1.

## Limits

Two components, {record["grid"]} x {record["grid"]} points (finer frames are averaged over blocks), four frames in, up
to eight frames ahead, fields standardized per system.
"""
