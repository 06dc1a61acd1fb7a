"""The signature of progress callbacks."""

from collections.abc import Callable

Progress = Callable[[int, int, str], None]  # number done, total number, and a short text on the latest one or ""
