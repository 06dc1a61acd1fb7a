"""A table of texts, written as Markdown, LaTeX (booktabs) or HTML."""

from dataclasses import dataclass
from importlib import resources
from itertools import groupby

import jinja2
from markupsafe import Markup

from rdjepa.io.markdown import pipe_table

MISSING = "—"
_LATEX = str.maketrans(
    {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "²": "$^2$", "¹": "$^1$", "–": "--", "—": "---", "±": r"$\pm$"}
    | {"×": r"$\times$", "<": "$<$", ">": "$>$", "−": "$-$", "$": r"\$", "{": r"\{", "}": r"\}"}
    | {"^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "\\": r"\textbackslash{}"}
)


@dataclass(frozen=True)
class Text:
    """The text of one entry of a table."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table of formatted texts.

    Attributes:
        caption: sentences above the table.
        labels: headings of the leading columns, which name the rows.
        columns: headings of the other columns, outermost level first; all of equal depth.
        rows: labels of a row and its texts.
    """

    caption: str
    labels: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[tuple[str, ...], tuple[Text, ...]], ...]

    def levels(self) -> list[list[tuple[str, int]]]:
        """Return the headings of each level, with the number of columns: neighbors that are equal so far are one."""
        depth = len(self.columns[0])
        paths = [[column[: level + 1] for column in self.columns] for level in range(depth)]
        return [[(path[-1], len(list(group))) for path, group in groupby(each)] for each in paths]


def markdown(sheet: Sheet) -> str:
    """Return caption and pipe table; the levels of a heading are joined by commas."""
    heads = (*sheet.labels, *(", ".join(column) for column in sheet.columns))
    rows = [(*labels, *(f"**{t.text}**" if t.bold else t.text for t in texts)) for labels, texts in sheet.rows]
    return f"{sheet.caption}\n\n{pipe_table(heads, rows)}\n"


def latex(sheet: Sheet, name: str) -> str:
    """Return a table environment for booktabs; every row has an entry for every column.

    Args:
        sheet: the table.
        name: of its label.
    """
    count = len(sheet.labels)
    lines, levels = [], sheet.levels()
    for level, heads in enumerate(levels, start=1):
        last = level == len(levels)
        cells = list(sheet.labels) if last else [""] * count
        rules, position = [], count + 1
        for head, width in heads:
            cells.append(_latex(head) if last else rf"\multicolumn{{{width}}}{{c}}{{{_latex(head)}}}")
            rules.append(rf"\cmidrule(lr){{{position}-{position + width - 1}}}")
            position += width
        lines.append(" & ".join(cells) + r" \\" + ("" if last else "\n" + "".join(rules)))
    lines.append(r"\midrule")
    for number, (labels, texts) in enumerate(sheet.rows):
        first = number == 0 or labels[0] != sheet.rows[number - 1][0][0]
        if first and number and count > 1:
            lines.append(r"\midrule")
        shown = [_latex(labels[0]) if first or count == 1 else "", *map(_latex, labels[1:])]
        bold = [rf"\textbf{{\boldmath {_latex(t.text)}}}" if t.bold else _latex(t.text) for t in texts]
        lines.append(" & ".join([*shown, *bold]) + r" \\")
    body = "\n".join(lines)
    return (
        f"\\begin{{table}}[htbp]\n\\centering\n\\scriptsize\n\\caption{{{_latex(sheet.caption)}}}\n\\label{{tab:{name}}}\n"
        f"\\begin{{tabular}}{{{'l' * count}{'c' * len(sheet.columns)}}}\n\\toprule\n{body}\n\\bottomrule\n"
        "\\end{tabular}\n\\end{table}\n"
    )


def hypertext(sheet: Sheet) -> Markup:
    """Return a figure element with the caption and a table that scrolls on a narrow screen."""
    return Markup(template("sheet").render(sheet=sheet))


def template(name: str) -> jinja2.Template:
    """Return a template of this package, which escapes what is put into it unless that is markup."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(resources.files(__package__).joinpath(f"{name}.html").read_text(encoding="utf-8"))


def _latex(text: str) -> str:
    return text.translate(_LATEX)
