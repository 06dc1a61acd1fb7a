"""Work in a forked process with limits on memory, time and whatever a trial wishes.

A fork has the package, its compiled kernels and PyTorch imported, so a trial takes milliseconds instead of seconds.
"""

import contextlib
import faulthandler
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

GIB = 2**30
RAISED = 70  # exit status of an exception that nobody caught
GRACE = 1.0  # seconds for the stack of a process that hangs


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        status: exit status; negative for the number of a signal.
        text: what it wrote to standard output and error.
        seconds: wall clock.
        megabytes: largest resident memory.
        hung: whether it was killed because its time was over; the text then ends with its stack.
    """

    status: int
    text: str
    seconds: float
    megabytes: int
    hung: bool


class Child:
    """A forked process that runs a function, in a session of its own.

    Args:
        work: the function; its text goes to standard output.
        said: file for standard output and error.
        memory: bytes of address space beyond those of this process; None for no limit.
        prepare: called in the child first, for other limits.
        inside: working directory.
    """

    def __init__(
        self,
        work: Callable[[], object],
        said: Path,
        *,
        memory: int | None = 2 * GIB,
        prepare: Callable[[], object] | None = None,
        inside: Path | None = None,
    ) -> None:
        self.said, self.began = said, time.perf_counter()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            self._run(work, memory, prepare, inside)
        self._descriptor = os.pidfd_open(self.pid)

    def _run(self, work, memory, prepare, inside) -> None:
        status, working = RAISED, False
        try:
            os.setsid()
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
            descriptor = os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            nothing = os.open(os.devnull, os.O_RDONLY)
            for old, new in ((nothing, 0), (descriptor, 1), (descriptor, 2)):
                os.dup2(old, new)
            # A test runner may have replaced these.
            sys.stdin, sys.stdout, sys.stderr = (open(n, "rw"[n > 0], closefd=False) for n in range(3))  # noqa: SIM115
            faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=False)
            if inside is not None:
                os.chdir(inside)
            if memory is not None:
                limit = used() + memory
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if prepare:
                prepare()
            working = True
            answer = work()
            print("" if answer is None else answer, flush=True)
            status = 0
        except SystemExit as stopped:
            status = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not working:  # killed before it was a command
                status = 128 + signal.SIGINT
            else:
                with contextlib.suppress(BaseException):
                    traceback.print_exc()
        finally:
            with contextlib.suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def over(self, seconds: float) -> bool:
        """Wait up to some seconds; return whether the process has ended."""
        return bool(select.select([self._descriptor], [], [], max(0.0, seconds))[0])

    def send(self, number: int, group: bool = False) -> None:
        """Send a signal to the process, or to all of its session."""
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.pid, number)

    def end(self, seconds: float) -> Ended:
        """Wait for the end; kill it when the time is over."""
        hung = not self.over(self.began + seconds - time.perf_counter())
        if hung:
            self.send(signal.SIGUSR1)
            time.sleep(GRACE)
            self.send(signal.SIGKILL, group=True)
        _, status, usage = os.wait4(self.pid, 0)
        os.close(self._descriptor)
        text = self.said.read_text(errors="replace") if self.said.exists() else ""
        spent = time.perf_counter() - self.began
        return Ended(os.waitstatus_to_exitcode(status), text, spent, usage.ru_maxrss // 1024, hung)


def forked(work: Callable[[], object], said: Path, seconds: float = 20, **options) -> Ended:
    """Run a function in a forked process to its end; see `Child`."""
    return Child(work, said, **options).end(seconds)


def command(arguments: list[str]) -> Callable[[], object]:
    """Return a function that runs a command of rdjepa and exits with its status."""
    from rdjepa.cli.main import main

    return lambda: main(arguments)


def used() -> int:
    """Return the address space of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def session_of(leader: int) -> list[int]:
    """Return the processes that are left of the session of a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(path.parent.name))
    return found
