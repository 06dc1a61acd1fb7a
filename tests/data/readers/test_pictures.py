"""Pictures and TIFF files, numbered folders and pages, are read back equal."""

import json
import struct
from unittest import mock

import numpy as np
import pytest
from comparing import check
from PIL import Image

from rdjepa.data.fields import with_second
from rdjepa.data.readers import Reading, load
from rdjepa.data.survey import inspect
from rdjepa.errors import DataError

PICTURES = np.random.default_rng(2).integers(0, 255, size=(12, 16, 16, 2)).astype(np.uint8)

pytestmark = pytest.mark.filterwarnings("ignore::rdjepa.errors.Note")


def test_pictures_are_frames_in_natural_order(tmp_path):
    for name in ("gray", "pair", "channels", "deep"):
        (tmp_path / name).mkdir()
    for number, frame in enumerate(PICTURES):
        Image.fromarray(frame[..., 0]).save(tmp_path / "gray" / f"frame{number}.png")
        Image.fromarray(frame, mode="LA").save(tmp_path / "channels" / f"{number}.png")
        for name, component in zip("uv", np.moveaxis(frame, -1, 0), strict=True):
            Image.fromarray(component.astype(np.float32)).save(tmp_path / "pair" / f"{name}_{number}.tif")
        Image.fromarray(frame[..., 0].astype(np.uint16) * 200).save(tmp_path / "deep" / f"{number}.png")
    both = PICTURES.astype(np.float32)
    check(tmp_path / "gray", with_second(both[..., :1])[None])
    check(tmp_path / "channels", both[None])
    check(tmp_path / "pair", both[None])
    check(tmp_path / "deep", with_second(both[..., :1] * 200)[None])


@pytest.mark.parametrize("compression", [None, "tiff_adobe_deflate"])
def test_whole_numbers_of_a_tiff_keep_their_sign(tmp_path, compression):
    few = PICTURES[..., 0].astype(np.int8)
    many = PICTURES[..., 0].astype(np.uint32) << 24
    for name, values, info in (("few", few.view(np.uint8), {339: 2}), ("many", many.view(np.int32), {})):
        first, *others = map(Image.fromarray, values)
        path = tmp_path / name
        first.save(path, "TIFF", save_all=True, append_images=others, tiffinfo=info, compression=compression)
    path.write_bytes(path.read_bytes().replace(struct.pack("<HHII", 339, 3, 1, 2), struct.pack("<HHII", 339, 3, 1, 1)))
    check(tmp_path / "few", with_second(few[..., None].astype(np.float32))[None])
    check(tmp_path / "many", with_second(many[..., None].astype(np.float32))[None])


def test_numbers_of_a_tiff_whose_white_is_zero_are_those_that_are_stored(tmp_path):
    """ImageJ saves so what it shows inverted; the same numbers with 16 bits are read alike."""
    numbers = PICTURES[..., 0]
    for name, shown in (("few", 255 - numbers), ("many", numbers.astype(np.uint16))):  # Pillow inverts 8 bits to show
        first, *others = map(Image.fromarray, shown)
        first.save(tmp_path / name, "TIFF", save_all=True, append_images=others, tiffinfo={262: 0})
        check(tmp_path / name, with_second(numbers[..., None].astype(np.float32))[None])


def save_pictures(folder, name, frames=range(12)):
    """Save both components of some frames under names such as "{0}_{1}": component, frame."""
    folder.mkdir()
    for number in frames:
        for component in (0, 1):
            picture = Image.fromarray(PICTURES[number, ..., component])
            picture.save(folder / f"{name.format('uv'[component], number, component)}.png")


