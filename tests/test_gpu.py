"""What a lent GPU is used with (benchmarks/gpu.py, benchmarks/slices.py), as far as no GPU is needed."""

import signal
import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import gpu
import slices

DEAF = """
import signal, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
"""


@pytest.mark.timeout(30)
def test_a_command_that_ignores_interrupts_ends_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(slices, "SIGNALS", ((signal.SIGINT, 0.1), (signal.SIGTERM, 0.1), (signal.SIGKILL, None)))
    command, log = [sys.executable, "-c", DEAF], tmp_path / "log"
    assert slices.until(command, time.monotonic() + 2, log) == -signal.SIGINT
    assert log.read_text() == "deaf\n"


def test_an_interrupt_is_heard_where_a_shell_had_it_ignored(monkeypatch):
    heard = []
    monkeypatch.setattr(gpu, "join", lambda *_: heard.append(signal.getsignal(signal.SIGINT)))
    monkeypatch.setattr(sys, "argv", ["gpu.py", "join", "out", "kept"])
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        gpu.main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.default_int_handler]
