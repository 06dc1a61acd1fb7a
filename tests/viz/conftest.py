from typing import Any

import pytest

from rdjepa.viz import figures


@pytest.fixture
def drawn(monkeypatch):
    """The figures that would be written to files, in this order."""
    found: list[Any] = []
    monkeypatch.setattr(figures, "write", lambda figure, path: found.append(figure))
    return found
