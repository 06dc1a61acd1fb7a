"""A table of texts, written as Markdown, LaTeX (booktabs) or HTML."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

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
    lines = []
    for level in range(len(sheet.columns[0])):
        last = level == len(sheet.columns[0]) - 1
        cells = list(sheet.labels) if last else [""] * count
        rules, position = [], count + 1
        for head, width in _spans([column[: level + 1] for column in sheet.columns]):
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


def hypertext(sheet: Sheet) -> str:
    """Return a figure element with the caption and a table that scrolls on a narrow screen."""
    count = len(sheet.labels)
    depth = len(sheet.columns[0])
    head = ""
    for level in range(depth):
        cells = [f'<th rowspan="{depth}">{html.escape(label)}</th>' for label in sheet.labels] if level == 0 else []
        for text, width in _spans([column[: level + 1] for column in sheet.columns]):
            cells.append(f'<th colspan="{width}">{html.escape(text)}</th>')
        head += f"<tr>{''.join(cells)}</tr>"
    body = ""
    for number, (labels, texts) in enumerate(sheet.rows):
        first = number == 0 or labels[0] != sheet.rows[number - 1][0][0]
        names = [html.escape(labels[0]) if first or count == 1 else "", *map(html.escape, labels[1:])]
        cells = [f"<th>{name}</th>" for name in names]
        cells += [
            f"<td><b>{html.escape(t.text)}</b></td>" if t.bold else f"<td>{html.escape(t.text)}</td>" for t in texts
        ]
        body += f"<tr{' class=first' if first and count > 1 else ''}>{''.join(cells)}</tr>\n"
    return (
        f"<figure><figcaption>{html.escape(sheet.caption)}</figcaption><div class=scroll><table><thead>{head}</thead>"
        f"<tbody>{body}</tbody></table></div></figure>"
    )


def _spans(heads: Sequence[tuple[str, ...]]) -> list[tuple[str, int]]:
    """Merge neighboring columns with equal headings up to this level into pairs (heading, number of columns)."""
    return [(path[-1], len(list(group))) for path, group in groupby(heads)]


def _latex(text: str) -> str:
    return text.translate(_LATEX)
