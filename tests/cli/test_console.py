import pytest

from rdjepa.cli.console import error_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0000"), (0.12345, "0.1235"), (0.00099, "9.90e-04"), (3e-9, "3.00e-09"), (8.2e9, "8.20e+09")],
)
def test_errors_are_never_hidden_nor_buried_by_their_digits(value, text):
    assert error_text(value) == text
