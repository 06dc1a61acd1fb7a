from rdjepa import systems
from rdjepa.systems.describe import describe


def test_every_system_is_described_with_its_equation_ranges_and_thresholds():
    for name in systems.names():
        text = describe(systems.get(name))
        assert r"\partial_t v" in text
        assert all(c.name in text for c in systems.get(name).coefficients)
        assert all(f"screen: {screen}" in text for screen in systems.get(name).screens)


def test_every_box_has_its_range():
    rates = next(line for line in describe(systems.get("schnakenberg")).splitlines() if line.startswith("  rho"))
    outside = systems.get("schnakenberg").regimes["coeff-ood"].boxes
    shown = {f"[{box.ranges['rho'][0]:g}, {box.ranges['rho'][1]:g}]" for box in outside}
    assert len(shown) > 1 and all(each in rates.split("coeff-ood")[1] for each in shown)
