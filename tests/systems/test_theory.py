"""What is known about the kinetics on paper, recovered from the code."""

import numpy as np
import pytest

from rdjepa.systems import get

STEP = 1e-30  # complex-step differentiation has no cancellation


def jacobian(name: str, p: dict[str, float], u: float, v: float) -> np.ndarray:
    system = get(name)
    columns = [system.reaction(u + 1j * STEP * du, v + 1j * STEP * dv, p) for du, dv in ((1, 0), (0, 1))]
    return np.imag(np.array(columns).T) / STEP


@pytest.mark.parametrize("a", [0.7, 0.9, 1.1])
def test_brusselator_begins_to_oscillate_at_one_plus_a_squared(a):
    def trace(b: float) -> float:
        p = get("brusselator").draw(0) | {"A": a, "B": b}
        (equilibrium,) = get("brusselator").equilibria(p)
        jac = jacobian("brusselator", p, *equilibrium)
        assert np.linalg.det(jac) > 0
        return float(np.trace(jac))

    threshold = 1 + a**2
    assert trace(threshold) == pytest.approx(0, abs=1e-12)
    assert trace(threshold - 1e-3) < 0 < trace(threshold + 1e-3)


def test_a_slow_brusselator_substrate_would_not_form_patterns_and_a_fast_one_does():
    """At equal diffusivities no wave number grows faster than the homogeneous mode; Turing's needs them apart."""
    p = get("brusselator").draw(0) | {"A": 1.1, "B": 2.0, "rho": 10.0}  # below the oscillation threshold
    (equilibrium,) = get("brusselator").equilibria(p)
    jac = jacobian("brusselator", p, *equilibrium)

    def fastest(du: float, dv: float) -> float:
        squared = np.linspace(0, 4e5, 4000)
        return max(np.linalg.eigvals(jac - k * np.diag([du, dv])).real.max() for k in squared)

    assert fastest(2e-4, 2e-4) < 0
    assert fastest(1e-4, 1.2e-3) > 0


def test_ginzburg_landau_turns_on_the_unit_circle_at_gamma_i():
    p = get("ginzburg-landau").draw(3)
    angle = np.linspace(0, 2 * np.pi, 17)
    u, v = np.cos(angle), np.sin(angle)
    du, dv = get("ginzburg-landau").reaction(u, v, p)
    assert np.allclose(u * du + v * dv, 0, atol=1e-12)
    assert np.allclose(v * du - u * dv, p["gamma_i"])
    outward, inward = (
        np.add(*(r * x * f for x, f in zip((u, v), rates, strict=True)))
        for r, rates in (
            (0.9, get("ginzburg-landau").reaction(0.9 * u, 0.9 * v, p)),
            (1.1, get("ginzburg-landau").reaction(1.1 * u, 1.1 * v, p)),
        )
    )
    assert (outward > 0).all()
    assert (inward < 0).all()


def test_ginzburg_landau_is_the_complex_equation():
    p = get("ginzburg-landau").draw(4)
    rng = np.random.default_rng(0)
    psi = rng.normal(size=9) + 1j * rng.normal(size=9)
    du, dv = get("ginzburg-landau").reaction(psi.real, psi.imag, p)
    expected = p["nu"] * psi - (p["gamma_r"] + 1j * p["gamma_i"]) * np.abs(psi) ** 2 * psi
    assert np.allclose(du + 1j * dv, expected)


@pytest.mark.parametrize("radius", [0.5, 1.0, 1.3])
def test_lambda_omega_has_the_amplitude_and_frequency_of_its_name(radius):
    p = get("lambda-omega").draw(3)
    angle = np.linspace(0, 2 * np.pi, 17)
    u, v = radius * np.cos(angle), radius * np.sin(angle)
    du, dv = get("lambda-omega").reaction(u, v, p)
    assert np.allclose((u * du + v * dv) / radius**2, p["rho"] * p["alpha"] * (1 - radius**2), atol=1e-12)
    assert np.allclose((u * dv - v * du) / radius**2, p["rho"] * (p["omega_0"] - p["beta"] * radius**2))


@pytest.mark.parametrize("seed", range(5))
def test_barkley_rests_until_a_push_beyond_the_threshold(seed):
    system = get("barkley")
    p = system.draw(seed)
    assert np.linalg.eigvals(jacobian("barkley", p, 0.0, 0.0)).real.max() < 0
    threshold = p["b"] / p["a"]
    assert system.reaction(0.9 * threshold, 0.0, p)[0] < 0 < system.reaction(1.1 * threshold, 0.0, p)[0]


@pytest.mark.parametrize("seed", range(5))
def test_gray_scott_without_autocatalyst_is_stable_at_the_two_loss_rates(seed):
    p = get("gray-scott").draw(seed)
    rates = sorted(np.linalg.eigvals(jacobian("gray-scott", p, 1.0, 0.0)).real)
    assert rates == pytest.approx([-p["rho"] * (p["f"] + p["k"]), -p["rho"] * p["f"]])


def test_gray_scott_has_three_equilibria_only_where_the_feed_supports_them():
    """The two with autocatalyst meet at f = 4 (f + k)^2."""
    system = get("gray-scott")
    counts = [len(system.equilibria(system.draw(0) | {"f": 0.04, "k": k})) for k in (0.0595, 0.0605)]
    assert counts == [3, 1]


@pytest.mark.parametrize("seed", range(20))
def test_the_oregonator_background_is_unstable_as_its_file_says(seed):
    p = get("oregonator").draw(seed)
    rest = get("oregonator").equilibria(p)[0]
    assert 0 < rest[0] < 0.1
    assert np.linalg.eigvals(jacobian("oregonator", p, *rest)).real.max() > 0


@pytest.mark.parametrize("seed", range(5))
def test_fitzhugh_nagumo_grows_into_patterns_at_a_resolved_wavelength(seed):
    p = get("fitzhugh-nagumo").draw(seed)
    (rest,) = get("fitzhugh-nagumo").equilibria(p)
    jac = jacobian("fitzhugh-nagumo", p, *rest)
    wavelengths = np.linspace(4, 64, 200)
    growth = [
        np.linalg.eigvals(jac - (2 * np.pi / w) ** 2 * np.diag([p["gamma_u"], p["gamma_v"]])).real.max()
        for w in wavelengths
    ]
    assert max(growth) > 0
    assert 8 < wavelengths[int(np.argmax(growth))] < 64
