import numpy as np
import pytest
import torch

import rdjepa
from rdjepa.errors import DataError, Note, OutputError, RdjepaError, out_of_memory


@pytest.mark.parametrize("kind", [RdjepaError, DataError, OutputError])
def test_a_message_is_one_line_whatever_name_is_in_it(kind):
    assert str(kind("expected a, got b\n\x0c\x1ec\x85ü; do d")) == "expected a, got b\\n\\x0c\\x1ec\\x85ü; do d"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 9 TiB"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB"),
        RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported asynchronously"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        RuntimeError("cuFFT error: CUFFT_ALLOC_FAILED"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
    ids=str,
)
def test_memory_that_ran_out_is_known_by_any_of_its_words(error):
    assert out_of_memory(error)


@pytest.mark.parametrize("error", [RuntimeError("CUDA error: invalid device ordinal"), ValueError("out of memory")])
def test_other_errors_are_not_of_memory(error):
    assert not out_of_memory(error)


def test_a_warning_shows_the_line_of_the_user_and_not_one_of_the_package():
    forecaster = rdjepa.adapt("nano", np.random.default_rng(0).random((12, 64, 64, 2)), steps=0, base="none")
    with pytest.warns(UserWarning, match="not finite") as caught:
        forecaster.forecast(np.full((4, 64, 64, 2), 1e30))  # below a decorator of torch
    with pytest.warns(Note, match="averaged over blocks") as also:
        rdjepa.evaluate(forecaster, np.random.default_rng(0).random((1, 9, 128, 128, 2)), resample=True)
    shown = {str(warning.message)[:20]: warning.filename for warning in (*caught, *also)}
    assert len(shown) == 2 and set(shown.values()) == {__file__}
