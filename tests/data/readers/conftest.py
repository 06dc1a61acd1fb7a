import warnings

import pytest

from rdjepa.errors import Note


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        yield
