import numpy as np
import pytest

from rdjepa.data.fields import block_means
from rdjepa.data.readers import Reading, load
from rdjepa.data.regrid import Regridding, cell_means, has_walls
from rdjepa.data.trajectory import Trajectory
from rdjepa.errors import ArgumentError, DataError

RNG = np.random.default_rng(0)
SIZES = [(7, 3), (64, 48), (101, 64), (128, 64), (5, 5), (100, 99)]


def trajectory(fields, **known):
    return Trajectory(fields.astype(np.float32), np.arange(len(fields), dtype=float), **known)


def means(function, cells):
    """Means over the cells of [0, 1) of a function whose integral is given."""
    edges = np.arange(cells + 1) / cells
    return np.diff(function(edges)) * cells


@pytest.mark.parametrize(("many", "few"), SIZES)
def test_every_way_keeps_constants_and_the_mean(many, few):
    ways = ((many, few), (few, many))
    for matrix in (cell_means(*way, walls) for way in ways for walls in (False, True)):
        np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_allclose(matrix.mean(axis=0), 1 / matrix.shape[1], rtol=1e-10)


@pytest.mark.parametrize("size", [16, 32, 64])
def test_of_multiples_block_means_are_taken(size):
    fields = RNG.normal(size=(3, 64, 64, 2)).astype(np.float32)
    there = Regridding((64, 64), size).there(fields)
    assert np.array_equal(there, block_means(fields, size)) and there.dtype == np.float32
    np.testing.assert_allclose(cell_means(64, size), np.repeat(np.eye(size), 64 // size, 1) * size / 64, atol=1e-12)


@pytest.mark.parametrize("walls", [False, True])
@pytest.mark.parametrize(("few", "factor"), [(8, 2), (9, 3), (16, 4)])
def test_refined_fields_average_to_what_they_were(few, factor, walls):
    there_and_back = cell_means(few * factor, few, walls) @ cell_means(few, few * factor, walls)
    np.testing.assert_allclose(there_and_back, np.eye(few), atol=1e-12)


@pytest.mark.parametrize(("few", "many"), [(16, 40), (17, 40), (16, 32), (96, 64), (100, 64), (65, 64), (48, 7)])
def test_waves_that_the_grid_resolves_are_exact_on_any_other(few, many):
    for k in range(1, (few - 1) // 2 + 1):
        wave = lambda x, k=k: np.sin(2 * np.pi * k * x + 0.3)  # noqa: E731
        np.testing.assert_allclose(cell_means(few, many) @ means(wave, few), means(wave, many), atol=1e-11)
    for k in range(1, few):
        wall = lambda x, k=k: np.sin(np.pi * k * x)  # noqa: E731  its derivative, a cosine, has no flux at both ends
        np.testing.assert_allclose(cell_means(few, many, walls=True) @ means(wall, few), means(wall, many), atol=1e-10)


def test_grids_that_are_not_square_come_back():
    fields = np.stack([np.cos(np.linspace(0, 6, 48))[:, None] + np.sin(np.linspace(0, 6, 80))] * 2, -1)[None]
    way = Regridding((48, 80), 64, walls=True)
    there = way.there(fields)
    assert there.shape == (1, 64, 64, 2) and way.back(there).shape == fields.shape
    np.testing.assert_allclose(there.mean((1, 2)), fields.mean((1, 2)), atol=1e-12)
    assert way.loss(fields[0]) < 0.01 < Regridding((48, 80), 4, walls=True).loss(fields[0])
    assert way.method() == ("averaged and refined by Fourier series, mirrored at the walls, 48 x 80 to 64 x 64 points")
    assert way.spacing((1.0, 1.0)) == (0.75, 1.25) and way.spacing((5.0, 3.0)) == (3.75, 3.75)
    with pytest.raises(DataError, match="expected fields on 48 x 80 points"):
        way.there(there)


def test_a_constant_frame_and_a_refined_one_lose_nothing():
    assert Regridding((32, 32), 8).loss(np.ones((32, 32, 2))) == 0
    assert Regridding((8, 8), 32).loss(RNG.normal(size=(8, 8, 2))) < 1e-12


def test_walls_are_what_a_trajectory_says_or_its_fields_show():
    x = (np.arange(32) + 0.5) / 32
    periodic = np.stack([np.sin(2 * np.pi * (x[:, None] + x + t / 10)) for t in range(9)])[..., None]
    sloping = np.stack([np.sin(1.5 * (x[:, None] + x) + t / 10) for t in range(9)])[..., None]
    assert not has_walls(trajectory(periodic))
    assert has_walls(trajectory(periodic, boundary="neumann")) and has_walls(trajectory(sloping))
    assert not has_walls(trajectory(sloping, boundary="periodic"))


def test_what_is_said_of_the_boundary_comes_before_what_fields_show():
    x = (np.arange(32) + 0.5) / 32
    sloping = np.stack([np.sin(1.5 * (x[:, None] + x) + t / 10) for t in range(9)])[..., None].repeat(2, -1)
    assert not has_walls(trajectory(sloping), "periodic") and has_walls(trajectory(np.ones_like(sloping)), "walls")
    refined = {}
    for boundary in ("walls", "periodic"):
        (read,) = load(sloping, grid=48, reading=Reading(boundary=boundary))
        assert read.boundary == boundary
        refined[boundary] = read.fields
    (guessed,) = load(sloping, grid=48)
    assert np.array_equal(guessed.fields, refined["walls"]) and guessed.boundary == "walls"
    assert load(sloping)[0].boundary == "unknown"  # what is not resampled still shows them
    assert not np.array_equal(guessed.fields, refined["periodic"])
    with pytest.raises(ArgumentError, match="expected a boundary periodic or walls, got 'open'"):
        Reading(boundary="open")
