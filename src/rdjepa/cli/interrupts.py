"""Signals that end a command: interrupts (Ctrl-C), even where a library catches them, and requests to terminate."""

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM  # the status that shells report
AGAIN = 0.05  # seconds; long enough for a compiler's callback to return


class Interrupts:
    """A context manager that remembers such a signal.

    A compiler or a library may turn `KeyboardInterrupt` or `SystemExit` into an error of its own, so the end of the
    command asks `status`. Where it was swallowed instead, in a callback from compiled code or in a finalizer, it is
    sent again.

    Attributes:
        status: exit status of the signal that was received; None before one.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        self._previous: Any = None
        self._hook = sys.unraisablehook
        self._again: threading.Timer | None = None

    def __enter__(self) -> "Interrupts":
        """Install the handlers, in the main thread and where no other handler is installed."""
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            self._previous = signal.signal(signal.SIGINT, self._interrupt)
            self._hook, sys.unraisablehook = sys.unraisablehook, self._swallowed
            if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
                signal.signal(signal.SIGTERM, self._terminate)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Restore the previous handlers."""
        if self._again is not None:
            self._again.cancel()
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            if signal.getsignal(signal.SIGTERM) == self._terminate:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
            sys.unraisablehook = self._hook

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.status = INTERRUPTED
        raise KeyboardInterrupt

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        """Leave through the blocks that remove temporary files; a second request ends the process at once."""
        if self.status == TERMINATED:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)
        self.status = TERMINATED
        raise SystemExit(TERMINATED)

    def _swallowed(self, what: Any) -> None:
        sent = {INTERRUPTED: KeyboardInterrupt, TERMINATED: SystemExit}
        if self.status is not None and what.exc_type is sent[self.status]:
            again, self.status = signal.Signals(self.status - 128), None
            self._again = threading.Timer(AGAIN, _send, [again, threading.get_ident()])
            self._again.daemon = True
            self._again.start()
        else:
            self._hook(what)


def _send(number: signal.Signals, thread: int) -> None:
    """Send a signal to a thread, the main one, whatever that waits for."""
    if sys.platform == "win32":  # where a thread sends signals to itself only
        signal.raise_signal(number)
    else:
        signal.pthread_kill(thread, number)
