"""A study directory."""

import errno
import os

import pytest

from rdjepa.errors import StudyError
from rdjepa.study.directory import RECORD, RECORDS, Directory, differing


def test_a_cell_is_written_whatever_a_killed_writer_of_it_left(tmp_path):
    directory = Directory(tmp_path)
    left = tmp_path / "cells" / ".0123.host-1.abcd.part"
    left.mkdir(parents=True)
    (left / "rows.parquet").write_bytes(b"half")
    directory.finish("0123", {RECORD: b"{}"})
    assert directory.is_done("0123")
    assert [path.name for path in directory.cell("0123").iterdir()] == [RECORD]


def test_a_cell_is_running_while_it_is_locked(tmp_path):
    directory = Directory(tmp_path)
    with directory.lock("0123") as locked:
        assert locked and Directory(tmp_path).is_running("0123")
        with Directory(tmp_path).lock("0123") as again:
            assert not again
    assert not directory.is_running("0123")


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_nothing_is_known_to_run_in_a_directory_that_may_only_be_read(tmp_path, monkeypatch, number):
    directory, opened = Directory(tmp_path), os.open
    with directory.lock("0123"):
        pass
    (tmp_path / "locks" / "0123.lock").touch()  # as a process that was killed leaves it

    def refuse(path, flags, *rest, **others):
        if flags & (os.O_WRONLY | os.O_RDWR) and str(path).endswith(".lock"):
            raise OSError(number, os.strerror(number))
        return opened(path, flags, *rest, **others)

    monkeypatch.setattr(os, "open", refuse)
    assert not directory.is_running("0123")
    monkeypatch.undo()
    assert not directory.is_running("0123")


def test_settings_that_differ_are_named_one_by_one():
    first = {"adapt": {"steps": 2_000, "clip": 1.0, "seed": 0}, "test": 30, "curve": [1, 5]}
    second = {"adapt": {"steps": 500, "clip": 1.0}, "test": 30, "curve": [1]}
    assert differing(first, first) == []
    assert differing(first, second) == ["adapt.seed", "adapt.steps", "curve"]


@pytest.mark.parametrize(
    "use",
    [Directory.read, lambda directory: directory.claim("nano", {}), lambda directory: directory.check("nano", {})],
)
def test_exported_rows_are_no_study_directory(tmp_path, use):
    (tmp_path / RECORDS).write_text("{}")
    with pytest.raises(StudyError, match=r"exported rows .*; choose another --root, .* --known"):
        use(Directory(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [RECORDS]
