"""The values that the paper prints, transcribed: one CSV file per study.

Columns: table (its number in the paper), `rdjepa.study.report.summary.DIMENSIONS`, mean and sd. As printed: 100 times
the error; the reductions of Table S13 in percent. The lines of a table are in its order of rows and columns.
The paper contradicts itself once: RD-JEPA at K = 10 averages to 4.80 (relative L²) and 0.63 (gradient L¹) over the test
regimes of Table S12, but to 4.61 and 0.61 over the systems of Tables S7 and S10; all others agree to rounding.
"""

from functools import cache
from importlib import resources

import pandas as pd

from rdjepa.errors import StudyError
from rdjepa.study import registry


@cache
def published(study: str) -> pd.DataFrame:
    """Return table, coordinates, mean and sd (not times 100) of every value that the paper prints for a study.

    Raises:
        StudyError: unknown study, or one of which the paper prints nothing.
    """
    if registry.get(study).published is None:
        known = ", ".join(name for name in registry.names() if registry.get(name).published is not None)
        raise StudyError(f"expected a study with published values, got {study!r}; known: {known}")
    with resources.files(__package__).joinpath(f"{study}.csv").open() as file:
        values = pd.read_csv(file, dtype={"table": str, "horizon": str})
    values[["mean", "sd"]] /= 100
    return values


def published_table(study: str, number: str) -> pd.DataFrame:
    """Return the rows of `published` of one table, named by its number in the paper ("1", "S13")."""
    values = published(study)
    return values[values["table"] == number]
