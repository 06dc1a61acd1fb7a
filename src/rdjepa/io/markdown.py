"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


def pipe_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts, a line per row below its heading, without a newline at the end; bars are escaped."""
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in line)} |" for line in lines)
