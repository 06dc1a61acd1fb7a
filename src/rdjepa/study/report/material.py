"""What the figures of a study are drawn from: aggregated errors, reductions, spectra and example fields."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rdjepa.evaluation.metrics import DEFAULT_METRICS
from rdjepa.study import registry
from rdjepa.study.report import charts, reductions, summary
from rdjepa.study.report.labels import focus, ordered
from rdjepa.study.report.layouts import axis

Examples = Callable[[str], Mapping[str, np.ndarray] | None]


@dataclass(frozen=True)
class Material:
    """The results that the figures of a study are drawn from.

    Attributes:
        systems: of the rows and of the published tables, in order.
        budgets: values of K of the rows and of the published tables, in order.
        forecasters: those with rows, in order.
        subject: the forecaster that the report is about.
        known: `summary.over_runs` of errors and reductions, by coordinates.
        spectra: binned energies; may be empty.
        examples: id of a run -> its fields, or None.
        few: the forecasters of figures in which many would hide each other: all, or in a study with a control the
            subject and the control.
        reductions: `reductions.against_control` of relative L2, with each `support_seed` alone; empty with no control.
    """

    systems: tuple[str, ...]
    budgets: tuple[int, ...]
    forecasters: tuple[str, ...]
    subject: str
    known: charts.Known
    spectra: pd.DataFrame
    examples: Examples
    few: tuple[str, ...]
    reductions: pd.DataFrame

    @classmethod
    def of(
        cls,
        rows: pd.DataFrame,
        spectra: pd.DataFrame,
        examples: Examples,
        study: str,
    ) -> "Material":
        """Aggregate the results that the figures of a study need.

        Args:
            rows: trajectory errors, as `summary.prepare` returns them.
            spectra: binned energies; may be empty.
            examples: id of a run -> newest, reference and forecast, or None.
            study: name of the study.
        """
        plan, values = registry.get(study), summary.run_values(rows)
        systems = axis(plan, values, "system")
        forecasters = tuple(ordered("forecaster", values["forecaster"]))
        shown = values[values["regime"] == "all"]
        parts = [shown, summary.over_systems(shown, systems)]
        everything = pd.concat(parts, ignore_index=True)
        subject = focus(forecasters, plan.subject)
        others = [name for name in forecasters if name != subject]
        parts = [everything, *(summary.reductions(everything, subject, name) for name in others)]
        known = summary.over_runs(pd.concat(parts, ignore_index=True)).to_dict("index")
        few = tuple(name for name in forecasters if not plan.control or name in (subject, plan.control))
        against = pd.DataFrame()
        if plan.control:
            selections = rows.groupby("support_seed")
            against = pd.concat(
                reductions.against_control(part, plan.control, DEFAULT_METRICS[:1]).assign(support_seed=seed)
                for seed, part in selections
            )
        return cls(systems, axis(plan, values, "k"), forecasters, subject, known, spectra, examples, few, against)

    def find(self, system: str, k: int, forecaster: str) -> Mapping[str, np.ndarray] | None:
        """Return the example fields of the first support selection of a setting that has some, if there is one."""
        result = self.known.get((system, k, forecaster, "relative_l2", "mean", "all"))
        runs = result["runs"].split() if result else []
        return next((fields for run in runs if (fields := self.examples(run)) is not None), None)

    def has(self, system: str, k: int, forecaster: str) -> bool:
        """Return whether a setting has results, with or without example fields."""
        return (system, k, forecaster, "relative_l2", "mean", "all") in self.known
