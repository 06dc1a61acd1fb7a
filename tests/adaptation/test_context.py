"""A context is read by what its axes are called, in whatever it is given, and what it lacks is said in one sentence."""

import numpy as np
import pytest
import torch

import rdjepa
from rdjepa import forecasters
from rdjepa.adaptation.context import read_context
from rdjepa.data.fields import with_second
from rdjepa.errors import DataError
from rdjepa.forecasters.fno import Config

FIELDS = np.random.default_rng(0).standard_normal((9, 6, 6, 2)).astype(np.float32)
CONTEXT = FIELDS[:4]


@pytest.mark.parametrize(
    "dims", [("time", "y", "x", "component"), ("component", "x", "time", "y"), ("time", "x", "y", "component")]
)
def test_dimensions_of_xarray_are_found_by_their_names(dims):
    xarray = pytest.importorskip("xarray", reason="the extra `formats` is not installed")
    given = xarray.DataArray(CONTEXT, dims=("time", "y", "x", "component")).transpose(*dims)
    assert np.array_equal(read_context(given, 6, 2), CONTEXT)
    several = given.expand_dims("sample")
    assert np.array_equal(read_context(several, 6, 2), CONTEXT[None])
    pair = xarray.Dataset(
        {name: (("x", "time", "y"), CONTEXT[..., i].transpose(2, 0, 1)) for i, name in enumerate("uv")}
    )
    assert np.array_equal(read_context(pair, 6, 2), CONTEXT)
    with pytest.raises(DataError, match="dimensions with names such as"):
        read_context(given.rename(time="level"), 6, 2)


def test_components_of_xarray_are_found_by_the_names_of_the_adaptation():
    xarray = pytest.importorskip("xarray", reason="the extra `formats` is not installed")
    more = np.concatenate([CONTEXT[..., ::-1], CONTEXT[..., :1]], -1)
    given = xarray.DataArray(more, dims=("time", "y", "x", "component"), coords={"component": ["v", "u", "w"]})
    assert np.array_equal(read_context(given, 6, 2, names=("u", "v")), CONTEXT)
    pair = given.isel(component=[0, 1])
    assert np.array_equal(read_context(pair, 6, 2, names=("u", "v")), CONTEXT)
    assert np.array_equal(read_context(pair, 6, 2, names=("a", "b")), CONTEXT[..., ::-1])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (torch.from_numpy(CONTEXT) + 1j, "real numbers, got complex64"),
        (torch.from_numpy(CONTEXT) > 0, "real numbers, got bool"),
        (torch.from_numpy(CONTEXT).to_sparse(), "dense tensor with its values, got one of layout torch.sparse_coo"),
        (torch.empty(CONTEXT.shape, device="meta"), "dense tensor with its values, got one on the device meta"),
        ([np.ma.masked_greater(frame, 1) for frame in CONTEXT], "got masked ones"),
        (rdjepa.Trajectory(CONTEXT, np.arange(4.0)), r"got a Trajectory; give four .* trajectory\.fields\[-4:\]"),
        ([CONTEXT[0], CONTEXT[1, :3]], "equal frames, got rows of different lengths"),
        (np.zeros(4), r"shape \(T, 6, 6, 2\), T at least 4, got \(4,\)"),
        (CONTEXT[:3], r"T at least 4, got \(3, 6, 6, 2\)"),
        (CONTEXT[:, :5], r"got \(4, 5, 6, 2\); give whole frames"),
        (
            np.concatenate([CONTEXT, CONTEXT[..., :1]], -1),
            r"2 components on its last axis, got 3 in shape \(4, 6, 6, 3\)",
        ),
        (CONTEXT[..., :1], "2 components on its last axis, got 1"),
    ],
)
def test_a_context_that_cannot_be_read_gets_one_sentence(given, words):
    with pytest.raises(DataError, match=words):
        read_context(given, 6, 2)


def test_any_grid_needs_all_axes_too():
    assert read_context(CONTEXT[:, :5], None, 2).shape == (4, 5, 6, 2)
    with pytest.raises(DataError, match=r"shape \(T, H, W, 2\), T at least 4, got \(4,\)"):
        read_context(np.zeros(4), None, 2)


def test_a_tensor_is_read_in_its_own_precision():
    large = torch.from_numpy(CONTEXT).double() * 1e300
    with pytest.raises(DataError, match="within the range of float32"):
        read_context(large, 6, 2)
    assert np.array_equal(read_context(torch.from_numpy(CONTEXT).requires_grad_(), 6, 2), CONTEXT)


def test_five_frames_of_one_component_are_a_context_and_four_are_continued():
    alone = FIELDS[:, :, :, :1]
    pair = with_second(alone)
    assert np.array_equal(read_context(alone[:5], 6, 2, alone=True), pair[1:5])
    assert np.array_equal(read_context(alone[:4], 6, 2, alone=True), pair[:4])
    assert np.array_equal(read_context(alone[:9], 6, 2, alone=True), pair[1:9])
    batch = np.stack([alone[:5], alone[1:6]])
    assert np.array_equal(read_context(batch, 6, 2, alone=True), np.stack([pair[1:5], pair[2:6]]))
    assert np.array_equal(read_context(pair[2:6], 6, 2, alone=True), pair[2:6])
    for other in (CONTEXT, np.stack([pair[:4], CONTEXT])):
        with pytest.raises(DataError, match=r"one component that was adapted to.*as context\[\.\.\., :1\]"):
            read_context(other, 6, 2, alone=True)
    for short in (alone[:3], alone[:4, :, :, 0]):
        with pytest.raises(DataError, match=r"shape \(T, 6, 6, 1\)"):
            read_context(short, 6, 2, alone=True)


def test_a_forecaster_of_one_component_takes_its_frames_alone():
    model = forecasters.build("fno", Config(width=4, layers=1, modes=2, readout=4, grid=6), seed=0)
    forecaster = rdjepa.adapt(model, FIELDS[..., 0], steps=1, device="cpu")
    pair = with_second(FIELDS[..., :1])
    assert np.array_equal(forecaster.forecast(FIELDS[4:, ..., :1]), forecaster.forecast(pair[5:]))
    assert forecaster.rollout(FIELDS[4:, ..., :1], 7).shape == (7, 6, 6, 2)
    with pytest.raises(DataError, match="got another second component"):
        forecaster.forecast(CONTEXT)
