"""The values that the paper prints, transcribed once: one CSV file a study.

Columns: table (its number in the paper), `rdjepa.reporting.summary.DIMENSIONS`, mean and sd. As printed: 100 times the
error; the reductions of Table S13 in percent. The lines of a table are in its order of rows and columns.
"""

from functools import cache
from importlib import resources

import pandas as pd

STUDIES = ("heldout", "source", "boundary", "scratch")


@cache
def published(study: str) -> pd.DataFrame:
    """Table, coordinates, mean and sd (not times 100) of every value that the paper prints for a study.

    Raises:
        ValueError: unknown study.
    """
    if study not in STUDIES:
        raise ValueError(f"expected a study among {', '.join(STUDIES)}, got {study!r}; name one of them")
    with resources.files(__package__).joinpath(f"{study}.csv").open() as file:
        values = pd.read_csv(file, dtype={"table": str, "horizon": str})
    values[["mean", "sd"]] /= 100
    return values


def published_table(study: str, number: str) -> pd.DataFrame:
    """The lines of `published` of one table, named by its number in the paper ("1", "S13")."""
    values = published(study)
    return values[values["table"] == number]