@pytest.mark.parametrize(
    "name", ["ch{2}_t{1:03d}", "{0}{1}", "run7-{0}-{1:04d}-raw", "{0}_{1}000", "t{1}_ch{2}", "s1_t{1}_{0}_v2"]
)
def test_the_number_with_the_most_values_is_the_frame_and_the_rest_of_a_name_the_component(tmp_path, name):
    save_pictures(tmp_path / "a", name)
    check(tmp_path / "a", PICTURES[None].astype(np.float32))


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        (("u_003", "v_007"), "got 1, 2 and then 4 of 'u_#'"),
        (("u_003", "v_003"), "got 1, 2 and then 4 of 'u_#'"),
        (("v_007",), "got 5, 6 and then 8 of 'v_#'"),
        (("v_011",), "got frame 11 of only one of 'u_#' and 'v_#'"),
        (("u_000", "v_011"), "got frame 0 of only one"),
    ],
)
def test_missing_pictures_are_refused(tmp_path, missing, words):
    save_pictures(tmp_path / "a", "{0}_{1:03d}")
    for name in missing:
        (tmp_path / "a" / f"{name}.png").unlink()
    with pytest.raises(DataError, match=words):
        load(tmp_path / "a")


def test_pictures_that_are_not_numbered_by_frame_are_refused(tmp_path):
    save_pictures(tmp_path / "a", "t{1}_{0}_{1}")  # of two that vary alike, such as a time of the day, the last
    with pytest.raises(DataError, match="pictures numbered by frame, equally spaced, got 0 alone of 't0_u_#'"):
        load(tmp_path / "a")
    save_pictures(tmp_path / "b", "{0}_{1}")
    Image.fromarray(PICTURES[3, ..., 0]).save(tmp_path / "b" / "u_03.png")
    with pytest.raises(DataError, match="got 2, 3 and then 3 of 'u_#'"):
        load(tmp_path / "b")
    (tmp_path / "b" / "u_03.png").rename(tmp_path / "b" / "figure.png")
    with pytest.raises(DataError, match=r"the number of the frame in the name, got figure\.png"):
        load(tmp_path / "b")


def test_a_folder_of_pictures_with_a_data_file_or_several_pages_is_refused(tmp_path):
    save_pictures(tmp_path / "a", "{0}_{1}")
    np.savez(tmp_path / "a" / "forecast.npz", fields=np.zeros((10, 6, 8, 2), np.float32))
    with pytest.raises(DataError, match=r"either pictures or data files in .*, got 24 pictures and forecast\.npz"):
        load(tmp_path / "a")
    (tmp_path / "b").mkdir()
    for number in (1, 2):
        save_tiff(tmp_path / "b" / f"run{number}.tif")
    with pytest.raises(DataError, match=r"one picture in each file of a folder, got 24 pages in .*run1\.tif"):
        load(tmp_path / "b")


def save_tiff(path, **description):
    """Save all frames and components as pages, components first, described as ImageJ does."""
    first, *others = [Image.fromarray(page) for frame in PICTURES for page in np.moveaxis(frame, -1, 0)]
    text = "\n".join(["ImageJ=1.53t", "images=24", *(f"{name}={count}" for name, count in description.items()), ""])
    tags = {270: text, 282: 4.0, 283: 2.0} if description else {}
    first.save(path, save_all=True, append_images=others, tiffinfo=tags)


@pytest.mark.parametrize(
    ("unit", "said", "spacing", "length"),
    [
        ({"unit": "um"}, {}, (0.5, 0.25), 4.0),
        ({"unit": "pixel"}, {}, (1, 1), 1.0),
        ({}, {}, (1, 1), 1.0),
        ({"unit": "mm"}, {"spacing": (1, 1), "length": 9.0, "interval": 3.0}, (1, 1), 9.0),
    ],
)
def test_a_tiff_of_imagej_says_the_interval_and_the_sides_of_a_pixel(tmp_path, unit, said, spacing, length):
    save_tiff(tmp_path / "a.tif", channels=2, frames=12, finterval="2.5E-1", **unit)
    (found,) = load(tmp_path / "a.tif", reading=Reading(**said))
    assert (found.spacing, found.length) == (spacing, length)
    assert found.times[1] == said.get("interval", 0.25) and len(found.times) == 12
    save_tiff(tmp_path / "b.tif", channels=2, frames=12, finterval="0.0", tunit="sec")
    assert inspect(tmp_path / "b.tif").interval is None


