"""How a command ends that does not end well."""

import os
import signal
import subprocess
import sys
import time
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
import torch

from rdjepa.cli import main as cli
from rdjepa.cli.interrupts import Interrupts
from rdjepa.errors import DataError


def ended(capsys, *arguments):
    """Exit status and standard error of a command."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    return stopped.value.code, capsys.readouterr().err


@pytest.fixture
def failing(monkeypatch):
    """Make `rdjepa systems` end with an error."""

    def fail(error):
        def raising():
            raise error

        monkeypatch.setattr("rdjepa.systems.names", raising)

    return fail


def test_a_name_that_the_output_cannot_show_is_printed_with_escapes(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    shown = TextIOWrapper(BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", shown)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["new-system", "mine", "--out", "t\xf6.py"])
    shown.flush()
    assert stopped.value.code == 0 and rb"t\xf6.py" in shown.buffer.getvalue()


def test_a_deliberate_error_is_one_sentence_and_a_traceback_only_for_debugging(capsys, failing):
    failing(DataError("expected a, got b; do c"))
    assert ended(capsys, "systems") == (2, "error: expected a, got b; do c\n")
    status, text = ended(capsys, "--debug", "systems")
    assert status == 2 and "Traceback" in text and text.endswith("error: expected a, got b; do c\n")


@pytest.mark.parametrize("error", [ValueError("secret"), KeyError("x"), RuntimeError("y"), OSError("without a path")])
def test_an_error_that_nobody_meant_is_a_bug_with_its_traceback(capsys, failing, error):
    failing(error)
    status, text = ended(capsys, "systems")
    assert status == 1 and "Traceback" in text
    assert text.splitlines()[-1].startswith("this is a bug of rdjepa") and "please report it" in text.splitlines()[-1]


def test_an_error_of_what_was_loaded_may_be_its_own(capsys, failing, tmp_path, monkeypatch):
    monkeypatch.setattr("rdjepa.extensions._LOADED", [Path("mine.py")])
    failing(TypeError("x"))
    _, text = ended(capsys, "systems")
    assert text.splitlines()[-1].startswith("unless they lead to mine.py, this is a bug of rdjepa")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 9 TiB"),
        torch.cuda.OutOfMemoryError("CUDA out of memory.\nTried to allocate 9 GiB"),
        RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported asynchronously"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_too_little_memory_is_one_sentence_and_no_bug(capsys, failing, error):
    failing(error)
    status, text = ended(capsys, "systems")
    assert status == 2 and text.startswith("error: expected enough memory, got too little (") and text.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_under_the_standard_output_is_one_sentence():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "rdjepa", "systems"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
    assert done.returncode == 2
    assert done.stderr.startswith("error: expected to print what was found, got a full disk;")


def test_a_path_that_cannot_be_used_is_one_sentence(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    arguments = ("simulate", "schnakenberg", "--start", "999999", "--out", str(tmp_path / "file" / "data"))
    status, text = ended(capsys, *arguments)
    assert status == 2 and text.startswith("error: expected") and text.count("\n") == 1
    assert "Errno" not in text and str(tmp_path / "file") in text


def test_the_system_s_own_words_for_a_path_are_kept_without_their_number(capsys, failing):
    failing(PermissionError(13, "Permission denied", "/locked"))
    status, text = ended(capsys, "systems")
    assert status == 2 and "/locked (permission denied)" in text and "Errno" not in text


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_that_a_library_turns_into_its_own_error_is_that_signal(capsys, monkeypatch, number, expected):
    def compiling():
        try:
            os.kill(os.getpid(), number)
            time.sleep(1)
        except (KeyboardInterrupt, SystemExit):
            raise RuntimeError("lowering failed") from None

    monkeypatch.setattr("rdjepa.systems.names", compiling)
    status, text = ended(capsys, "systems")
    assert status == expected and "Traceback" not in text and "bug" not in text
    assert text.startswith("interrupted; files that were finished are kept") == (number == signal.SIGINT)


@pytest.mark.parametrize(
    ("number", "raised", "before"),
    [
        (signal.SIGINT, KeyboardInterrupt, signal.default_int_handler),
        (signal.SIGTERM, SystemExit, signal.SIG_DFL),
    ],
)
def test_a_signal_that_a_callback_swallows_comes_again(capsys, number, raised, before):
    class Callback:
        def __del__(self):
            os.kill(os.getpid(), number)
            time.sleep(1)

    hook, began = sys.unraisablehook, time.monotonic()
    with Interrupts() as interrupts, pytest.raises(raised):
        Callback()
        time.sleep(10)
    assert time.monotonic() - began < 9  # it ended the wait
    assert interrupts.status == 128 + number and sys.unraisablehook is hook
    assert signal.getsignal(number) is before
    assert not capsys.readouterr().err


@pytest.mark.parametrize("verb", ["run", "status", "tables", "report"])
def test_a_study_without_its_packages_says_what_to_install(capsys, monkeypatch, tmp_path, verb):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pandas", None)
    status, text = ended(capsys, "study", verb, "heldout")
    assert status == 2 and "pip install 'rdjepa[study]'" in text and text.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [("adapt", "a.npy", "--seed", "-1"), ("demo", "--support-seed", str(2**32)), ("nothing",), ("--fast",)]
)
def test_options_that_cannot_be_parsed_are_status_2(capsys, arguments):
    status, text = ended(capsys, *arguments)
    assert status == 2 and "Error" in text and "Traceback" not in text
