import pytest

from rdjepa.cli.console import console, error_table, error_text, progress


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0000"), (0.12345, "0.1235"), (0.00099, "9.90e-04"), (3e-9, "3.00e-09"), (8.2e9, "8.20e+09")],
)
def test_errors_are_never_hidden_nor_buried_by_their_digits(value, text):
    assert error_text(value) == text


@pytest.mark.parametrize("name", ["runs[v2]/forecast.npz", "[/b].npz", "a [red]b.npz", ":smile:.npz"])
def test_names_are_printed_as_they_are(capsys, name):
    console.print(f"rows in {name}")
    console.print(error_table(name, {name: {"mse": {1: 0.5}}}, "mse"))
    with progress(name) as update:
        update(1, 1, name)
    assert capsys.readouterr().out.count(name) == 5
