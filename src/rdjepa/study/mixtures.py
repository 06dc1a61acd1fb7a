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

# Of an identity, what may differ between cells of a forecaster: what the cell is, what is only looked at, and what is
# compared within a narrower scope below.
APART = (
    "version", "cell", "profile", "curve", "data", "role", "pretraining", "rehearsed", "withheld",
)  # fmt: skip


def refuse_mixtures(found: Iterable[CellRecord]) -> None:
    """Refuse cells of one profile that were run with different settings: their means would mean nothing."""
    cells: dict[tuple, CellRecord] = {}
    settings: dict[tuple, tuple[CellRecord, dict[str, Any]]] = {}
    for record in found:
        content = record["identity"]
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
        # those that are trained, the recipe over the cells of a system, all but `APART` over those of a forecaster.
        shared = but_precision(content)
        whole = {name: value for name, value in shared.items() if name not in APART}
        for scope, value in (
            (("protocol",), {name: content[name] for name in ("test", "statistics")}),
            (("updates", record["updates"] > 0), {"updates": record["updates"]}),
            (("data", record["system"]), {"data": content["data"]}),
            (("settings", record["forecaster"]), whole),
            (("decision", record["forecaster"], record["k"] > 1), {"withheld": content.get("withheld")}),
            (("rehearsal", "rehearsed" in content), {"rehearsed": content.get("rehearsed")}),
            (("pretraining", record["system"], record["forecaster"]), {"pretraining": content.get("pretraining")}),
        ):
            other, known = settings.setdefault((record["profile"], *scope), (record, value))
            if known != value:
                cell, before = Cell(**content["cell"]), Cell(**other["identity"]["cell"])
                raise StudyError(
                    f"expected cells of the same {scope[0]} at profile {record['profile']}, got {before} "
                    f"({other['id']}) and {cell} ({record['id']}), which differ in "
                    f"{', '.join(differing(known, value))}; move the cells of one of the two away"
                )


def refuse_other_references(table: pd.DataFrame) -> None:
    """Refuse spectra of cells of one system that were tested on other fields: the energies of their references differ.

    Simulations of one recipe on two kinds of processors may differ in the last bits, by 1e-7 of an energy. A smooth
    field has less than these at its largest wavenumbers, so differences are compared with the energy of all of its
    variation; its mean, which may have most of the energy, counts for itself alone.
    """
    place = ["profile", "system", "regime", "horizon"]
    energies = table.groupby([*place, "wavenumber"], observed=True)["reference"].agg(["min", "max"]).astype("float64")
    varied = energies["max"].where(energies.index.get_level_values("wavenumber") > 0, 0.0)
    whole = varied.groupby(place, observed=True).transform("sum")
    apart = energies["max"] - energies["min"] > SAME * whole.clip(lower=energies["max"])
    if not apart.any():
        return
    profile, system = apart.idxmax()[:2]
    cells = table[(table["profile"] == profile) & (table["system"] == system)]
    total = cells.astype({"reference": "float64"}).groupby("run", observed=True)["reference"].sum()
    raise StudyError(
        f"expected the same test fields for all cells of {system} at profile {profile}, got others for "
        f"{total.idxmin()} than for {total.idxmax()}; compute the cells of one of the two again"
    )
