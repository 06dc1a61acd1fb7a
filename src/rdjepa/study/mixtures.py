"""What the cells of a study have to share, so that their errors can be compared and averaged."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from rdjepa.errors import StudyError
from rdjepa.study.cell import Cell
from rdjepa.study.directory import differing
from rdjepa.study.fingerprints import but_precision
from rdjepa.study.record import CellRecord

SAME = 1e-4  # relative difference of energies that single precision and other processors leave

# Of an identity, what must be the same for all cells of a forecaster.
MADE = (
    "settings", "adapt", "checkpoint", "class", "source", "predictor", "decoder", "retained", "augmented", "base",
    "constants",
)  # fmt: skip


def refuse_mixtures(found: Iterable[CellRecord]) -> None:
    """Refuse cells of one profile that were run with different settings: their means would mean nothing."""
    cells: dict[tuple, CellRecord] = {}
    settings: dict[tuple, tuple[str, Any]] = {}
    for record in found:
        content, run = record["identity"], record["id"]
        name = (record["profile"], *content["cell"].values())
        if name in cells:
            first, second = sorted((cells[name], record), key=lambda each: each["created"])
            raise StudyError(
                f"expected one run of {Cell(**content['cell'])} at {record['profile']}, got cells/{first['id']} of "
                f"{first['created']} and cells/{second['id']} of {second['created']}, which differ in "
                f"{', '.join(differing(first['identity'], second['identity']))}; move one of the two folders away"
            )
        cells[name] = record
        # What must agree depends on the scope: test set and statistics over all cells of a profile, the updates over
        # those that are trained, the recipe over the cells of a system, sizes and weights over those of a forecaster.
        shared = but_precision(content)
        trained = tuple(shared.get(name) for name in MADE)
        for scope, value in (
            (("protocol",), (content["test"], content["statistics"])),
            (("updates", record["updates"] > 0), record["updates"]),
            (("system", record["system"]), content["data"]),
            (("forecaster", record["forecaster"]), trained),
            (("rehearsal", "rehearsed" in content), content.get("rehearsed")),
            (("pretraining", record["system"], record["forecaster"]), content.get("pretraining")),
        ):
            known = settings.setdefault((record["profile"], *scope), (run, value))
            if known[1] != value:
                raise StudyError(
                    f"expected cells of the same settings at profile {record['profile']}, got {known[0]} and {run} "
                    f"of different {scope[0]} settings; move the cells of one of the two away"
                )


def refuse_other_references(table: pd.DataFrame) -> None:
    """Refuse spectra of cells of one system that were tested on other fields: the energies of their references differ.

    Simulations of one recipe on two kinds of processors may differ in the last bits, by 1e-7 of an energy.
    """
    place = ["profile", "system", "regime", "horizon", "wavenumber"]
    energies = table.groupby(place, observed=True)["reference"].agg(["min", "max"])
    apart = energies["max"] - energies["min"] > SAME * energies["max"]
    if not apart.any():
        return
    profile, system = apart.idxmax()[:2]
    cells = table[(table["profile"] == profile) & (table["system"] == system)]
    total = cells.astype({"reference": "float64"}).groupby("run", observed=True)["reference"].sum()
    raise StudyError(
        f"expected the same test fields for all cells of {system} at profile {profile}, got others for "
        f"{total.idxmin()} than for {total.idxmax()}; compute the cells of one of the two again"
    )
