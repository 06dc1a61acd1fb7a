"""What an ended process says about its trial: a sentence, a traceback, a raw message, nothing."""

import re

from campaign import sandbox
from campaign.trial import CRASH, HANG, RAW, STATUS, TRACEBACK, WELL

WARNING = re.compile(r"\S+\.py:\d+: |  \S")  # what Python prints of a warning, and the line of code below it
RAW_WORDS = ("Errno", "os error", "Unable to allocate")


def of_reader(ended: sandbox.Ended) -> tuple[str, str]:
    """Return outcome and sentence of a process that wrote "accepted", or "refused" and then the error's text."""
    lines = _lines(ended)
    if early := _ended_badly(ended, lines):
        return early
    if ended.status == sandbox.RAISED:
        return TRACEBACK, f"{lines[-1]} ({_place(lines)})"
    if "refused" not in lines:
        return WELL, ""
    said = [line for line in lines[lines.index("refused") + 1 :] if not WARNING.match(line)]
    return (WELL if len(said) == 1 and _is_sentence(said[0]) else RAW), " / ".join(said)


def of_command(ended: sandbox.Ended, statuses: tuple[int, ...] = (0, 1, 2)) -> tuple[str, str]:
    """Return outcome and last words of a command of rdjepa.

    Status 2 comes with one sentence as the last line, or with the usage where the command line cannot be parsed.
    """
    lines = _lines(ended)
    if early := _ended_badly(ended, lines, statuses):
        return early
    if "Traceback" in ended.text:
        before = [line for line in lines if not line.startswith("this is a bug")]
        return TRACEBACK, f"{before[-1]} ({_place(lines)})"
    if ended.status not in statuses:
        return STATUS, f"{ended.status}: {lines[-1]}"
    usage = any(line.startswith("Usage:") for line in lines)
    errors = [line for line in lines if line.startswith("error: ")]
    if ended.status == 2 and not usage:
        last = errors[-1] if errors else lines[-1]
        if lines[-1] != last or not last.startswith("error: ") or not _is_sentence(last.removeprefix("error: ")):
            return RAW, " / ".join(lines[lines.index(last) :])
    return WELL, errors[-1] if errors else ""


def _ended_badly(ended: sandbox.Ended, lines: list[str], statuses: tuple[int, ...] = ()) -> tuple[str, str] | None:
    if ended.hung:
        stack = [line.strip() for line in lines if line.strip().startswith("File")]
        return HANG, " < ".join(stack[:6]) or lines[-1]
    if ended.status < 0 and ended.status not in statuses:
        return CRASH, f"signal {-ended.status}"
    return None


def _is_sentence(text: str) -> bool:
    return text.startswith("expected") and not any(word in text for word in RAW_WORDS)


def _lines(ended: sandbox.Ended) -> list[str]:
    return [line for line in ended.text.splitlines() if line.strip()] or [""]


def _place(lines: list[str]) -> str:
    """Return the innermost line of the package in a traceback."""
    places = [line.strip() for line in lines if "/rdjepa/" in line and line.strip().startswith("File")]
    return places[-1] if places else ""
