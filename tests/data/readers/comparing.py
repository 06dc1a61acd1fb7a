"""What a reader found, compared with what was written."""

import numpy as np
import pytest

from rdjepa.data.readers import load


def check(source, expected, interval=1.0, length=1.0, **options):
    found = load(source, **options)
    assert np.array_equal(np.stack([each.fields for each in found]), expected)
    assert all(each.fields.dtype == np.float32 for each in found)
    assert found[0].times[1] - found[0].times[0] == pytest.approx(interval)
    assert found[0].length == pytest.approx(length)
