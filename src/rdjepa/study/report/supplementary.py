"""Supplementary Data 1 to 5: the run-level values behind the paper's tables and figures (S3.4)."""

import pandas as pd

from rdjepa.study.report.labels import registered
from rdjepa.study.report.published import published_table

# number: study, the published table (its study and number) that lists the forecasters, every horizon or the mean
_DATA = {
    1: ("source", ("source", "S6"), True),
    2: ("heldout", ("source", "S6"), True),
    3: ("heldout", ("heldout", "1"), False),
    4: ("scratch", ("scratch", "S14"), False),
    5: ("boundary", ("boundary", "S15"), False),
}


def supplementary_data(values: pd.DataFrame, study: str) -> dict[int, pd.DataFrame]:
    """Return the paper's Supplementary Data by number: run-level errors in physical units, with the id of each run.

    Args:
        values: as `summary.run_values` returns them.
        study: the study; "heldout" has Data 4 too, which compares its RD-JEPA with the control from scratch.
    """
    found = {}
    for number, (owner, (listed, table), every) in _DATA.items():
        if owner != study and (owner, study) != ("scratch", "heldout"):
            continue
        forecasters = published_table(listed, table)["forecaster"].unique().tolist()
        chosen = values[values["forecaster"].isin(forecasters)]
        chosen = chosen if every else chosen[chosen["horizon"] == "mean"]
        chosen = chosen if study == "source" else chosen[chosen["regime"] == "all"]
        columns = ["system", "k", "support_seed", "forecaster", "metric", "regime", "horizon", "value", "run"]
        ranks = {"system": registered("system"), "forecaster": forecasters}
        found[number] = chosen[columns].sort_values(
            columns[:-2], key=lambda column: column.map(ranks[column.name].index) if column.name in ranks else column
        )
    return found
