"""One signature for whatever reports how far it is."""

from collections.abc import Callable

Progress = Callable[[int, int, str], None]  # done, total, and what was done last in a few words, or ""
