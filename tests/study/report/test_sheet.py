import re

import pytest

from rdjepa.study import registry
from rdjepa.study.report import tables
from rdjepa.study.report.layouts import paper_tables
from rdjepa.study.report.sheet import MISSING, Sheet, Text, hypertext, latex, markdown

SHEET = Sheet(
    "100 % of a_b & <c>",
    ("PDE", "K"),
    (("L²", "one"), ("L²", "two"), ("L¹", "one")),
    (
        (("Gray–Scott", "1"), (Text("1.0 ± 0.1", True), Text("2.0"), Text(MISSING))),
        (("Gray–Scott", "5"), (Text("−3.0"), Text("4.0"), Text("5.0"))),
        (("Barkley", "1"), (Text("6.0"), Text("7.0"), Text("8.0"))),
    ),
)


def columns(line):
    """Columns that a row of LaTeX takes, spans counted."""
    return sum(
        int(m.group(1)) if (m := re.search(r"\\multicolumn\{(\d+)\}", c)) else 1 for c in re.split(r"(?<!\\)&", line)
    )


def published_sheets():
    for study in registry.names():
        for layout in paper_tables(registry.get(study)):
            yield layout.name, tables.sheet(layout, tables.published_results(layout), layout.caption)


@pytest.mark.parametrize(("name", "sheet"), [("made-up", SHEET), *published_sheets()])
def test_latex_is_balanced_and_every_row_is_full(name, sheet):
    text = latex(sheet, name)
    assert text.count("{") == text.count("}") and text.count("$") % 2 == 0
    assert re.findall(r"\\begin\{(\w+)\}", text) == re.findall(r"\\end\{(\w+)\}", text)[::-1]
    width = len(sheet.labels) + len(sheet.columns)
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == len(sheet.rows) + len(sheet.columns[0])
    assert {columns(row) for row in rows} == {width}
    found = re.search(r"\\begin\{tabular\}\{(\w+)\}", text)
    assert found and found.group(1) == "l" * len(sheet.labels) + "c" * len(sheet.columns)
    assert text.isascii()


def test_latex_escapes_and_marks():
    text = latex(SHEET, "x")
    assert r"\caption{100 \% of a\_b \& $<$c$>$}" in text
    assert r"\textbf{\boldmath 1.0 $\pm$ 0.1} & 2.0 & ---" in text
    assert r"\multicolumn{2}{c}{L$^2$} & \multicolumn{1}{c}{L$^1$}" in text
    assert r"\cmidrule(lr){3-4}\cmidrule(lr){5-5}" in text
    assert text.count("Gray--Scott") == 1 and text.count(r"\midrule") == 2


def test_titles_of_users_break_no_table():
    sheet = Sheet("caption", ("PDE",), (("u^2 | v",),), ((("{a}~$b$ \\ c",), (Text("1"),)),))
    assert r"\{a\}\textasciitilde{}\$b\$ \textbackslash{} c & 1" in latex(sheet, "x")
    assert r"u\textasciicircum{}2 | v" in latex(sheet, "x")
    assert markdown(sheet).splitlines()[2] == r"| PDE | u^2 \| v |"


def test_markdown_has_a_cell_for_every_column():
    lines = markdown(SHEET).splitlines()
    assert lines[0] == SHEET.caption
    assert {line.count("|") for line in lines[2:]} == {6}
    assert "| Gray–Scott | 1 | **1.0 ± 0.1** | 2.0 | — |" in lines
    assert lines[2] == "| PDE | K | L², one | L², two | L¹, one |"


def test_html_is_escaped_and_spans_its_heads():
    text = hypertext(SHEET).replace("\n", "")
    assert "100 % of a_b &amp; &lt;c&gt;" in text
    assert '<th colspan="2">L²</th><th colspan="1">L¹</th>' in text and '<th rowspan="2">PDE</th>' in text
    assert "<td><b>1.0 ± 0.1</b></td><td>2.0</td><td>—</td>" in text
    assert len(re.findall("<tr", text)) == 2 + len(SHEET.rows)
