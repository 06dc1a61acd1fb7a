"""The metrics of a run as TensorBoard scalars, in addition to metrics.jsonl."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rdjepa.checks import require_packages


class Board:
    """A writer of every number of a line of metrics as a scalar; it does nothing without a folder.

    Args:
        folder: directory of the event files, or None.

    Raises:
        ArgumentError: a folder is given and the package tensorboard is missing.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.writer: Any = None
        if folder is not None:
            require_packages("of TensorBoard", "tensorboard", "tensorboard")

    def write(self, line: Mapping) -> None:
        """Add one line of metrics; those of an earlier run from its step on are shown no longer."""
        if self.folder is not None:
            if self.writer is None:
                from torch.utils.tensorboard import SummaryWriter  # an extra, and slow to import

                self.writer = SummaryWriter(str(self.folder), purge_step=line["step"])
            for name, value in scalars({key: value for key, value in line.items() if key != "step"}):
                self.writer.add_scalar(name, value, line["step"])

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write pending values and close the file."""
        if self.writer is not None:
            self.writer.close()


def scalars(metrics: Mapping, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number of nested metrics under a path such as "gates/reaction/0"; texts are left out."""
    for name, value in metrics.items():
        path = f"{prefix}{name}"
        if isinstance(value, list):
            value = {str(number): each for number, each in enumerate(value)}
        if isinstance(value, Mapping):
            yield from scalars(value, f"{path}/")
        elif isinstance(value, int | float):
            yield path, float(value)
