"""What the site adds to the pages: the command line's own help, the changelog, and equations as MathML.

Generated pages cannot go stale, and MathML, which browsers draw themselves, needs neither JavaScript nor a network.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

INTRODUCTION = """# Command line

What `rdjepa VERB --help` prints, for every verb. A deliberate error is one sentence on standard error and exit
status 2; `rdjepa data verify`, and commands some of whose parts failed, end with 1; an interrupt ends with 130.
"""
EQUATION = re.compile(r'<(span|div) class="arithmatex">(?:\\\(|\\\[)(.*?)(?:\\\)|\\\])</\1>', re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not written by hand."""
    files.append(File.generated(config, "reference/command-line.md", content=command_line()))
    changes = Path(config.config_file_path).parent / "CHANGELOG.md"
    files.append(File.generated(config, "changelog.md", abs_src_path=str(changes)))
    return files


def on_page_content(content: str, **_: Any) -> str:
    """Turn the LaTeX of a page into MathML."""
    return EQUATION.sub(_mathml, content)


def command_line() -> str:
    """Return the reference of the command line in Markdown, a heading and a block for each verb."""
    import typer.main

    from rdjepa.cli.main import app

    pages = _helps(typer.main.get_command(app), "rdjepa")
    return INTRODUCTION + "".join(f"\n## {path}\n\n```text\n{text}\n```\n" for path, text in pages)


def _helps(command: Any, path: str, parent: Any = None) -> Iterator[tuple[str, str]]:
    """Yield (path, help) of a command and of every command below it."""
    command.rich_markup_mode = None  # plain text, without boxes
    context = command.make_context(path, ["--help"], parent, resilient_parsing=True, max_content_width=96)
    context.info_name = path.rsplit(" ", 1)[-1]
    yield path, command.get_help(context)
    for name, each in getattr(command, "commands", {}).items():
        yield from _helps(each, f"{path} {name}", context)


def _mathml(found: re.Match) -> str:
    kind, latex = found[1], html.unescape(found[2]).strip()
    return convert(latex, display="block" if kind == "div" else "inline")
