"""Which pages of a TIFF are which frame and component, and how far they are apart, as its first page says.

ImageJ says so in lines `name=number`, and has all pages of a frame before those of the next. OME-TIFF says so in XML
(docs.openmicroscopy.org/ome-model, elements Pixels and TiffData), of which a few attributes matter here; they are
looked up as text, so nothing in the file is expanded or followed. Both say the time between frames and the sides of a
pixel, ImageJ the latter as resolution, which is that of a print where no unit of length is said. tifffile says the
shape of the array that it saved in JSON, which tells whether every page is a frame; without any of these it is one.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rdjepa.errors import DataError

IMAGEJ, OME = "ImageJ=", re.compile(r"<(?:\w+:)?OME\b")
SHAPE = re.compile(r'"shape": *\[([\d, ]*)\]')
LENGTHS = ("PhysicalSizeY", "PhysicalSizeX")
HEAD = 4096  # characters in which the root of the XML is found, after a comment, or the shape
_NUMBER = re.compile(r"\d{1,9}")
_REAL = re.compile(r"(?:\d{1,99}\.?\d{0,99}|\.\d{1,99})(?:[eE][-+]?\d{1,2})?")


def components(description: str, pages: int, path: Path) -> list[list[int]]:
    """Return for each component its pages, oldest first.

    Raises:
        DataError: the description speaks of slices, of several images, or of other pages than there are.
    """
    if description.startswith("{") and (found := SHAPE.search(description[:HEAD])):
        _require_frames([int(each) for each in _NUMBER.findall(found[1])], pages, path)
    if description.startswith(IMAGEJ):
        return _of_imagej(description, pages, path)
    if OME.search(description[:HEAD]):
        return _of_ome(description, pages, path)
    return [list(range(pages))]


def interval(description: str) -> float | None:
    """Return the time between frames, in the unit of the file; None where it is not said."""
    if description.startswith(IMAGEJ):
        return _real(_words(description), "finterval")
    return _real(_pixels(description), "TimeIncrement")


def cell(description: str, resolution: tuple[float, float]) -> tuple[float, float] | None:
    """Return the height and width of a pixel, in the unit of the file; None where they are not said.

    Args:
        description: of the first page.
        resolution: pixels per unit of length along y and x, as the tags of the first page say it; 0 where they do not.
    """
    if description.startswith(IMAGEJ):
        pixels = _words(description).get("unit", "pixel").startswith(("pixel", "inch"))
        whole = all(0 < each < math.inf for each in resolution)
        return (1 / resolution[0], 1 / resolution[1]) if whole and not pixels else None
    said = _pixels(description)
    height, width = (_real(said, name) for name in LENGTHS)
    units = {said.get(f"{name}Unit", "µm") for name in LENGTHS}
    return (height, width) if height and width and len(units) == 1 else None


def _require_frames(shape: Sequence[int], pages: int, path: Path) -> None:
    """Refuse pages of an array (T, C, H, W) and the like, whose axes tifffile counts but does not name."""
    if len(shape) > 3 and shape[0] != pages:
        raise DataError(
            f"expected pages that are frames, got {pages} pages of an array {tuple(shape)} in {path}; save it as .npy, "
            "or for ImageJ with its channels and frames"
        )


def _of_imagej(description: str, pages: int, path: Path) -> list[list[int]]:
    said = _words(description)
    channels, slices, frames = (_number(said, name, 1) for name in ("channels", "slices", "frames"))
    if slices > 1 or channels * frames != pages:
        raise DataError(
            f"expected a page for each channel and frame of an ImageJ file, got {channels} channels, {slices} slices "
            f"and {frames} frames in {pages} pages of {path}; say in ImageJ (Image > Properties) which are frames, and "
            "save it again"
        )
    return [list(range(first, pages, channels)) for first in range(channels)]


def _of_ome(description: str, pages: int, path: Path) -> list[list[int]]:
    images = _elements("Pixels", description)
    said = images[0] if images else {}
    count, slices, frames = (_number(said, f"Size{axis}", 1) for axis in "CZT")
    samples = _number(next(iter(_elements("Channel", description)), {}), "SamplesPerPixel", 1)
    channels = count // max(1, samples)  # several samples, as of a color, are in one page
    order = said.get("DimensionOrder", "XYCZT")
    across, along = (1, channels) if order.find("C") < order.find("T") else (frames, 1)  # planes to the next of each
    page_of: dict[int, int] = {}  # number of a plane in the order of dimensions -> its page
    total = 0
    for block in _elements("TiffData", description) or [{}]:
        channel, frame, page = (_number(block, name, 0) for name in ("FirstC", "FirstT", "IFD"))
        first = channel * across + frame * along
        planes = _number(block, "PlaneCount", 1 if "IFD" in block else pages)
        total += planes
        if total > pages:
            break
        page_of |= {first + step: page + step for step in range(planes)}
    whole = total == pages and sorted(page_of) == list(range(pages)) == sorted(page_of.values())
    if len(images) != 1 or slices != 1 or channels * frames != pages or not whole:
        raise DataError(
            f"expected a page for each channel and frame of one image in OME-XML, got {len(images)} images, the first "
            f"of {channels} channels, {slices} slices and {frames} frames, in {pages} pages of {path}; save the "
            "recording as one file of one image without slices"
        )
    return [[page_of[channel * across + frame * along] for frame in range(frames)] for channel in range(channels)]


def _words(description: str) -> dict[str, str]:
    """Return what the lines of ImageJ say."""
    return dict(re.findall(r"(?m)^(\w+)=(.*?)\s*$", description))


def _pixels(description: str) -> dict[str, str]:
    """Return the attributes of the first image of OME-XML; none where there is no such."""
    return next(iter(_elements("Pixels", description) if OME.search(description[:HEAD]) else []), {})


def _elements(name: str, text: str) -> list[dict[str, str]]:
    """Return the attributes of every element of a name."""
    found = re.findall(rf"<(?:\w+:)?{name}\b([^<>]*)>", text)
    return [{key: value for key, _, value in re.findall(r"\b(\w{1,40})\s*=\s*([\"'])(.*?)\2", each)} for each in found]


def _number(said: Mapping[str, str], name: str, usual: int) -> int:
    """Return a whole number that an element says; 0, which no file has, where it says something else."""
    value = said.get(name)
    return usual if value is None else int(value) if _NUMBER.fullmatch(value) else 0


def _real(said: Mapping[str, str], name: str) -> float | None:
    """Return a number above 0; None where nothing of the kind is said."""
    value = said.get(name, "")
    return (float(value) or None) if _REAL.fullmatch(value) else None
