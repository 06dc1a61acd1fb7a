"""Write the tables, figures and page of a study.

The functions take the results of one study and profile. Rows are trajectory errors: study, profile, system, k,
support_seed, forecaster, regime, metric, horizon, trajectory, value, run. Records have one line per cell: id, updates
and more. Spectra are binned energies: study to forecaster, regime, horizon, wavenumber, error, reference, run.
"""

from pathlib import Path

import pandas as pd

from rdjepa.errors import Note, warn
from rdjepa.io.atomic import write_bytes
from rdjepa.study import registry
from rdjepa.study.report import figures, page, runs, sheet, summary
from rdjepa.study.report.contents import contents, uneven
from rdjepa.study.report.material import Examples, Material
from rdjepa.study.report.supplementary import supplementary_data


def write_tables(rows: pd.DataFrame, records: pd.DataFrame, spectra: pd.DataFrame, out: Path, study: str) -> list[Path]:
    """Write every table of a study as Markdown, LaTeX and CSV, its Supplementary Data and its spectra as CSV.

    Args:
        rows: trajectory errors.
        records: one line per cell.
        spectra: binned energies; may be empty.
        out: directory, made if need be.
        study: name of the study.

    Returns:
        The files; the first is `tables.md`, which has all tables.

    Raises:
        StudyError: unknown study.
        ArgumentError: rows that do not belong together (see `summary.prepare`).
    """
    out = Path(out)
    content = contents(rows, records, study)
    paths, text = (
        [],
        [f"# {_heading(study)}", f"{content.source}.", "\n".join(f"- {f}" for f in content.findings)],
    )
    for section in (*content.sections, content.ran):
        body = "\n".join(map(sheet.markdown, section.sheets)) + f"\nRun ids and exact values: `{section.name}.csv`.\n"
        text.append(f"## {section.title}\n\n{body}")
        latex = "\n".join(sheet.latex(each, f"{section.name}-{i}") for i, each in enumerate(section.sheets, start=1))
        paths += [_write(out / f"{section.name}.md", body), _write(out / f"{section.name}.tex", latex)]
        paths.append(_csv(out / f"{section.name}.csv", section.lines))
    for number, data in supplementary_data(content.values, study).items():
        paths.append(_csv(out / f"supplementary-data-{number}.csv", data))
    if not spectra.empty:
        paths.append(_csv(out / "spectra.csv", spectra))
    return [_write(out / "tables.md", "\n\n".join(text)), *paths]


def write_figures(
    rows: pd.DataFrame, records: pd.DataFrame, spectra: pd.DataFrame, examples: Examples, out: Path, study: str
) -> list[Path]:
    """Write every figure of a study as vector PDF and as PNG.

    Args:
        rows: trajectory errors.
        records: one line per cell.
        spectra: binned energies; without them there is no figure of errors by wavenumber.
        examples: id of a run -> newest (H, W, C), reference and forecast (5, H, W, C), or None.
        out: directory, made if need be.
        study: name of the study.

    Raises:
        StudyError, ArgumentError: as `write_tables`.
    """
    rows = summary.prepare(rows)
    runs.of_rows(rows, records)
    for sentence in uneven(rows):
        warn(sentence, Note)
    material = Material.of(rows, spectra, examples, study)
    out = Path(out)
    return [path for _, paths in figures.draw(material, out, study) for path in paths]


def write_report(
    rows: pd.DataFrame, records: pd.DataFrame, spectra: pd.DataFrame, examples: Examples, out: Path, study: str
) -> Path:
    """Write one self-contained HTML page with findings, figures, animations, tables and provenance.

    Args:
        rows: trajectory errors.
        records: one line per cell.
        spectra: binned energies; may be empty.
        examples: as for `write_figures`.
        out: directory, made if need be.
        study: name of the study.

    Raises:
        StudyError, ArgumentError: as `write_tables`.
    """
    content = contents(rows, records, study)
    out = Path(out)
    material = Material.of(content.rows, spectra, examples, study)
    return _write(out / f"{study}.html", page.page(content, material, study))


def _heading(study: str) -> str:
    """Return the heading of all tables: the paper's studies are known by name, others by title."""
    plan = registry.get(study)
    return f"Tables: {plan.title}" if plan.published is None else f"Tables of the {study} study"


def _write(path: Path, text: str) -> Path:
    return write_bytes(path, text.encode())


def _csv(path: Path, frame: pd.DataFrame) -> Path:
    return _write(path, frame.to_csv(index=False, float_format="%.8g"))
