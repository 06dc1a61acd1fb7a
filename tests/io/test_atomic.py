"""Whole files or nothing, under the name that was given."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rdjepa.errors import OutputError, RdjepaError
from rdjepa.io import atomic
from rdjepa.io.atomic import REFUSALS, making, replacing, write_arrays, write_bytes


def test_what_was_written_is_read_and_replaced_whole(tmp_path):
    path = tmp_path / "deep" / "file.bin"
    assert write_bytes(path, b"old") == path
    write_bytes(path, memoryview(b"new"))
    assert path.read_bytes() == b"new"
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]


@pytest.mark.parametrize("name", ["x", "x.npy", "x.npz", "x.y.z"])
def test_arrays_lie_under_the_name_as_given(tmp_path, name):
    write_arrays(tmp_path / name, a=np.arange(3))
    assert [p.name for p in tmp_path.iterdir()] == [name]
    with np.load(tmp_path / name) as arrays:
        assert arrays["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("number", sorted(REFUSALS))
def test_a_refusal_of_the_system_is_one_sentence_and_keeps_the_old_file(tmp_path, monkeypatch, number):
    path = write_bytes(tmp_path / "x", b"old")

    def refuse(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OutputError, match=r"expected to write .*, got .*; ") as refused:
        write_bytes(path, b"new")
    assert isinstance(refused.value, RdjepaError | OSError) and "\n" not in str(refused.value)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_an_error_while_writing_keeps_the_old_file(tmp_path):
    path = write_bytes(tmp_path / "x", b"old")
    with pytest.raises(ZeroDivisionError), replacing(path) as part:
        part.write_bytes(b"half")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_names_that_no_file_can_have_are_one_sentence(tmp_path):
    write_bytes(tmp_path / "file", b"")
    for path, reason in (
        (tmp_path, "a directory of this name"),
        (tmp_path / "file" / "below", "a file where a directory is needed"),
        (tmp_path / ("x" * 300), "a name that is too long"),
    ):
        with pytest.raises(OutputError, match=reason):
            write_bytes(path, b"")


def test_a_home_directory_that_is_not_written_out_becomes_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for write in (lambda: write_bytes("~/x", b""), lambda: making("~/x").__enter__()):
        with pytest.raises(OutputError, match=r"home directory written out, got ~/x; .* Path\.expanduser\(\)"):
            write()
    assert not list(tmp_path.iterdir())
    write_bytes("~x", b"")


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "deep" / "made"
    with making(target) as folder:
        (folder / "file").write_bytes(b"new")
        assert folder.name == "made" and not target.exists()
    assert [path.name for path in target.parent.iterdir()] == ["made"] and (target / "file").read_bytes() == b"new"
    with pytest.raises(ZeroDivisionError), making(tmp_path / "other") as folder:
        (folder / "file").write_bytes(b"half")
        raise ZeroDivisionError
    with pytest.raises(OutputError, match="got a folder of this name; choose another"), making(target):
        pass
    with pytest.raises(OutputError, match="got a name that is too long"), making(tmp_path / ("a" * 300)):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["deep"] and (target / "file").read_bytes() == b"new"


def test_other_errors_of_the_system_stay_what_they_are(tmp_path, monkeypatch):
    def broken(descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output") as raised:
        write_bytes(tmp_path / "x", b"")
    assert not isinstance(raised.value, OutputError) and list(tmp_path.iterdir()) == []


def age(*paths):
    """Have files and folders changed two hours ago."""
    for path in paths:
        os.utime(path, (time.time() - 7200,) * 2)


def test_what_a_killed_writer_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    host = atomic._HOST
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left, folder = (tmp_path / f".a.json.{host}-{dead.pid}.x{number}.part" for number in (1, 4))
    (folder / "a.json").mkdir(parents=True)
    others = [tmp_path / f".a.json.{host}-{os.getpid()}.x2.part", tmp_path / f".a.json.elsewhere-{dead.pid}.x3.part"]
    recent, growing = (tmp_path / f".a.json.{host}-{dead.pid}.x{number}.part" for number in (5, 6))
    growing.mkdir()  # of a container of this name, whose processes are not seen here
    for path in (left, *others, recent, growing / "b"):
        path.touch()
    age(left, folder / "a.json", folder, *others, growing)
    write_bytes(tmp_path / "a.json", b"{}")
    assert not left.exists() and not folder.exists() and all(path.exists() for path in (*others, recent, growing))


def test_a_leftover_that_cannot_be_removed_hinders_nobody(tmp_path, monkeypatch):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = tmp_path / f".a.json.{atomic._HOST}-{dead.pid}.x1.part"
    left.touch()
    age(left)

    def refuse(path, missing_ok=False):  # a file of another user in a folder that all may write to
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        atomic._sweep(tmp_path)
    assert write_bytes(tmp_path / "a.json", b"{}").read_bytes() == b"{}" and left.exists()


def test_a_name_as_long_as_the_system_takes_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "_HOST", "h" * 64)  # the longest one on Linux
    for name in ("x" * 255, "\N{SNOWMAN}" * 85, "\N{GRINNING FACE}" * 63):
        assert write_bytes(tmp_path / name, b"1").read_bytes() == b"1"


def test_too_many_folders_and_a_loop_of_links_are_one_sentence(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "loop" / "a", tmp_path.joinpath(*["a"] * 2000)):
        with pytest.raises(OutputError, match=r"^expected to write "):
            write_bytes(path / "b", b"")


def test_a_new_file_has_the_rights_that_the_user_gives_files_and_one_that_is_replaced_keeps_its_own(tmp_path):
    script = "import os, sys; os.umask(0o027); from rdjepa.io.atomic import write_bytes; write_bytes(sys.argv[1], b'')"
    subprocess.run([sys.executable, "-c", script, tmp_path / "new"], check=True)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640
    (tmp_path / "new").chmod(0o600)
    write_bytes(tmp_path / "new", b"again")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600


def test_through_a_link_the_file_that_it_stands_for_is_written(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "file")
    for content in (b"one", b"two"):
        write_bytes(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink() and (tmp_path / "folder" / "file").read_bytes() == content


def test_a_pipe_is_refused_and_stays_one_by_itself_and_through_a_link(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(
            OutputError, match=f"expected a file's name, got the device or pipe .*{name}; choose another"
        ):
            write_bytes(tmp_path / name, b"new")
        assert (tmp_path / name).is_fifo() and len(list(tmp_path.iterdir())) == 2
