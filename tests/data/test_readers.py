import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from rdjepa.data import store, survey
from rdjepa.data.readers import Reading, load
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import ArgumentError, DataError, Note
from rdjepa.forecasters.base import CONTEXT

Make = Callable[..., Trajectory]
ONE = np.random.default_rng(0).normal(size=(10, 6, 8, 2)).astype(np.float32)
MANY = np.random.default_rng(1).normal(size=(3, 10, 6, 8, 2)).astype(np.float32)


def write_the_well(
    path: Path, names: tuple[str, ...] = ("A", "B"), bc_type: str = "PERIODIC", frames: int = 10
) -> None:
    """A file of The Well as others write it: three trajectories, one constant scalar and one per trajectory."""
    with h5py.File(path, "w") as file:
        file.attrs["dataset_name"] = "elsewhere"
        file["dimensions/time"] = np.linspace(0, 90, 10, dtype=np.float32)[:frames]
        file["dimensions/x"] = np.linspace(-1, 1, 8, endpoint=False, dtype=np.float32)
        file["dimensions/y"] = np.linspace(-1, 1, 6, endpoint=False, dtype=np.float32)
        for order in range(3):
            file.create_group(f"t{order}_fields")
        for component, name in enumerate(names):
            file["t0_fields"][name] = MANY[:, :frames, ..., component % 2].swapaxes(2, 3)
        file["t0_fields"].attrs["field_names"] = list(names)
        file["scalars/F"] = np.array([0.1, 0.2, 0.3])
        file["scalars/F"].attrs.update(sample_varying=True, time_varying=False)
        file["scalars/k"] = 0.05
        file["scalars/k"].attrs.update(sample_varying=False, time_varying=False)
        file.create_group("boundary_conditions/x").attrs["bc_type"] = bc_type


def write_pdebench(path: Path, components: int = 2, frames: int = 10) -> None:
    with h5py.File(path, "w") as file:
        for index in range(3):
            group = file.create_group(f"{index:04d}")
            group["data"] = MANY[index, :frames, ..., :components]
            group["grid/t"] = np.linspace(0, 4.5, 10, dtype=np.float32)[:frames]
            group["grid/x"] = -1 + (np.arange(8) + 0.5) / 4


def assert_fields(found: list[Trajectory], expected: np.ndarray) -> None:
    assert np.array_equal(np.stack([t.fields for t in found]), expected)
    assert all(t.fields.dtype == np.float32 for t in found)


def test_arrays_tensors_and_trajectories(make: Make) -> None:
    assert_fields(load(ONE), ONE[None])
    assert_fields(load(MANY), MANY)
    assert_fields(load(MANY.astype(np.float64)), MANY)
    assert_fields(load(torch.from_numpy(MANY)), MANY)
    assert_fields(load(list(MANY)), MANY)
    trajectory = make()
    assert load(trajectory) == [trajectory]
    assert [len(t.fields) for t in load([trajectory, ONE, MANY])] == [12, 10, 10, 10, 10]
    assert load(ONE)[0].times.tolist() == list(range(10)) and load(ONE)[0].key is None


