"""A study directory."""

from rdjepa.study.directory import RECORD, Directory


def test_what_a_killed_writer_of_a_cell_left_is_replaced(tmp_path):
    directory = Directory(tmp_path)
    left = tmp_path / "cells" / ".0123"
    left.mkdir(parents=True)
    (left / "rows.parquet").write_bytes(b"half")
    directory.finish("0123", {RECORD: b"{}"})
    assert directory.is_done("0123") and not left.exists()
    assert [path.name for path in directory.cell("0123").iterdir()] == [RECORD]


def test_a_cell_is_running_while_it_is_locked(tmp_path):
    directory = Directory(tmp_path)
    with directory.lock("0123") as locked:
        assert locked and Directory(tmp_path).is_running("0123")
        with Directory(tmp_path).lock("0123") as again:
            assert not again
    assert not directory.is_running("0123")
