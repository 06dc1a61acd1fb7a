"""The command line: all commands, and the exit status of errors."""

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn

# OpenMP threads spin while they wait; on a machine that is busy with other work this takes most of the time.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

import typer

from rdjepa import extensions
from rdjepa.cli import about, curve, data, export, forecasts, inspect, look, pretrain, simulation, study, view
from rdjepa.cli.interrupts import INTERRUPTED, Interrupts
from rdjepa.errors import Note, RdjepaError, first_line, out_of_memory, printable
from rdjepa.io.atomic import REFUSALS
from rdjepa.memory import keep_freed_memory
from rdjepa.version import __version__

FAILED, REFUSED = 1, 2

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(simulation.systems)
app.command()(simulation.new_system)
app.command()(simulation.check_system)
app.command()(simulation.simulate)
app.command()(inspect.inspect)
app.command()(look.first_look)
app.command()(forecasts.adapt)
app.command()(forecasts.evaluate)
app.command()(forecasts.forecast)
app.command()(curve.learning_curve)
app.command()(export.export)
app.command()(view.view)
app.command()(about.demo)
app.command()(about.info)
app.add_typer(data.app, name="data")
app.command()(pretrain.pretrain)
app.command()(pretrain.probe)
app.add_typer(study.app, name="study")


def _print_version(asked: bool) -> None:
    if asked:
        print(f"rdjepa {__version__}")
        raise typer.Exit


@app.callback()
def every_command(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of every error.")] = False,
    load: Annotated[
        list[Path] | None,
        typer.Option(help="Python file that registers forecasters, systems, metrics or studies; may be repeated."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Forecast a reaction-diffusion system from one, five or ten trajectories, with a model pretrained on others."""
    context.ensure_object(dict)["debug"] = debug
    for path in load or []:
        extensions.load(path)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command, the process's own when None, and exit.

    The status is 0 for success, 1 for failed results and for bugs, 2 for bad input, which gets
    one sentence, 130 for an interrupt and 143 for a request to terminate.
    """
    settings: dict[str, bool] = {}
    interrupts = Interrupts()
    if isinstance(sys.stdout, TextIOWrapper):  # a name that it cannot show is no reason to fail after the work
        sys.stdout.reconfigure(errors="backslashreplace")
    keep_freed_memory()
    try:
        with interrupts, warnings.catch_warnings():
            warnings.showwarning = _warn  # type: ignore[assignment]
            app(None if arguments is None else list(arguments), obj=settings)
        status = 0
    except SystemExit as stopped:
        status = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    except BaseException as error:
        status = interrupts.status or _report(error, settings.get("debug", False))
    if status == INTERRUPTED:
        print(
            "interrupted; files that were finished are kept, and the same command goes on from there if it writes many "
            "(simulate, data build, study run, learning-curve), pretrain with --resume; an adaptation begins anew",
            file=sys.stderr,
        )
    raise SystemExit(status)


def _warn(message: Warning | str, category: type[Warning], *place: Any) -> None:
    """Print a warning as one line, without the place in the code that it comes from."""
    print(f"{'note' if issubclass(category, Note) else 'warning'}: {message}", file=sys.stderr)


def _report(error: BaseException, debug: bool) -> int:
    """Print an error that ended a command and return the exit status."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    sentence = _sentence(error)
    if debug or sentence is None:
        traceback.print_exception(error)
    if sentence is None:
        own = " and ".join(map(str, extensions.loaded()))
        unless = f"unless they lead to {own}, " if own else ""
        print(f"{unless}this is a bug of rdjepa {__version__}; please report it with the lines above", file=sys.stderr)
        return FAILED
    print(f"error: {printable(sentence)}", file=sys.stderr)
    return REFUSED


def _sentence(error: BaseException) -> str | None:
    """Return the message of an expected error; None for a bug."""
    if isinstance(error, RdjepaError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        reason = (error.strerror or "an error of the system").lower()
        return f"expected a path that can be used, got {error.filename} ({reason}); choose another, or mend it"
    if isinstance(error, OSError) and error.errno in REFUSALS:  # files have names; what is left is the standard output
        return f"expected to print what was found, got {REFUSALS[error.errno]}"
    if out_of_memory(error):
        return f"expected enough memory, got too little ({first_line(error)}); give less at once"
    return None
