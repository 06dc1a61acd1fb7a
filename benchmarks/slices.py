"""Long commands on a machine that is lent for minutes: run until the time is over, and pack what is to be kept."""

import io
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

SHARD = 15 * 2**20
PACKING = 15  # seconds kept for what comes back
SIGNALS = ((signal.SIGINT, 12.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, None))  # and seconds until the next one


def told(what: str) -> None:
    """Print a line with the time."""
    print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)


def until(command: Sequence[object], ends: float, log: Path) -> int:
    """Run a command with its output in a log; interrupt it when the time is over. Return its status."""
    left = ends - time.monotonic()
    if left <= 0:
        return -signal.SIGINT
    with log.open("a") as file:
        process = subprocess.Popen(list(map(str, command)), stdout=file, stderr=subprocess.STDOUT)
        try:
            return process.wait(timeout=left)
        except subprocess.TimeoutExpired:
            return -signal.SIGINT
        finally:
            end(process, process.send_signal)


def end(process: subprocess.Popen, send: Callable[[int], object]) -> None:
    """Send a process that still runs, or all of its group, one signal after the other until it ends."""
    for number, patience in SIGNALS:
        if process.poll() is None:
            send(number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience)


def pack(paths: Iterable[Path], work: Path, out: Path, name: str) -> None:
    """Write files and folders of `work`, those that are there, as one archive in shards of 15 MiB.

    It replaces an earlier one of this name.
    """
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for path in filter(Path.exists, paths):
            archive.add(path, path.relative_to(work))
    out.mkdir(parents=True, exist_ok=True)
    for shard in out.glob(f"{name}.tar.gz.*"):
        shard.unlink()
    for number, first in enumerate(range(0, content.tell(), SHARD)):
        (out / f"{name}.tar.gz.{number:02d}").write_bytes(content.getvalue()[first : first + SHARD])
    told(f"{content.tell():,} bytes kept")


def join(folder: Path, out: Path) -> None:
    """Put the shards of every archive in a folder together and unpack it."""
    shards = sorted(folder.glob("*.tar.gz.*"))
    for name in dict.fromkeys(shard.stem for shard in shards):
        content = b"".join(shard.read_bytes() for shard in shards if shard.stem == name)
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(out, filter="data")