@pytest.mark.parametrize(
    ("sizes", "spacing", "length"),
    [
        ('PhysicalSizeX="0.25" PhysicalSizeY="0.5"', (0.5, 0.25), 4.0),
        ('PhysicalSizeX="1e3" PhysicalSizeXUnit="nm" PhysicalSizeY="1000." PhysicalSizeYUnit="nm"', (1e3, 1e3), 16e3),
        ('PhysicalSizeX="1" PhysicalSizeY="1000" PhysicalSizeYUnit="nm"', (1, 1), 1.0),
        ('PhysicalSizeX="0.25"', (1, 1), 1.0),
        ('PhysicalSizeX="nan" PhysicalSizeY="-1"', (1, 1), 1.0),
    ],
)
def test_an_ome_tiff_says_the_interval_and_the_sides_of_a_pixel(tmp_path, sizes, spacing, length):
    pages = [page for frame in PICTURES for page in np.moveaxis(frame, -1, 0)]
    save_ome(tmp_path / "a.ome.tif", pages, f'DimensionOrder="XYCZT" {SIZES} TimeIncrement="30" {sizes}')
    (found,) = load(tmp_path / "a.ome.tif")
    assert (found.spacing, found.length, found.times[1]) == (spacing, length, 30)


def test_the_channels_of_a_tiff_of_imagej_are_components(tmp_path):
    save_tiff(tmp_path / "a.tif", channels=2, frames=12, hyperstack="true", mode="composite")
    check(tmp_path / "a.tif", PICTURES[None].astype(np.float32))
    save_tiff(tmp_path / "b.tif", frames=24)
    alternating = np.moveaxis(PICTURES, -1, 1).reshape(24, 16, 16, 1).astype(np.float32)
    check(tmp_path / "b.tif", with_second(alternating)[None])


@pytest.mark.parametrize(
    ("description", "words"),
    [
        ({"slices": 12, "channels": 2}, "got 2 channels, 12 slices and 1 frames in 24 pages"),
        ({"channels": 2, "frames": 13}, "got 2 channels, 1 slices and 13 frames in 24 pages"),
        ({"channels": 0, "frames": 12}, "got 0 channels"),
        ({"channels": 10**4000}, "got 0 channels"),
    ],
)
def test_a_tiff_of_imagej_with_other_pages_is_refused(tmp_path, description, words):
    save_tiff(tmp_path / "a.tif", **description)
    with pytest.raises(DataError, match=words):
        load(tmp_path / "a.tif")


def save_ome(path, pages, pixels, inside="", images=1):
    """Save pages with the OME-XML that describes them."""
    image = f'<Image ID="Image:0"><Pixels BigEndian="false" {pixels} Type="uint8">{inside}</Pixels></Image>'
    text = f'<?xml version="1.0" encoding="UTF-8"?><!-- Do not edit --><OME xmlns="http://o">{image * images}</OME>'
    first, *others = map(Image.fromarray, pages)
    first.save(path, save_all=True, append_images=others, tiffinfo={270: text})


def blocks(planes):
    return "".join(f'<TiffData FirstC="{c}" FirstT="{t}" FirstZ="0" IFD="{page}"/>' for page, (t, c) in planes)


SIZES = 'SizeC="2" SizeT="12" SizeX="16" SizeY="16" SizeZ="1"'
FRAMES_AND_CHANNELS = [(t, c) for t in range(12) for c in range(2)]


