import json
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import pytest

from rdjepa.errors import CheckpointError, DataError
from rdjepa.io import sealed


@dataclass(frozen=True)
class Point:
    x: float
    names: tuple[str, ...] = ()

    def __post_init__(self):
        if self.x < 0:
            raise DataError("expected a positive x")


class Loose(TypedDict):
    x: int
    y: NotRequired[dict[str, int]]


def test_what_is_written_is_read_back(tmp_path):
    path = sealed.write(tmp_path / "a.json", {"x": 0.1 + 0.2, "names": ("µ", "b")})
    assert sealed.read(path, Point, "") == Point(0.1 + 0.2, ("µ", "b"))
    assert sealed.read(path, dict, "") == {"x": 0.1 + 0.2, "names": ["µ", "b"]}


def test_the_order_of_entries_does_not_matter_and_any_value_does():
    one, other = {"a": 1, "b": [1, {"c": 2.5}]}, {"b": [1, {"c": 2.5}], "a": 1}
    assert sealed.seal(one) == sealed.seal(other)
    for changed in ({"a": 2}, {"a": 1.0}, {"a": "1"}, {"a": True}, {"b": [1, {"c": 2.5, "d": 0}]}, {"c": 0}):
        assert sealed.seal(one | changed) != sealed.seal(one)


def test_no_flipped_bit_changes_a_value_unnoticed():
    text = sealed.encode({"x": 3, "y": {"left": 10, "right": -2}}).encode()
    expected, silent = sealed.decode(text, Loose, "", ""), 0
    for place in range(8 * len(text)):
        flipped = bytearray(text)
        flipped[place // 8] ^= 1 << place % 8
        try:
            assert sealed.decode(bytes(flipped), Loose, "in it", "make it again") == expected
            silent += 1
        except DataError as error:
            assert str(error).startswith("expected ") and "; make it again" in str(error)
    assert silent <= 8 * text.count(b" ")  # white space of another kind


def test_no_beginning_of_a_file_is_taken_for_the_whole(tmp_path):
    text = sealed.encode({"x": 3, "y": {"left": 10}})
    for length in range(len(text)):
        with pytest.raises(DataError, match="readable record"):
            sealed.decode(text[:length], Loose, "", "")


@pytest.mark.parametrize(
    "text",
    [b"", b"\xff\xfe", b"[]", b"null", b'"x"', b"{}", b'{"x": "1"}', b'{"x": null}', b'{"x": NaN}', b'{"x": 1e999}',
     b'{"x": -1}', b'{"x": 1, "names": "ab"}', b'{"x": 1, "z": 2}', b"[" * 100_000, b'{"x":' * 100_000],
)  # fmt: skip
def test_anything_else_is_one_sentence(text, tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(CheckpointError) as found:
        sealed.read(path, Point, "fetch it again", CheckpointError)
    assert str(path) in str(found.value) and "\n" not in str(found.value) and len(str(found.value)) < 500
    assert str(found.value).endswith("; fetch it again")


def test_files_without_a_seal_are_read_by_their_types(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"x": 1}))
    assert sealed.read(tmp_path / "a.json", Point, "") == Point(1)


def test_no_file_a_directory_and_a_pipe_are_refused(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "none", tmp_path, tmp_path / "pipe"):
        with pytest.raises(DataError, match="got no file; look"):
            sealed.read(path, dict, "look")


def test_a_file_too_large_to_be_a_record_is_not_read(tmp_path):
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(sealed.LARGEST + 1)
    with pytest.raises(DataError, match="at most"):
        sealed.read(tmp_path / "large.json", dict, "")


def test_numbers_that_json_cannot_hold_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        sealed.write(tmp_path / "a.json", {"x": float("nan")})
    assert not (tmp_path / "a.json").exists()
