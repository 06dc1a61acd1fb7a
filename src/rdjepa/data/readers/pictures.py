"""Pictures: a folder of PNG or TIFF files, one for each frame and component, or the pages of one TIFF.

Of the numbers in the names of files, that with the most values is the frame, the last of several; names that differ in
the rest are of different components.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageFile, UnidentifiedImageError

from rdjepa.data.readers.catalog import natural
from rdjepa.data.readers.damage import DAMAGED, damaged
from rdjepa.data.readers.pages import cell, components, interval
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import Recording, unnamed
from rdjepa.errors import DataError

PICTURE_STARTS = (b"\x89PNG\r\n\x1a\n", b"II*\x00", b"MM\x00*")
TIFF_STARTS = PICTURE_STARTS[1:]
BOMB: type[Exception] = Image.DecompressionBombError
BITS, PHOTOMETRIC, DESCRIPTION, SAMPLES, SAMPLE_FORMAT = 258, 262, 270, 277, 339  # tags of a TIFF
UNSIGNED, SIGNED = 1, 2  # sample formats of a TIFF
X_RESOLUTION, Y_RESOLUTION = 282, 283  # tags of a TIFF: pixels per unit of length
WHITE_IS_ZERO = 0  # photometric interpretation of a TIFF
CHANNELS = {"L": 1, "I;16": 1, "I;16B": 1, "I": 1, "F": 1, "LA": 2, "RGB": 3, "RGBA": 4}


class Pictures:
    """Pictures as an array (T, H, W) or (T, H, W, C); a file is opened when it is indexed, once for all its pages.

    Attributes:
        shape: of the array.
        dtype: kind of the numbers in a picture.
    """

    def __init__(self, frames: Sequence[tuple[Path, int | None]]) -> None:
        self.frames = frames
        path, page = frames[0]
        (first,) = _open(path, [page])
        self.shape = (len(frames), *first.shape)
        self.dtype = first.dtype

    def __getitem__(self, index: Any) -> np.ndarray:
        """Read the pictures that a tuple, of a slice of frames first, stands for."""
        frames = np.asarray(self.frames, dtype=object)[index[0]]
        files = groupby(frames, key=itemgetter(0))
        pictures = [self._same(path, each) for path, own in files for each in _open(path, [page for _, page in own])]
        return np.stack(pictures)[(slice(None), *index[1:])]

    def _same(self, path: Path, picture: np.ndarray) -> np.ndarray:
        if picture.shape != self.shape[1:] or picture.dtype != self.dtype:
            raise DataError(
                f"expected pictures of one size and kind, {self.shape[1:]} {self.dtype}, got {picture.shape} "
                f"{picture.dtype} in {path}; give those of one recording"
            )
        return picture


def read_folder(files: Sequence[Path], reading: Reading) -> Iterator[Recording]:
    """Read pictures as the frames of one recording.

    Raises:
        DataError: a name has no number, or a frame is missing.
    """
    folder = str(files[0].parent)
    files = sorted(files, key=lambda each: natural(each.name))
    numbers = {file: list(re.finditer(r"\d+", file.stem))[::-1] for file in files}  # of each name, the last one first
    values = [{int(each[0]) for each in own if each} for own in zip_longest(*numbers.values())]
    place = max(range(len(values)), key=lambda number: len(values[number]), default=0)  # the first of equals
    groups: dict[str, list[tuple[int, Path]]] = {}
    for file, own in numbers.items():
        if len(own) <= place:
            raise DataError(
                f"expected pictures with the number of the frame in the name, got {file.name} in {folder}; keep only "
                "those of the recording"
            )
        frame = own[place]
        name = f"{file.stem[: frame.start()]}#{file.stem[frame.end() :]}"
        groups.setdefault(name, []).append((int(frame[0]), file))
    _require_frames({name: [number for number, _ in group] for name, group in groups.items()}, folder)
    arrays = [Pictures([(file, None) for _, file in group]) for group in groups.values()]
    names = tuple(name.replace("#", "").strip("_- .") for name in groups) if len(groups) > 1 else ()
    yield from _recording("folder of pictures", folder, arrays, reading, names)


def read_pages(path: Path, reading: Reading) -> Iterator[Recording]:
    """Read the pages of a TIFF file as frames; channels that its description speaks of are components."""
    try:
        with Image.open(path) as picture:
            pages = int(getattr(picture, "n_frames", 1))
            tags = getattr(picture, "tag_v2", {})
            description = str(tags.get(DESCRIPTION, ""))
            resolution = float(tags.get(Y_RESOLUTION, 0)), float(tags.get(X_RESOLUTION, 0))
    except (*DAMAGED, BOMB) as error:
        raise _unreadable("TIFF file", path, error) from error
    arrays = [Pictures([(path, page) for page in own]) for own in components(description, pages, path)]
    step, sides = interval(description), cell(description, resolution)
    known: dict[str, Any] = {}
    if step:
        known["times"] = step * np.arange(arrays[0].shape[0])
    if sides:
        known |= {"length": sides[1] * arrays[0].shape[2], "spacing": sides}
    yield from _recording("TIFF file", str(path), arrays, reading, (), **known)


def _require_frames(numbers: Mapping[str, Sequence[int]], folder: str) -> None:
    """Refuse numbers of frames that are not equally spaced, or not the same for each component.

    Raises:
        DataError: one of these.
    """
    first = next(iter(numbers))
    for name, own in numbers.items():
        threes = zip(own, own[1:], own[2:], strict=False)
        uneven = [(a, b, c) for a, b, c in threes if b <= a or b - a != c - b]
        if uneven or len(own) < 2:
            got = "{}, {} and then {}".format(*uneven[0]) if uneven else f"{own[0]} alone"
            raise DataError(
                f"expected pictures numbered by frame, equally spaced, got {got} of {name!r} in "
                f"{folder}; add what is missing, rename them, or keep only those of the recording"
            )
        if differ := sorted(set(own) ^ set(numbers[first])):
            raise DataError(
                f"expected pictures of the same frames for each component, got frame {differ[0]} of only one of "
                f"{first!r} and {name!r} in {folder}; add what is missing, or keep only those of the recording"
            )


def _recording(
    kind: str, place: str, arrays: Sequence[Pictures], reading: Reading, names: tuple[str, ...], **known: Any
) -> Iterator[Recording]:
    layout = "tyxc"[: len(arrays[0].shape)]
    remarks = unnamed(reading, kind)
    yield Recording.of(kind, place, arrays, reading, layout=layout, names=names, remarks=remarks, **known)


def _open(path: Path, pages: Sequence[int | None]) -> list[np.ndarray]:
    """Return pages of a picture, None for its only one, as (H, W) or (H, W, C).

    Raises:
        DataError: it is damaged, has several pages and none was chosen, has a palette, or colors that a program chose,
            or numbers that Pillow does not read whole.
    """
    try:
        with Image.open(path) as picture:
            return [_page(picture, path, page) for page in pages]
    except DataError:
        raise
    except (*DAMAGED, BOMB) as error:
        raise _unreadable("picture", path, error) from error


def _page(picture: ImageFile.ImageFile, path: Path, page: int | None) -> np.ndarray:
    if page is None and (pages := int(getattr(picture, "n_frames", 1))) > 1:
        raise DataError(
            f"expected one picture in each file of a folder, got {pages} pages in {path}; give that file itself"
        )
    if page is not None:
        picture.seek(page)  # fast forward only: what lies before is looked through once
    if picture.mode not in CHANNELS:
        raise DataError(
            f"expected pictures in shades of gray or with two channels, got mode {picture.mode} in {path}; "
            "save the numbers instead of a palette"
        )
    if _loses_numbers(picture):
        raise DataError(
            "expected several channels in a picture as gray with alpha, RGB or RGBA of 8 bits, got others in "
            f"{path}, of which digits or channels would be lost; save each component as its own gray picture, "
            "which may have 16 bits, or all as .npy"
        )
    return _stored(np.asarray(picture), getattr(picture, "tag_v2", {}))


def _stored(values: np.ndarray, tags: Mapping[int, Any]) -> np.ndarray:
    """Return the numbers that a TIFF stores: Pillow takes 32 bits for signed, 8 for unsigned, and may invert."""
    stored = tags.get(SAMPLE_FORMAT, (UNSIGNED,)), tags.get(BITS)
    if stored == ((UNSIGNED,), (32,)):
        return values.view(np.uint32)
    if stored == ((UNSIGNED,), (8,)) and tags.get(PHOTOMETRIC) == WHITE_IS_ZERO:  # of 8 bits alone
        return 255 - values
    return values.view(np.int8) if stored == ((SIGNED,), (8,)) else values


def _loses_numbers(picture: ImageFile.ImageFile) -> bool:
    """Return whether Pillow reduces the channels of an opened picture to 8 bits, or leaves some of them out."""
    channels = CHANNELS[picture.mode]
    if (tags := getattr(picture, "tag_v2", None)) is None:  # PNG, whose tiles name the numbers that are stored
        return channels > 1 and ";16" in str(picture.tile[0][3])
    return tags.get(SAMPLES, channels) != channels or (channels > 1 and max(tags[BITS]) > 8)


def _unreadable(kind: str, path: Path, error: Exception) -> DataError:
    """Return the error of a picture that is damaged, or of a kind that Pillow does not know."""
    if not isinstance(error, UnidentifiedImageError):
        return damaged(kind, str(path), error)
    return DataError(
        f"expected a whole {kind} of whole numbers or float32, got one at {path} that is damaged or holds others, such "
        "as float64 or several channels of 16 bits; save each component as gray TIFF of float32, or all as .npy, or "
        "fetch it again"
    )
