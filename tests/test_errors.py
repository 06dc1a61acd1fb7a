import numpy as np
import pytest

import rdjepa
from rdjepa.errors import DataError, Note, OutputError, RdjepaError


@pytest.mark.parametrize("kind", [RdjepaError, DataError, OutputError])
def test_a_message_is_one_line_whatever_name_is_in_it(kind):
    assert str(kind("expected a, got b\n\x0c\x1ec\x85ü; do d")) == "expected a, got b\\n\\x0c\\x1ec\\x85ü; do d"


def test_a_warning_shows_the_line_of_the_user_and_not_one_of_the_package():
    forecaster = rdjepa.adapt("nano-wide", np.random.default_rng(0).random((12, 64, 64, 2)), steps=0)
    with pytest.warns(UserWarning, match="not finite") as caught:
        forecaster.forecast(np.full((4, 64, 64, 2), 1e30))  # below a decorator of torch
    with pytest.warns(Note, match="averaged over blocks") as also:
        rdjepa.evaluate(forecaster, np.random.default_rng(0).random((1, 9, 128, 128, 2)), resample=True)
    shown = {str(warning.message)[:20]: warning.filename for warning in (*caught, *also)}
    assert len(shown) == 2 and set(shown.values()) == {__file__}
