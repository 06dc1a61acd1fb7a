"""Where fields live, as far as an equation has to know: how the domain ends, how far points lie apart, how finely."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Domain:
    """The domain of fields (H, W).

    Attributes:
        walls: whether fields end at walls instead of going on periodically.
        spacing: distance between neighboring rows, and between neighboring columns; the smaller is 1.
        finer: points that an equation is integrated on for each of the fields', along each side.
    """

    walls: bool = False
    spacing: tuple[float, float] = (1.0, 1.0)
    finer: int = 1

    def settings(self) -> dict[str, Any]:
        """Return it as JSON values; spacing and points of an equation only where they are not those of `PLAIN`."""
        return {
            "walls": self.walls,
            **({"spacing": list(self.spacing)} if self.spacing != PLAIN.spacing else {}),
            **({"finer": self.finer} if self.finer != PLAIN.finer else {}),
        }

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return what `settings` told of, whatever else is in there."""
        rows, columns = settings.get("spacing", PLAIN.spacing)
        return cls(bool(settings["walls"]), (float(rows), float(columns)), int(settings.get("finer", PLAIN.finer)))


PLAIN = Domain()
