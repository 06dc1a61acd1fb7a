"""The report of a study as one self-contained HTML page."""

import base64
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rdjepa.study import registry
from rdjepa.study.report import figures, runs, sheet
from rdjepa.study.report.contents import Contents
from rdjepa.study.report.labels import label
from rdjepa.study.report.material import Material
from rdjepa.viz.figures import animation


def page(content: Contents, material: Material, study: str) -> str:
    """Return the HTML of the page, with images embedded as data URLs.

    Args:
        content: tables and findings.
        material: results that the figures are drawn from.
        study: name of the study.
    """
    with TemporaryDirectory() as folder:
        drawn = [
            {"name": each.name, "title": each.title, "caption": each.caption, "data": _data(path)}
            for each, (path,) in figures.draw(material, Path(folder), study, kinds=("png",))
        ]
        movies = _animations(material, Path(folder))
    return sheet.template("report").render(
        title=registry.get(study).title,
        content=content,
        sections=[(each, [sheet.hypertext(one) for one in each.sheets]) for each in content.sections],
        figures=drawn,
        movies=movies,
        costs=sheet.hypertext(runs.costs(content.records)),
        ran=sheet.hypertext(content.ran.sheets[0]),
        facts=runs.facts(content.records),
        cells=content.ran.lines.to_dict("records"),
    )


def _animations(material: Material, folder: Path) -> list[dict[str, str]]:
    """Animate, for each system, reference and forecast of the report's subject from the newest frame to h = 5."""
    found, subject = [], material.subject
    for system in material.systems:
        example = material.find(system, material.budgets[0], subject)
        if example is not None:
            frames, forecast = (
                np.concatenate([example["newest"][None], example[key]]) for key in ("reference", "forecast")
            )
            title = f"{label('system', system)}, K = {material.budgets[0]}, u from the newest frame to h = 5"
            shown = {label("forecaster", subject): forecast}
            path = animation(frames, shown, folder / f"{system}.gif", title=title, per_second=2)
            found.append({"title": title, "data": _data(path)})
    return found


def _data(path: Path) -> str:
    kind = path.suffix.removeprefix(".")
    return f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
