"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


def pipe_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts, a line per row below its heading, without a newline at the end; bars are escaped."""
    lines = [[text.replace("|", r"\|") for text in line] for line in (head, ["---"] * len(head), *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
