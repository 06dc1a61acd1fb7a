"""The contents of a study's report: tables and findings, independent of the format."""

from dataclasses import dataclass

import pandas as pd

from rdjepa.evaluation.metrics import DEFAULT_METRICS
from rdjepa.study import registry
from rdjepa.study.report import comparison, reductions, runs, summary, tables
from rdjepa.study.report.labels import focus, label
from rdjepa.study.report.layouts import Layout, further_tables, paper_tables
from rdjepa.study.report.sheet import Sheet


@dataclass(frozen=True)
class Section:
    """A table, the published values and the differences from them.

    Attributes:
        name: stem of its files.
        title: heading in the report.
        sheets: the table, the published values, the differences.
        lines: rows of the CSV file: every value with the ids of its runs.
        alike: whether the sheets are of one rank, instead of a table and what was published.
    """

    name: str
    title: str
    sheets: tuple[Sheet, ...]
    lines: pd.DataFrame
    alike: bool = False


@dataclass(frozen=True)
class Contents:
    """The tables of a study.

    Attributes:
        rows: trajectory errors, checked.
        records: of the runs in the rows, flat.
        values: run-level values.
        source: profile, updates, test trajectories and seeds, as a sentence without a full stop.
        findings: sentences that say in how many settings the forecaster that the report is about is lowest.
        sections: reductions against a control, the paper's tables, those beyond it, paired differences.
        ran: on which device, in which precision and by which version of the code the cells ran.
    """

    rows: pd.DataFrame
    records: pd.DataFrame
    values: pd.DataFrame
    source: str
    findings: tuple[str, ...]
    sections: tuple[Section, ...]
    ran: Section


def contents(rows: pd.DataFrame, records: pd.DataFrame, study: str) -> Contents:
    """Aggregate the rows of one study and profile into the tables of its report.

    Raises:
        StudyError: unknown study.
        ArgumentError: rows that do not belong together (see `summary.prepare`), or a run without a record.
    """
    plan = registry.get(study)
    rows = summary.prepare(rows)
    records = runs.of_rows(rows, records)
    values = summary.run_values(rows)
    source = runs.sentence(rows, records)
    subject = focus(rows["forecaster"].unique(), plan.subject)
    sections, findings = _reductions(rows, plan.control, source), []
    for layout in [*paper_tables(plan), *further_tables(plan, values)]:
        found, paper = tables.results(values, layout), tables.published_results(layout)
        of_paper = records["forecaster"].isin({place[tables.FORECASTER] for place in paper})
        unlike = runs.unlike_paper(rows, records[of_paper])
        sheets = _sheets(layout, found, paper, source, unlike)
        sections.append(Section(layout.name, layout.title, sheets, tables.lines(layout, found, comparable=not unlike)))
        if not layout.name.startswith("skill"):
            findings.append(tables.finding(layout.title, found, paper, subject))
    sections += _paired(rows, subject, source)
    findings += uneven(rows)
    lines = runs.where(records)
    ran = Section("devices", "Devices", (runs.where_sheet(lines),), lines)
    return Contents(rows, records, values, source, tuple(findings), tuple(sections), ran)


def uneven(rows: pd.DataFrame) -> list[str]:
    """Return a sentence that names the settings whose means are over different support selections; none without one."""
    found = [f"{label('system', system)} with K = {k}" for system, k in summary.uneven(rows)]
    if not found:
        return []
    return [
        f"Means of tables and figures are over the support selections that each forecaster has, and not all have the "
        f"same at {', '.join(found)}; paired differences are over those that both have."
    ]


def _sheets(layout: Layout, found: dict, paper: dict, source: str, unlike: str) -> tuple[Sheet, ...]:
    """Return the table, the published values, and the differences from them if the two can be compared."""
    few = any(0 < len(result.seeds.split()) < layout.selections for result in found.values())
    counts = f" [n]: from n of {layout.selections} selections." if few else ""
    caption = f"{layout.caption}. {source}.{counts}"
    sheets = [tables.sheet(layout, found, caption)]
    if paper:
        apart = f"; {unlike}, so no difference is formed" if unlike else ""
        sheets.append(tables.sheet(layout, paper, f"{layout.title} as published{apart}."))
    if paper and not unlike:
        differences = tables.differences(found, paper, layout.selections)
        sheets.append(
            tables.sheet(layout, differences, f"{layout.title}, ours minus published, times 100.", signed=True)
        )
    return tuple(sheets)


def _paired(rows: pd.DataFrame, subject: str, source: str) -> list[Section]:
    """Return a section of the paired differences of one forecaster from every other; none without another."""
    found = comparison.against_all(rows, subject, DEFAULT_METRICS)
    if found.empty:
        return []
    name = label("forecaster", subject)
    sheets = tuple(
        comparison.comparison_sheet(
            found,
            metric,
            f"{label('metric', metric)} of {name} minus that of another, times 100, averaged over h = 1..5, with 95 % "
            "bootstrap intervals over support selections and test trajectories, bold where they lie below zero; "
            f"share of matched forecasts in which {name} is lower. {source}.",
        )
        for metric in DEFAULT_METRICS
    )
    return [Section("paired", "Paired differences", sheets, found, alike=True)]


def _reductions(rows: pd.DataFrame, control: str, source: str) -> list[Section]:
    """Return sections of the reductions against a study's control, and of the spread between pretraining seeds."""
    found = reductions.against_control(rows, control, DEFAULT_METRICS) if control else pd.DataFrame()
    if found.empty:
        return []
    sheets = tuple(
        reductions.sheet(
            found,
            metric,
            f"Reduction of the {label('metric', metric)} error against {label('forecaster', control)}, in percent, "
            "averaged over h = 1..5, paired by selection, with 95 % bootstrap intervals over support selections and "
            f"test trajectories, bold where they lie above zero. {source}.",
        )
        for metric in DEFAULT_METRICS
    )
    sections = [Section("reductions", "Reduction of the error by every change", sheets, found, alike=True)]
    spread = reductions.spread(rows, DEFAULT_METRICS[0])
    if not spread.empty:
        caption = (
            f"{label('metric', DEFAULT_METRICS[0])} of the reference, times 100, averaged over h = 1..5; sample "
            "deviation between pretraining seeds, of means over supports, and between supports, within a pretraining. "
            f"{source}."
        )
        sheets = (reductions.spread_sheet(spread, caption),)
        sections.append(Section("spread", "Spread between pretrainings", sheets, spread))
    return sections