@pytest.mark.parametrize("suffix", [".npy", ".npz", ""])
def test_numpy_files_are_told_by_content(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"fields{suffix}"
    with path.open("wb") as file:
        if suffix == ".npz":
            np.savez(file, anything=MANY)
        else:
            np.save(file, MANY)
    assert_fields(load(path), MANY)
    assert_fields(load(str(path)), MANY)


def test_an_archive_may_name_fields_and_times(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", fields=ONE, times=np.arange(10) * 0.5, other=np.zeros(2))
    (trajectory,) = load(tmp_path / "a.npz")
    assert np.array_equal(trajectory.fields, ONE) and trajectory.times[-1] == 4.5


def test_our_own_files_and_folders(tmp_path: Path, make: Make) -> None:
    written = [make(Key("gray_scott", index=i)) for i in range(3)]
    paths = [store.write(tmp_path, trajectory) for trajectory in written]
    store.write_stats(tmp_path / "gray_scott")
    (found,) = load(paths[1])
    assert found.key == written[1].key and np.array_equal(found.fields, written[1].fields)
    (paths[0].parent / "notes.txt").write_text("measured on a Tuesday")
    assert [t.key for t in load(paths[0].parent)] == [t.key for t in written]
    assert [t.key for t in load(paths[0].parent, limit=2)] == [t.key for t in written[:2]]


def test_a_folder_of_splits_is_not_mixed(tmp_path: Path, make: Make) -> None:
    store.write(tmp_path, make(Key("gray_scott", "pool")))
    store.write(tmp_path, make(Key("gray_scott", "test")))
    with pytest.raises(DataError, match="got none but the folders test, train; give the folder that holds them"):
        load(tmp_path / "gray_scott/data")
    (tmp_path / "b.jpg").write_bytes(b"\xff\xd8\xff")
    (tmp_path / "a.CSV").write_text("1,2")
    with pytest.raises(DataError, match=r"none but files of \.csv, \.jpg and the folders gray_scott; give the folder"):
        load(tmp_path)
    (tmp_path / "gray_scott").rename(tmp_path / ".hidden")
    with pytest.raises(DataError, match=r"none but files of \.csv, \.jpg; convert them to one of .* PNG or TIFF"):
        load(tmp_path)


def test_a_generic_file_of_the_well(tmp_path: Path) -> None:
    write_the_well(tmp_path / "a.hdf5")
    found = load(tmp_path / "a.hdf5")
    assert_fields(found, MANY)
    assert [t.coefficients for t in found] == [{"F": f, "k": 0.05} for f in (0.1, 0.2, 0.3)]
    assert found[0].times[-1] == 90 and found[0].length == pytest.approx(2) and found[0].boundary == "periodic"
    assert len(load(tmp_path / "a.hdf5", limit=1)) == 1


def test_some_trajectories_of_a_source_are_read_with_all_that_belongs_to_them(tmp_path: Path, make: Make) -> None:
    source = tmp_path / "a.hdf5"
    write_the_well(source)
    with h5py.File(source, "r+") as file:
        del file["dimensions/time"]
        file["dimensions/time"] = np.linspace(0, [1, 2, 3], 10, axis=1)
        file["dimensions/time"].attrs["sample_varying"] = True
    every, some = load(source), load(source, reading=Reading(index=(2, 0)))
    assert_fields(some, MANY[[0, 2]])
    assert [t.coefficients["F"] for t in some] == [0.1, 0.3]
    assert [t.times[-1] for t in some] == [t.times[-1] for t in every[::2]]
    found = survey.inspect(source, Reading(index=(2,)))
    assert found.trajectories == 1 and found.components[0].high == MANY[2, ..., 0].max()
    written = [store.write(tmp_path, make(Key("gray_scott", index=i))) for i in range(3)]
    mixed = [source, *written[:1], MANY, written[1]]
    found_of_mixed = load(mixed, reading=Reading(index=(1, 3, 5, 7)))
    assert_fields([found_of_mixed[0], found_of_mixed[2]], MANY[[1, 1]])
    assert [t.key and t.key.index for t in found_of_mixed] == [None, 0, None, 1]


def test_times_of_another_number_of_trajectories_are_refused_whichever_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", fields=MANY, times=np.linspace(0, [1, 2], 10, axis=1))
    for index in (None, (0, 2), (1,)):
        with pytest.raises(DataError, match="times"):
            load(tmp_path / "a.npz", reading=Reading(index=index))


def test_trajectories_that_are_not_there_are_refused_and_what_follows_those_that_are_is_not_read() -> None:
    with pytest.raises(DataError, match="positions from 0 to 2, as there are 3 in a ndarray, got 5; name those"):
        load(MANY, reading=Reading(index=(1, 5)))
    load([MANY, "nowhere"], reading=Reading(index=(2,)))
    for wrong in ((), (1, 1), (-1,), "01", (0.5,)):
        with pytest.raises(ArgumentError, match="index"):
            Reading(index=wrong)  # type: ignore[arg-type]


def test_names_of_the_well_may_be_texts_of_fixed_length(tmp_path: Path) -> None:
    write_the_well(tmp_path / "a.hdf5")
    with h5py.File(tmp_path / "a.hdf5", "r+") as file:
        file["t0_fields"].attrs["field_names"] = np.array([b"B", b"A"])
        file["boundary_conditions/x"].attrs["bc_type"] = np.bytes_(b"PERIODIC")
    (found, *_) = load(tmp_path / "a.hdf5")
    assert found.names == ("B", "A") and found.boundary == "periodic"
    assert np.array_equal(found.fields, MANY[0, ..., ::-1])


@pytest.mark.filterwarnings("error")
def test_a_scalar_of_the_well_is_one_value_or_one_for_each_trajectory(tmp_path: Path) -> None:
    write_the_well(tmp_path / "a.hdf5")
    with h5py.File(tmp_path / "a.hdf5", "r+") as file:
        file["scalars/D"] = np.array([0.5])
    assert [t.coefficients["D"] for t in load(tmp_path / "a.hdf5")] == [0.5] * 3
    with h5py.File(tmp_path / "a.hdf5", "r+") as file:
        file["scalars/many"] = np.arange(5.0)
    with pytest.warns(Note, match=r"scalar many of shape \(5,\) .* is left out, as it is not one for each of 3"):
        found = load(tmp_path / "a.hdf5")
    assert [set(t.coefficients) for t in found] == [{"D", "F", "k"}] * 3


def test_walls_of_the_well(tmp_path: Path) -> None:
    write_the_well(tmp_path / "a.hdf5", bc_type="WALL")
    assert load(tmp_path / "a.hdf5")[0].boundary == "wall"


def test_the_well_with_one_periodic_axis_is_taken_for_walls_and_says_so(tmp_path: Path) -> None:
    write_the_well(tmp_path / "a.hdf5")
    with h5py.File(tmp_path / "a.hdf5", "r+") as file:
        file.create_group("boundary_conditions/y").attrs["bc_type"] = "WALL"
    with pytest.warns(Note, match=r"only some sides .* periodic in .*a.hdf5, .* taken for walls; --boundary"):
        assert load(tmp_path / "a.hdf5")[0].boundary == "wall"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(tmp_path / "a.hdf5", reading=Reading(boundary="periodic"))[0].boundary == "periodic"


def test_our_file_reads_as_a_file_of_the_well(tmp_path: Path, make: Make) -> None:
    trajectory = make(boundary="robin")
    path = store.write(tmp_path, trajectory)
    with h5py.File(path, "r+") as file:
        del file.attrs["rdjepa_format_version"], file["rdjepa_record"]
    (found,) = load(path)
    assert np.array_equal(found.fields, trajectory.fields)
    assert found.boundary == "robin" and found.length == pytest.approx(2.5) and found.key is None
    assert found.coefficients == pytest.approx(trajectory.coefficients)


@pytest.mark.parametrize(("old", "new"), [("0001", "0005"), ("0001/data", "0001/dat"), ("0002", "x")])
def test_a_lost_group_of_pdebench_is_said(tmp_path: Path, old: str, new: str) -> None:
    write_pdebench(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file.move(old, new)
    with pytest.warns(Note, match="expected groups with consecutive numbers"):
        load(tmp_path / "a.h5")


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_a_tensor_with_a_gradient_is_read(kind: torch.dtype) -> None:
    tensor = torch.from_numpy(ONE).to(kind).requires_grad_()
    assert_fields(load(tensor), tensor.detach().float().numpy()[None])


def test_fields_too_small_to_be_standardized_are_refused() -> None:
    with pytest.raises(DataError, match="expected components that vary by at least 1e-05"):
        load(ONE * np.float32(1e-7))
    assert_fields(load(ONE * np.float32(1e-3)), ONE[None] * np.float32(1e-3))


@pytest.mark.parametrize("suffix", [".npy", ".png", ".h5"])
def test_a_damaged_file_among_others_is_refused(tmp_path: Path, suffix: str) -> None:
    for index in range(12):
        path = tmp_path / f"{index:02d}{suffix}"
        if suffix == ".npy":
            np.save(path, ONE)
        elif suffix == ".png":
            Image.fromarray(np.full((8, 8), index, np.uint8)).save(path)
        else:
            write_pdebench(path)
    content = path.read_bytes()
    path.write_bytes(b"\0" * 8 + content[8:])
    with pytest.raises(DataError, match=f"expected data in every {suffix} file"):
        load(tmp_path)


def test_fields_of_the_well_are_named_by_path_name_or_group_and_keep_their_format(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write_the_well(path, ("A", "B", "C"))
    with h5py.File(path, "a") as file:
        file["t1_fields/velocity"] = MANY.swapaxes(2, 3)
        file["t1_fields/gravity"] = np.zeros((3, 2))  # the same everywhere
    found = survey.inspect(path)
    assert [each.name for each in found.components] == ["A", "B", "C", "velocity_x", "velocity_y"]
    assert not found.usable and found.interval == 10 and found.grids == ((6, 8),)
    assert any("gravity (3, 2)" in each and "is left out" in each for each in found.remarks)
    for field in ("t1_fields/velocity", "velocity", "t0_fields/A,t0_fields/B", "A,B"):
        read = load(path, reading=Reading(field=field))
        assert_fields(read, MANY)
        assert read[0].times[1] == 10 and read[0].length == pytest.approx(2) and read[0].boundary == "periodic"
    assert_fields(load(path, reading=Reading(components=("velocity_x", "velocity_y"))), MANY)
    assert_fields(load(path, reading=Reading(components=("velocity_y", "A"))), MANY[..., ::-1])
    assert load(path, reading=Reading(field="t0_fields", components=("C",)))[0].coefficients["F"] == 0.1
    with pytest.raises(DataError, match="expected an array named 'D'"):
        load(path, reading=Reading(field="A,D"))
    assert_fields(load(path, reading=Reading(field="velocity", axes="b t x y c")), MANY)
    with pytest.raises(DataError, match="a different array for each component"):
        load(path, reading=Reading(field="A,A"))


def test_what_the_well_does_not_know_is_read_by_its_arrays(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write_the_well(path, ("A", "B"))
    with h5py.File(path, "a") as file:
        file["t1_fields/flow"] = np.concatenate([MANY, MANY[..., :1]], -1).swapaxes(2, 3)
        file["t1_fields/group/deep"] = 1.0
    assert_fields(load(path), MANY)
    reading = Reading(field="t1_fields/flow", components=(0, 1), axes="b t x y c")
    assert_fields(load(path, reading=reading), MANY)
    with h5py.File(path, "a") as file:
        del file["dimensions"]
    assert_fields(load(path, reading=Reading(field="t0_fields/A,t0_fields/B", axes="b t x y")), MANY)


def test_a_scalar_and_a_part_of_a_vector_may_have_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write_the_well(path, ("A", "flow_x"))
    with h5py.File(path, "a") as file:
        file["t1_fields/flow"] = 5 + MANY.swapaxes(2, 3)
    assert_fields(load(path, reading=Reading(components=("A", "flow_x"))), MANY)
    assert_fields(load(path, reading=Reading(components=("t1_fields/flow_x", "flow_y"))), 5 + MANY)


def test_a_constant_field_of_three_dimensions_is_no_movie(tmp_path: Path) -> None:
    write_the_well(tmp_path / "a.h5", ())
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file["t0_fields/mask"] = np.zeros((1, 10, 6, 4))
        file["dimensions/z"] = np.arange(4.0)
        file["t0_fields"].attrs["field_names"] = ["mask"]
    with pytest.raises(DataError, match="expected scalars"):
        load(tmp_path / "a.h5")


def test_a_file_of_the_well_in_three_dimensions_is_refused(tmp_path: Path) -> None:
    write_the_well(tmp_path / "a.h5", ())
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file["t0_fields/density"] = np.zeros((1, 10, 8, 6, 4))
        file["t0_fields"].attrs["field_names"] = ["density"]
    with pytest.raises(
        DataError, match=r"expected scalars \(B, T, X, Y\) or vectors .* got density \(1, 10, 8, 6, 4\)"
    ):
        load(tmp_path / "a.h5")


def test_pdebench_diffusion_reaction(tmp_path: Path) -> None:
    write_pdebench(tmp_path / "a.h5")
    found = load(tmp_path / "a.h5")
    assert_fields(found, MANY)
    assert found[0].boundary == "neumann" and found[0].length == pytest.approx(2) and found[0].times[-1] == 4.5
    assert found[0].spacing == (1.0, 1.0)  # nothing is said of the rows
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        for group in file.values():
            group["grid/y"] = -1 + (np.arange(MANY.shape[2]) + 0.5) / 2
    assert load(tmp_path / "a.h5")[0].spacing == pytest.approx((0.5, 0.25))


def foreign_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["tensor"] = np.zeros(3)


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda path: path.write_text("t,u,v\n"), "got a file that begins with b't,u,v"),
        (lambda path: path.write_bytes(b""), "got a file that begins with b''"),
        (foreign_hdf5, "expected an array .* got shape"),
        (lambda path: write_the_well(path, ("A", "B", "C")), r"got 3 \(A, B, C\) .* one or two .* as --components A,B"),
        (lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(50)), "truncated, damaged"),
        (lambda path: path.write_bytes(b"PK\x03\x04" + bytes(50)), "NumPy cannot read"),
        (lambda path: path.write_bytes(b"\x93NUMPY\x01\x00"), "NumPy cannot read"),
        (lambda path: np.save(path.open("wb"), np.array([None])), "NumPy cannot read"),
        (lambda path: np.savez(path.open("wb"), a=ONE, b=ONE), "'fields', got a, b .*; if each is a trajectory, stack"),
        (lambda path: np.savez(path.open("wb"), fields=ONE, times=np.zeros(3)), "expected one time per frame"),
        (lambda path: path.mkdir(), "expected data files directly in"),
        (lambda path: None, "got nothing at"),
    ],
)
def test_each_unknown_file_has_its_sentence(tmp_path: Path, write: Callable[[Path], object], sentence: str) -> None:
    path = tmp_path / "source"
    write(path)
    with pytest.raises(DataError, match=sentence) as caught:
        load(path)
    assert "; " in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (3.0, "got a float"),
        (None, "got a NoneType"),
        ({"fields": ONE}, "got a dict"),
        ([], "expected at least one trajectory"),
        (ONE[0], "looks like that of a single one"),
        (ONE[0, 0, 0], "expected an array"),
        (ONE[:8], "expected at least 9 frames"),
        (ONE > 0, "floating dtype"),
    ],
)
def test_each_unknown_object_has_its_sentence(source: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        load(source)


def test_a_list_that_contains_itself_is_refused() -> None:
    around: list[Any] = []
    around.append([around])
    with pytest.raises(DataError, match="a list that contains itself"):
        load(around)


def test_a_truncated_npz_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", fields=MANY)
    content = (tmp_path / "a.npz").read_bytes()
    for size in (len(content) // 2, len(content) - 30):
        (tmp_path / "a.npz").write_bytes(content[:size])
        with pytest.raises(DataError, match="NumPy cannot read"):
            load(tmp_path / "a.npz")


def test_four_frames_of_every_kind_are_enough_where_so_many_are_asked_for(make: Make, tmp_path: Path) -> None:
    short = MANY[:, :CONTEXT]
    for name in ("well", "pdebench", "numpy"):
        (tmp_path / name).mkdir()
    write_the_well(tmp_path / "well" / "a.hdf5", frames=CONTEXT)
    write_pdebench(tmp_path / "pdebench" / "a.h5", frames=CONTEXT)
    np.save(tmp_path / "numpy" / "a.npy", short)
    np.savez(tmp_path / "b.npz", fields=short, times=np.arange(CONTEXT))
    ours = store.write(tmp_path, make(Key("mine"), shape=short[0].shape))
    for source in (short, list(short), *(tmp_path / name for name in ("well", "pdebench", "numpy", "b.npz"))):
        assert_fields(load(source, minimum_frames=CONTEXT), short)
        with pytest.raises(DataError, match="at least 9 frames on the first axis, got 4"):
            load(source)
    assert load(ours, minimum_frames=CONTEXT)[0].fields.shape == short[0].shape
    with pytest.raises(DataError, match="at least 4 frames on the first axis, got 3"):
        load(short[:, 1:], minimum_frames=CONTEXT)
    with pytest.raises(DataError, match="expected at least 1 frames on the first axis, got 0"):
        load(short[:, :0], minimum_frames=1)


def test_a_choice_of_arrays_where_they_have_no_names_is_said_to_have_no_effect(tmp_path):
    np.save(tmp_path / "a.npy", MANY[0])
    for source in (MANY[0], tmp_path / "a.npy"):
        with pytest.warns(Note, match=r"--field \(field=\) chooses among named arrays, and has no effect on a source"):
            load(source, reading=Reading(field="u"))
    np.savez(tmp_path / "a.npz", u=MANY[0], v=MANY[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(tmp_path / "a.npz", reading=Reading(field="u"))
