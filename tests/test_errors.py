import pytest

from rdjepa.errors import DataError, OutputError, RdjepaError


@pytest.mark.parametrize("kind", [RdjepaError, DataError, OutputError])
def test_a_message_is_one_line_whatever_name_is_in_it(kind):
    assert str(kind("expected a, got b\n\x0c\x1ec\x85ü; do d")) == "expected a, got b\\n\\x0c\\x1ec\\x85ü; do d"
