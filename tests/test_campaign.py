"""The short form of the campaign of kills, damage and hostile input (benchmarks/campaign)."""

import subprocess
import sys
from pathlib import Path

import pytest

CAMPAIGN = Path(__file__).parents[1] / "benchmarks" / "campaign"


@pytest.mark.timeout(1200)  # two minutes on a quiet machine
@pytest.mark.skipif(sys.platform != "linux", reason="forks with limits on memory, and file systems of their own")
def test_nothing_is_lost_or_accepted_in_silence_and_nothing_ends_in_a_traceback(tmp_path):
    command = [sys.executable, str(CAMPAIGN), "--short", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    # Each line of standard output before the table is a trial that did not go well, with what was done.
    assert not done.returncode, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    assert len((tmp_path / "trials.jsonl").read_text().splitlines()) > 20
