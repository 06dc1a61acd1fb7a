from rdjepa import systems
from rdjepa.systems.describe import describe


def test_every_system_is_described_with_its_equation_and_ranges():
    for name in systems.names():
        text = describe(systems.get(name))
        assert r"\partial_t v" in text
        assert all(c.name in text for c in systems.get(name).coefficients)
