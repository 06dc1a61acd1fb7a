"""Damage: bytes of every kind of file are changed, and the public function that reads it has to refuse it.

A file is truncated, a bit is flipped, a block is zeroed, a digit is replaced, a value is edited within the format, or
another file of the same kind lies in its place. Refusing it with one sentence is well, and so is reading all values as
they were, or a warning of what was left out. Users' own files carry no checksum: there a changed number cannot be
noticed, and only a changed shape counts as accepted in silence.
"""

import random
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from campaign import examples, kinds, sandbox
from campaign.answers import of_reader
from campaign.edits import edit
from campaign.kinds import Kind, digest
from campaign.trial import SILENT, WELL, Trial

PART = "damage"
SWAPPED = "swapped"
CHANCES = {
    "truncated": 4,
    "bit flipped": 10,
    "block zeroed": 3,
    "character replaced": 6,
    SWAPPED: 1,
    "value edited": 8,
}
WAYS = tuple(CHANCES)
EACH = 80  # trials of a kind in a whole campaign


def trials(work: Path, seed: int, each: int = EACH, names: tuple[str, ...] = ()) -> Iterator[Trial]:
    """Damage every kind of file.

    Args:
        work: folder for everything that the trials write.
        seed: of ways and places.
        each: trials of a kind.
        names: of kinds; all when empty.
    """
    inputs = work / "inputs"
    examples.make(inputs)
    for kind in kinds.kinds():
        if names and kind.name not in names:
            continue
        copy = fresh(work, kind)
        file, other = (kinds.place(copy, each) for each in (kind.file, kind.other))
        expected = undamaged(work, kind.name)
        rng = random.Random(f"{seed} {kind.name}")
        for _ in range(each):
            fresh(work, kind)
            done = damage(file, other, rng, tuple(way for way in WAYS if not (kind.named and way == SWAPPED)))
            yield judged(kind, done, answer(kind, copy, file), expected)


def fresh(work: Path, kind: Kind) -> Path:
    """Return a copy of the folder of a kind, beside which the other inputs are found."""
    folder = work / "inputs" / f".copy of {kind.folder}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(work / "inputs" / kind.folder, folder)
    return folder


@cache
def undamaged(work: Path, name: str) -> str:
    """Return the first line of the answer to a whole file of a kind."""
    kind = next(each for each in kinds.kinds() if each.name == name)
    copy = fresh(work, kind)
    whole = answer(kind, copy, kinds.place(copy, kind.file))
    if not whole.text.startswith("accepted"):
        raise RuntimeError(f"{name} is not read undamaged: {whole.text}")
    return whole.text.splitlines()[0]


def damage(path: Path, other: Path, rng: random.Random, ways: tuple[str, ...] = WAYS) -> str:
    """Damage a file in one of the ways and return what was done."""
    data = bytearray(path.read_bytes())
    way = rng.choices(ways, [CHANCES[each] for each in ways])[0]
    at = rng.randrange(len(data))
    if rng.random() < 0.5:  # half of them in the first kibibytes, where headers and records are
        at = rng.randrange(min(len(data), 4096))
    if way == "truncated":
        del data[at:]
        detail = f"at byte {at}"
    elif way == "bit flipped":
        bit = rng.randrange(8)
        data[at] ^= 1 << bit
        detail = f"bit {bit} of byte {at}"
    elif way == "block zeroed":
        size = min(rng.choice((1, 16, 512, 4096)), len(data) - at)
        data[at : at + size] = bytes(size)
        detail = f"{size} bytes from {at}"
    elif way == "character replaced":
        known = b"0123456789"
        digits = [i for i in range(at, min(at + 4096, len(data))) if data[i] in known] or [at]
        at = digits[0]
        new = rng.choice([each for each in known if each != data[at]])
        detail = f"{bytes(data[at : at + 1])!r} at byte {at} by {chr(new)!r}"
        data[at] = new
    elif way == SWAPPED:
        data = bytearray(other.read_bytes())
        detail = f"with {other.name}"
    elif detail := edit(path, rng):
        return f"{way}, {detail}"
    else:
        del data[-1:]
        way, detail = "truncated", "by one byte"
    path.write_bytes(data)
    return f"{way}, {detail}"


def answer(kind: Kind, folder: Path, path: Path, memory: int = 2 * sandbox.GIB) -> sandbox.Ended:
    """Read a file in a fork; the text says "accepted" and a hash, or "refused" and the sentence."""
    from rdjepa.errors import RdjepaError

    def read() -> str:
        try:
            value = kind.read(folder, path)
        except RdjepaError as error:
            return f"refused\n{error}"
        return f"accepted {digest(shapes(value) if kind.foreign else value)}"

    return sandbox.forked(read, folder.parent / ".said", memory=memory)


def shapes(value):
    """Return the shapes and dtypes of what a reader of users' files returned."""
    return [[(np.shape(one[name]), str(one[name].dtype)) for name in ("fields", "times")] for one in value]


def judged(kind: Kind, done: str, ended: sandbox.Ended, expected: str) -> Trial:
    """Return the trial of an answer."""
    outcome, said = of_reader(ended)
    lines = [line for line in ended.text.splitlines() if not line.startswith("warning")]
    answers = [line for line in lines if line.startswith(("accepted", "refused"))]
    warned = any("warning" in line.lower() for line in ended.text.splitlines())
    if (
        outcome == WELL
        and not warned
        and (not answers or (answers[-1].startswith("accepted") and answers[-1] != expected))
    ):
        outcome, said = SILENT, "other values"
    return Trial(PART, kind.name, done, outcome, said, round(ended.seconds, 3), {"megabytes": ended.megabytes})
