"""Pictures: a folder of PNG or TIFF files, one for each frame and component, or the pages of one TIFF."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from rdjepa.data.readers.catalog import natural
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import DAMAGED, Recording, damaged
from rdjepa.errors import DataError

PICTURE_STARTS = (b"\x89PNG\r\n\x1a\n", b"II*\x00", b"MM\x00*")
TIFF_STARTS = PICTURE_STARTS[1:]
BOMB: type[Exception] = Image.DecompressionBombError
CHANNELS = {"L": 1, "I;16": 1, "I;16B": 1, "I": 1, "F": 1, "LA": 2, "RGB": 3, "RGBA": 4}


class Pictures:
    """Pictures as an array (T, H, W) or (T, H, W, C); each is opened when it is indexed.

    Attributes:
        shape: of the array.
        dtype: kind of the numbers in a picture.
    """

    def __init__(self, frames: Sequence[tuple[Path, int]]) -> None:
        self.frames = frames
        first = _open(*frames[0])
        self.shape = (len(frames), *first.shape)
        self.dtype = first.dtype

    def __getitem__(self, index: Any) -> np.ndarray:
        """Read the pictures that a tuple, of a slice of frames first, stands for."""
        frames = np.asarray(self.frames, dtype=object)[index[0]]
        pictures = [self._same(*each) for each in frames]
        return np.stack(pictures)[(slice(None), *index[1:])] if pictures else np.empty((0, *self.shape[1:]), self.dtype)

    def _same(self, path: Path, page: int) -> np.ndarray:
        picture = _open(path, page)
        if picture.shape != self.shape[1:] or picture.dtype != self.dtype:
            raise DataError(
                f"expected pictures of one size and kind, {self.shape[1:]} {self.dtype}, got {picture.shape} "
                f"{picture.dtype} in {path}; give those of one recording"
            )
        return picture


def read_folder(files: Sequence[Path], reading: Reading) -> Iterator[Recording]:
    """Read pictures as frames in natural order; names that begin with two different words are two components."""
    groups: dict[str, list[Path]] = {}
    for file in sorted(files, key=lambda each: natural(each.name)):
        groups.setdefault(re.sub(r"\d+", "#", file.stem), []).append(file)
    folder = str(files[0].parent)
    if len({len(group) for group in groups.values()}) > 1:
        listed = ", ".join(f"{len(group)} like {group[0].name}" for group in groups.values())
        raise DataError(
            f"expected as many pictures of each component, got {listed} in {folder}; keep only those of the recording"
        )
    arrays = [Pictures([(file, 0) for file in group]) for group in groups.values()]
    names = tuple(name.replace("#", "").strip("_- .") for name in groups) if len(groups) > 1 else ()
    yield from _recording("folder of pictures", folder, arrays, reading, names)


def read_pages(path: Path, reading: Reading) -> Iterator[Recording]:
    """Read the pages of a TIFF file as frames."""
    try:
        with Image.open(path) as picture:
            count = int(getattr(picture, "n_frames", 1))
    except (*DAMAGED, BOMB) as error:
        raise damaged("TIFF file", str(path), error) from error
    yield from _recording("TIFF file", str(path), [Pictures([(path, page) for page in range(count)])], reading, ())


def _recording(
    kind: str, place: str, arrays: Sequence[Pictures], reading: Reading, names: tuple[str, ...]
) -> Iterator[Recording]:
    layout = "tyxc"[: len(arrays[0].shape)]
    yield Recording.of(kind, place, arrays, reading, layout=layout, names=names)


def _open(path: Path, page: int) -> np.ndarray:
    """Return a picture as (H, W) or (H, W, C).

    Raises:
        DataError: it is damaged, has a palette, or colors that a program chose.
    """
    try:
        with Image.open(path) as picture:
            if page:
                picture.seek(page)
            if picture.mode not in CHANNELS:
                raise DataError(
                    f"expected pictures in shades of gray or with two channels, got mode {picture.mode} in {path}; "
                    "save the numbers instead of a palette"
                )
            return np.asarray(picture)
    except DataError:
        raise
    except (*DAMAGED, BOMB) as error:
        raise damaged("picture", str(path), error) from error
