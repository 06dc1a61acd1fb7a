import re

import pytest

from rdjepa.cli.console import console, error_table, error_text, progress, say


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0000"), (0.12345, "0.1235"), (0.00099, "9.90e-04"), (3e-9, "3.00e-09"), (8.2e9, "8.20e+09")],
)
def test_errors_are_never_hidden_nor_buried_by_their_digits(value, text):
    assert error_text(value) == text


@pytest.mark.parametrize("name", ["runs[v2]/forecast.npz", "[/b].npz", "a [red]b.npz", ":smile:.npz"])
def test_names_are_printed_as_they_are(capsys, name):
    say(f"rows in {name}")
    console.print(error_table(name, {name: {"mse": {1: 0.5}}}, "mse"))
    with progress(name) as update:
        update(1, 1, name)
    assert capsys.readouterr().out.count(name) == 5


def test_a_log_has_a_plain_line_a_minute_and_one_at_the_end(capsys, monkeypatch):
    now = iter(range(0, 10_000, 25))
    monkeypatch.setattr("rdjepa.cli.console.time.monotonic", lambda: next(now))
    note = "loss 0.1234 in " + "/folder" * 20
    with progress("pretrain") as update:
        for done in range(1, 9):
            update(done, 8, note)
    lines = capsys.readouterr().out.splitlines()
    found = [
        re.fullmatch(rf"pretrain: (\d) of 8 in \d:\d\d:\d\d(, \d:\d\d:\d\d left)?, {note}", line) for line in lines
    ]
    assert len(lines) == 3 and all(found) and lines[-1].startswith("pretrain: 8 of 8")


def test_a_job_that_stops_says_how_far_it_came_and_one_that_never_began_says_nothing(capsys):
    with pytest.raises(OSError, match="full"), progress("simulate") as update:
        update(3, 9)
        raise OSError("full")
    with progress("simulate"):
        pass
    assert re.fullmatch(r"simulate: 3 of 9 in \d:\d\d:\d\d\n", capsys.readouterr().out)
