import platform

from rdjepa.io.provenance import processor, software


def test_processor_is_named_and_recorded():
    assert processor()
    assert processor() != "x86_64" or platform.system() != "Linux"  # the architecture alone identifies no timing
    assert set(software()) == {"rdjepa", "source", "python", "torch", "numpy", "device", "threads"}