@pytest.mark.parametrize("order", ["XYCZT", "XYZCT", "XYTCZ", "XYZTC"])
@pytest.mark.parametrize("inside", ["", "<TiffData/>", '<TiffData IFD="0" PlaneCount="24"></TiffData>'])
def test_the_channels_of_an_ome_tiff_are_components_in_the_order_that_it_says(tmp_path, order, inside):
    places = sorted(FRAMES_AND_CHANNELS, key=lambda place: place if order in ("XYCZT", "XYZCT") else place[::-1])
    save_ome(
        tmp_path / "a.ome.tif", [PICTURES[t, ..., c] for t, c in places], f'DimensionOrder="{order}" {SIZES}', inside
    )
    check(tmp_path / "a.ome.tif", PICTURES[None].astype(np.float32))


def test_an_ome_tiff_may_say_where_each_plane_is(tmp_path):
    places = np.random.default_rng(0).permutation(FRAMES_AND_CHANNELS).tolist()
    pages, inside = [PICTURES[t, ..., c] for t, c in places], blocks(enumerate(places))
    save_ome(tmp_path / "a.ome.tif", pages, f'DimensionOrder="XYCZT" {SIZES}', inside)
    check(tmp_path / "a.ome.tif", PICTURES[None].astype(np.float32))


@pytest.mark.parametrize(
    ("sizes", "inside", "images", "words"),
    [
        (
            SIZES.replace("12", "13"),
            "",
            1,
            "got 1 images, the first of 2 channels, 1 slices and 13 frames, in 24 pages",
        ),
        (SIZES.replace('SizeZ="1"', 'SizeZ="2"'), "", 1, "2 slices and 12 frames"),
        (SIZES, "", 2, "got 2 images"),
        (SIZES.replace("12", "1" * 4000), "", 1, "and 0 frames"),
        (SIZES, blocks(enumerate(FRAMES_AND_CHANNELS[:-1])), 1, "2 channels, 1 slices and 12 frames, in 24 pages"),
        (SIZES, blocks((0, place) for place in FRAMES_AND_CHANNELS), 1, "in 24 pages"),  # of several files
        (SIZES, "<TiffData/>" * 10_000, 1, "in 24 pages"),
    ],
)
def test_an_ome_tiff_with_other_pages_than_it_says_is_refused(tmp_path, sizes, inside, images, words):
    pages = [PICTURES[t, ..., c] for t, c in FRAMES_AND_CHANNELS]
    save_ome(tmp_path / "a.ome.tif", pages, f'DimensionOrder="XYCZT" {sizes}', inside, images)
    with pytest.raises(DataError, match=words):
        load(tmp_path / "a.ome.tif")


@pytest.mark.parametrize(
    ("shape", "fits"),
    [((24, 16, 16), True), ((24, 1, 16, 16), True), ((12, 2, 16, 16), False), ((2, 12, 16, 16), False)],
)
def test_pages_of_which_tifffile_says_that_they_are_no_frames_are_refused(tmp_path, shape, fits):
    pages = np.moveaxis(PICTURES, -1, 1).reshape(24, 16, 16)
    first, *others = map(Image.fromarray, pages)
    text = json.dumps({"axes": None, "shape": shape})
    first.save(tmp_path / "a.tif", save_all=True, append_images=others, tiffinfo={270: text})
    if fits:
        check(tmp_path / "a.tif", with_second(pages[..., None].astype(np.float32))[None])
        return
    with pytest.raises(DataError, match=rf"expected pages that are frames, got 24 pages of an array \({shape[0]}, "):
        load(tmp_path / "a.tif")


@pytest.mark.parametrize("compression", [None, "tiff_lzw"])
def test_the_pages_of_a_tiff_are_frames_and_read_in_one_go(tmp_path, monkeypatch, compression):
    first, *others = [Image.fromarray(frame[..., 0]) for frame in PICTURES]
    first.save(tmp_path / "a.tif", save_all=True, append_images=others, compression=compression)
    opened = mock.Mock(wraps=Image.open)
    monkeypatch.setattr(Image, "open", opened)
    check(tmp_path / "a.tif", with_second(PICTURES[..., :1].astype(np.float32))[None])
    assert opened.call_count == 3  # for the pages that there are, for the kind of their numbers, and for these
