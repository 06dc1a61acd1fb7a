"""The equation that is fitted to a context: its coefficients, how it is integrated, what the support adds."""

import copy
from functools import cache

import numpy as np
import pytest
import torch

from rdjepa.errors import ArgumentError
from rdjepa.forecasters import cubic, equation
from rdjepa.forecasters.base import CONTEXT, HORIZONS
from rdjepa.forecasters.cubic import monomials_of
from rdjepa.forecasters.domain import PLAIN, Domain
from rdjepa.forecasters.equation import Equation, Remembering
from rdjepa.forecasters.squares import Squares, squares

DIFFUSION = (0.32, 0.16)


def gray_scott(u, v):
    return 0.04 * (1 - u) - u * v**2, u * v**2 - 0.1 * v


def excitable(u, v):
    return 4 * u * (1 - u) * (u - 0.1) - v, 0.2 * (u - v)


def laplacian(x, walls, spacing):
    x = np.pad(x, [(0, 0), (1, 1), (1, 1)], mode="edge" if walls else "wrap")
    inner = 2 * x[:, 1:-1, 1:-1]
    along, across = x[:, 2:, 1:-1] + x[:, :-2, 1:-1] - inner, x[:, 1:-1, 2:] + x[:, 1:-1, :-2] - inner
    return along / spacing[0] ** 2 + across / spacing[1] ** 2


@cache
def solved_by(
    kinetics,
    frames=CONTEXT + HORIZONS,
    walls=False,
    seed=0,
    interval=1.0,
    size=(24, 20),
    spread=(0.15, 0.08),
    spacing=(1.0, 1.0),
    diffusion=DIFFUSION,
    finer=1,
):
    """Integrate smooth random fields by fourth-order Runge-Kutta with small steps; return (frames, 2, H, W).

    They are the means over cells of `finer` points along each side.
    """
    rng = np.random.default_rng(seed)
    cells, size, spacing = size, [finer * points for points in size], [distance / finer for distance in spacing]
    waves = np.fft.fftfreq(size[0])[:, None] ** 2 + np.fft.fftfreq(size[1])[None] ** 2
    noise = np.fft.ifft2(np.fft.fft2(rng.standard_normal((2, *size))) * np.exp(-200 * finer**2 * waves)).real
    state = noise / noise.std(axis=(1, 2), keepdims=True) * np.reshape(spread, (2, 1, 1)) + np.reshape(
        (0.5, 0.25), (2, 1, 1)
    )

    def rate(x):
        return np.stack(kinetics(*x)) + np.reshape(diffusion, (2, 1, 1)) * laplacian(x, walls, spacing)

    found, steps = [state], 20 * finer**2
    h = interval / steps
    for _ in range(frames - 1):
        for _ in range(steps):
            a = rate(state)
            b = rate(state + h / 2 * a)
            c = rate(state + h / 2 * b)
            state = state + h / 6 * (a + 2 * b + 2 * c + rate(state + h * c))
        found.append(state)
    rows, columns = cells
    return torch.from_numpy(np.reshape(found, (frames, 2, rows, finer, columns, finer)).mean((3, 5)))


def coefficient(found, component, *monomial):
    return found[0, component, monomials_of(2).index(monomial)].item()


@pytest.mark.parametrize(
    "domain", [PLAIN, Domain(True), Domain(spacing=(1.0, 1.5))], ids=["periodic", "walls", "oblong"]
)
def test_four_frames_tell_the_equation_and_their_future(domain):
    fields = solved_by(gray_scott, walls=domain.walls, spacing=domain.spacing)
    model = Equation(2, domain)
    model.low, model.high = fields.amin((0, 2, 3)), fields.amax((0, 2, 3))  # states stay in the range that is known
    found = model.coefficients(fields[None, :CONTEXT])
    for component, monomial, expected in (
        (0, (), 0.04), (0, (0,), -0.04), (0, (0, 1, 1), -1), (1, (1,), -0.1), (1, (0, 1, 1), 1), (0, (1, 1, 1), 0),
    ):  # fmt: skip
        assert coefficient(found, component, *monomial) == pytest.approx(expected, abs=0.02)
    np.testing.assert_allclose(found[0, :, -1], DIFFUSION, rtol=0.01)
    made, future = model(fields[None, :CONTEXT])[0], fields[CONTEXT:]
    assert (made - future).abs().max() < 1e-3 * (future - fields[CONTEXT - 1]).abs().max()


def test_it_is_integrated_as_finely_as_the_support_tells():
    """The law is one of points, or of means over cells of points at half of the distance."""
    for finer in (1, 2):
        support, fields = (
            solved_by(gray_scott, 20, seed=seed, size=(16, 12), spread=(0.4, 0.1), diffusion=(0.1, 0.05), finer=finer)
            for seed in (1, 2)
        )
        told = Equation.fit([support])
        assert told.domain.finer == finer
        errors = [
            (Equation(2, Domain(finer=other))(fields[None, :CONTEXT])[0] - fields[CONTEXT : CONTEXT + HORIZONS]).norm()
            for other in (finer, 3 - finer)
        ]
        assert errors[0] < 0.2 * errors[1]


def test_fronts_hardly_wider_than_a_cell_are_forecast():
    """The truth is made on eight points for each cell, neither of those that are tried."""
    fields = solved_by(gray_scott, size=(16, 12), spread=(0.4, 0.1), diffusion=(0.1, 0.05), finer=8)
    errors = [
        (Equation(2, Domain(finer=finer))(fields[None, :CONTEXT])[0] - fields[CONTEXT:]).norm().item()
        for finer in equation.FINER
    ]
    assert errors[1] < 0.4 * errors[0]


def test_fronts_narrower_than_a_cell_are_forecast():
    """They are read from states that came from the frame before: those that begin anew in every frame miss more."""

    def excited(u, v):
        return 10 * u * (1 - u) * (u - 0.1 - 0.5 * v), 0.3 * (u - v)

    known, fields = (
        solved_by(excited, 20, seed=seed, size=(16, 12), spread=(0.4, 0.2), diffusion=(0.3, 0.0), finer=4)
        for seed in (1, 2)
    )
    model, errors = Equation.fit([known]), []
    assert model.domain.finer == 2
    contexts = torch.stack([fields[i : i + CONTEXT] for i in (0, 4, 8)])
    future = torch.stack([fields[i + CONTEXT : i + CONTEXT + HORIZONS] for i in (0, 4, 8)])
    for each in (model, Equation._of([known], PLAIN)):
        errors.append((each(contexts) - future).norm())
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.parametrize(
    ("errors", "kept"), [((1.0, 2.0, 0.95), 0), ((2.0, 1.0, 0.95), 1), ((2.0, 1.0, 0.5), 2), ((1.0, 2.0, 0.5), 2)]
)
def test_the_fit_is_kept_that_forecasts_the_support_best_and_of_alike_ones_the_first(errors, kept, monkeypatch):
    tried, given = [], iter(errors)

    def error(model, windows):
        tried.append(model)
        return next(given)

    monkeypatch.setattr(Equation, "_error", error)
    chosen = Equation.fit([solved_by(excitable, 12, size=(8, 8))])
    assert chosen is tried[kept]
    assert [model.domain.finer for model in tried] == [1, 2, 2]
    assert not torch.equal(tried[1].center, tried[2].center)


def test_derivatives_that_go_through_lower_what_the_support_misses_at_fronts():
    def excited(u, v):
        return 14 * u * (1 - u) * (u - 0.1 - 0.5 * v), 0.3 * (u - v)

    fields = solved_by(excited, 10, size=(16, 12), spread=(0.4, 0.2), diffusion=(0.3, 0.0), finer=4)
    before = Equation._of([fields], Domain(finer=2))
    after = Equation._of([fields], before.domain, before.center)
    every = torch.stack([fields[i : i + 3] for i in range(len(fields) - 2)]).double()
    assert len(every) <= equation.STRETCHES // 2  # so that both are fitted to all
    missed = [
        squares(every, each.center[None], each._bounds(every), each.domain).value.sum() for each in (before, after)
    ]
    assert missed[1] < 0.98 * missed[0]


def test_more_frames_tell_a_noisy_context_s_equation_better():
    fields = solved_by(excitable, frames=16 + HORIZONS)
    noise = torch.randn(2, *fields.shape, generator=torch.Generator().manual_seed(0))
    noisy, future = fields + 0.01 * noise, fields[16:]
    four, sixteen = ((Equation()(noisy[:, -count - HORIZONS : -HORIZONS]) - future).norm() for count in (CONTEXT, 16))
    assert sixteen < 0.8 * four


def test_contexts_on_several_threads_are_those_of_one(monkeypatch):
    monkeypatch.setattr(equation, "TOGETHER", 1)
    monkeypatch.setattr(equation, "ITERATIONS", 1)
    fields, before = solved_by(gray_scott, frames=8), torch.get_num_threads()
    contexts, found = torch.stack([fields[i : i + CONTEXT] for i in range(3)]), []
    for count in (1, 2):
        torch.set_num_threads(count)
        model = Equation.fit([fields])
        found.append((model.center, model(contexts), *model.fitted(contexts)))
    torch.set_num_threads(before)
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_it_goes_back_three_frames_whatever_the_context_to_see_what_it_misses():
    fields = solved_by(gray_scott, frames=9)
    model = Equation.fit([fields])
    found = model.fitted(fields[None])
    weights, bounds = model.coefficients(fields[None]), model._bounds(fields[None])
    advance = cubic.Advance(weights, bounds, fields.shape[2:], model.domain)
    state = advance.refined(fields[None, -CONTEXT])
    for _ in range(CONTEXT - 1):
        state = advance.interval(state)
    torch.testing.assert_close(found.missed, fields[None, -1] - advance.means(state))


def test_what_happens_between_frames_is_read(monkeypatch):
    fields = solved_by(excitable, interval=3.0, spread=(0.4, 0.1))
    errors = []
    for iterations in (0, equation.ITERATIONS):
        monkeypatch.setattr(equation, "ITERATIONS", iterations)
        errors.append((Equation()(fields[None, :CONTEXT])[0] - fields[CONTEXT:]).norm().item())
    assert errors[1] < 0.05 * errors[0]


def test_no_iteration_misses_more(monkeypatch):
    values = []

    def watched(*given):
        found = squares(*given)
        values.append(found.value.sum(1))
        return found

    monkeypatch.setattr(equation, "squares", watched)
    noisy = torch.randn(2, CONTEXT, 2, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).cumsum(1)
    model = Equation()
    monkeypatch.setattr(equation, "ENOUGH", 0.0)
    found = model.coefficients(noisy)
    assert len(values) == equation.ITERATIONS + 2
    missed = squares(noisy, found, model._bounds(noisy), PLAIN).value.sum(1)
    torch.testing.assert_close(missed, torch.stack(values).amin(0))


def test_the_support_tells_of_states_that_the_context_has_not_been_in():
    quiet = solved_by(excitable, spread=(1e-3, 1e-3))  # all points move on together, to where none has been
    told = Equation.fit([solved_by(excitable, seed=1, spread=(0.4, 0.2))])
    errors = [(model(quiet[None, :CONTEXT])[0] - quiet[CONTEXT:]).abs().max() for model in (Equation(), told)]
    assert errors[1] < 0.1 * errors[0]


@pytest.mark.parametrize("noise", [1e-3, 1e-2])
def test_the_support_misses_so_many_times_what_chance_adds(noise, monkeypatch):
    monkeypatch.setattr(equation, "ENOUGH", 0.0)
    monkeypatch.setattr(equation, "ITERATIONS", 30)
    told = Equation.fit([solved_by(excitable, 20, seed=1, spread=(0.4, 0.1))])
    fields = torch.stack([solved_by(excitable, seed=seed, spread=(0.4, 0.1))[:CONTEXT] for seed in range(2, 14)])
    noisy = fields + noise * torch.randn(fields.shape, generator=torch.Generator().manual_seed(0))
    weights, parts = told._fit(noisy, told._bounds(noisy))
    away = (weights - told.center).flatten(1)
    support = ((away @ told.gram) * away).sum(1)
    weight = parts.value[:, -1] / support
    chance = parts.value[:, :-1].sum(1) * away.shape[1] / fields[0, 1:].numel()  # of independent noise
    assert ((weight > 1e-6) & (weight < 1)).all()
    ratio = parts.value[:, -1] / (1 - weight) / (equation.PULL * chance)
    assert 0.5 < ratio.mean() < 2


def test_noise_makes_it_lean_on_the_support():
    fields, told = solved_by(excitable, spread=(0.4, 0.1)), Equation.fit([solved_by(excitable, 20, spread=(0.4, 0.1))])
    noisy = fields + 0.01 * torch.randn(fields.shape, generator=torch.Generator().manual_seed(0))
    errors = [(model(noisy[None, :CONTEXT])[0] - fields[CONTEXT:]).norm() for model in (Equation(), told)]
    assert errors[1] < 0.7 * errors[0]


def test_what_the_support_changes_is_no_certainty():
    fields, told = solved_by(excitable, spread=(0.4, 0.1)), Equation.fit([solved_by(excitable, 20, spread=(0.4, 0.1))])
    noisy = fields + 0.01 * torch.randn(fields.shape, generator=torch.Generator().manual_seed(0))
    context = noisy[None, :CONTEXT]
    bounds, found = told._bounds(context), told.fitted(context)
    alone = told._integrated(context[:, -1], told._fit(context, bounds, alone=True)[0], bounds, HORIZONS)
    assert (found.forecast - alone).abs().max() > 0.01
    assert (found.variance >= (found.forecast - alone).square()).all()


def test_a_context_of_other_coefficients_is_read_as_its_own():
    def faster(u, v):
        return tuple(1.3 * rate for rate in gray_scott(u, v))

    fields, told = solved_by(faster), Equation.fit([solved_by(gray_scott, frames=20, seed=1)])
    assert coefficient(told.coefficients(fields[None, :CONTEXT]), 1, 0, 1, 1) == pytest.approx(1.3, rel=0.02)


def test_it_finds_its_own_context_again_but_where_that_was_disturbed():
    fields = solved_by(gray_scott)[None, :CONTEXT]
    model = Equation()
    assert model.fitted(fields).missed.abs().max() < 1e-4
    disturbed = fields.clone()
    disturbed[0, -1, 1, 5, 7] += 0.5
    missed = model.fitted(disturbed).missed.abs()
    assert missed.shape == (1, 2, 24, 20) and missed[0, 1].argmax() == 5 * 20 + 7


def test_each_part_left_out_is_the_equation_of_the_others(monkeypatch):
    monkeypatch.setattr(equation, "ENOUGH", 0.0)
    monkeypatch.setattr(equation, "ITERATIONS", 30)
    fields = solved_by(gray_scott, seed=1)[None, :CONTEXT]
    noisy = fields + 1e-4 * torch.randn(fields.shape, generator=torch.Generator().manual_seed(0))
    model, bounds = Equation(), Equation()._bounds(noisy)
    weights, parts = model._fit(noisy, bounds, alone=True)
    # all but the last of the context and the support
    gram, cross, _ = equation.Squares(*(each[:, :-2] for each in parts)).summed()
    expected = equation._solution(gram, cross, equation.RIDGE).view_as(weights)
    change = equation._without_part(weights, parts)[:, -1] - weights
    assert (change - expected).norm() < 0.01 * expected.norm()


def test_a_step_is_the_best_of_those_that_keep_to_their_room():
    random = torch.Generator().manual_seed(0)
    factors, cross = torch.randn(40, 5, 9, dtype=torch.float64, generator=random), torch.randn(40, 5, generator=random)
    gram, cross, room = factors @ factors.mT, cross.double(), torch.full((40, 5), torch.inf, dtype=torch.float64)
    room[:, -1] = torch.linspace(0, 0.2, 40)
    change = equation._step(gram, cross, equation.RIDGE, room)
    downhill = cross - (gram @ change[..., None])[..., 0]
    ends = change[:, -1] == -room[:, -1]
    assert (change >= -room).all() and 5 < ends.sum() < 35
    assert downhill[:, :-1].abs().max() < 1e-6 and downhill[~ends, -1].abs().max() < 1e-6
    assert (downhill[ends, -1] < 0).all()


def test_no_diffusivity_is_negative_and_the_rest_is_best_with_that(monkeypatch):
    monkeypatch.setattr(equation, "ENOUGH", 0.0)
    monkeypatch.setattr(equation, "ITERATIONS", 20)
    found = []
    for diffusion in (-0.02, 0.16):
        told = {"spread": (0.4, 0.1), "diffusion": (0.32, diffusion)}
        found += [solved_by(excitable, seed=seed, **told)[:CONTEXT] for seed in range(3)]
    fields, model = torch.stack(found), Equation()
    weights, parts = model._fit(fields, model._bounds(fields))
    assert (weights[:, 0, -1] > 0.2).all() and (weights[:3, 1, -1] == 0).all() and (weights[3:, 1, -1] > 0.1).all()
    gram, cross, value = parts.summed()
    gained = (cross**2 / gram.diagonal(dim1=1, dim2=2)).view_as(weights) / value[:, None, None]  # by one of them alone
    assert gained[:, :, :-1].max() < 1e-3 and (cross.view_as(weights)[:3, 1, -1] < 0).all()
    assert (equation._without_part(weights, parts)[:3, :, 1, -1] == 0).all()


def test_its_variance_is_that_of_its_errors_and_grows_with_noise_and_lead():
    fields = torch.stack([solved_by(excitable, seed=seed, spread=(0.4, 0.1)) for seed in range(6)])
    noise = torch.randn(fields.shape, generator=torch.Generator().manual_seed(0))
    found = []
    for size in (1e-3, 1e-2):
        made = Equation().fitted((fields + size * noise)[:, :CONTEXT])
        variance, error = (
            each.mean((0, 2, 3, 4)) for each in (made.variance, (made.forecast - fields[:, CONTEXT:]) ** 2)
        )
        assert (variance.diff() > 0).all()
        assert 0.1 < variance[-1] / error[-1] < 10
        found.append(variance.mean())
    assert found[1] > 20 * found[0]


def test_where_derivatives_are_not_finite_it_is_as_unsure_as_its_range_is_wide(monkeypatch):
    fields, plain = solved_by(gray_scott)[None, :CONTEXT], Equation._fit

    def grown(self, frames, bounds, alone=False):
        weights, parts = plain(self, frames, bounds, alone)
        return weights, parts._replace(gram=torch.full_like(parts.gram, torch.inf))

    low, high = Equation()._bounds(fields)
    monkeypatch.setattr(Equation, "_fit", grown)
    found = Equation().fitted(fields)
    assert found.forecast.isfinite().all()
    torch.testing.assert_close(found.variance, (high - low).square()[:, None].expand_as(found.variance))


def test_units_change_the_coefficients_and_not_the_forecast():
    fields, other = (solved_by(gray_scott, seed=seed) for seed in (0, 1))
    scale, shift = (torch.tensor(x, dtype=torch.float64).view(2, 1, 1) for x in ((20.0, 0.3), (-4.0, 0.1)))
    made, scaled = (
        Equation.fit([map_(other)])(map_(fields)[None, :CONTEXT]) for map_ in (lambda x: x, lambda x: x * scale + shift)
    )
    np.testing.assert_allclose((scaled - shift) / scale, made, atol=1e-4)


def test_noise_stays_in_range_and_finite():
    context = torch.randn(3, CONTEXT, 2, 12, 12, generator=torch.Generator().manual_seed(0))
    made = Equation()(context)
    low, high = (bound[:, None, :, None, None] for bound in (context.amin((1, 3, 4)), context.amax((1, 3, 4))))
    room = 0.101 * (high - low)
    assert made.isfinite().all() and (made > low - room).all() and (made < high + room).all()


def test_a_field_at_rest_stays_at_rest():
    still = torch.ones(1, CONTEXT, 2, 8, 8) * torch.tensor([0.3, -2.0]).view(2, 1, 1)
    torch.testing.assert_close(Equation()(still), still[:, :1].expand(-1, HORIZONS, -1, -1, -1), atol=1e-4, rtol=0)


@pytest.mark.parametrize("components", [1, 3])
def test_contexts_do_not_depend_on_each_other_whatever_their_components_and_grid(components):
    context = torch.randn(2, CONTEXT, components, 6, 10, generator=torch.Generator().manual_seed(0)).cumsum(1)
    model = Equation(components)
    assert model(context).shape == (2, HORIZONS, components, 6, 10)
    torch.testing.assert_close(model(context), torch.cat([model(each[None]) for each in context]), atol=1e-3, rtol=1e-3)


def test_how_many_are_fitted_at_a_time_does_not_matter(monkeypatch):
    monkeypatch.setattr(equation, "ITERATIONS", 2)
    fields = solved_by(gray_scott)
    contexts = torch.stack([fields[i : i + CONTEXT] for i in range(4)])
    found = Equation.fit([fields]).fitted(contexts)
    for together in (1, 3):
        monkeypatch.setattr(equation, "TOGETHER", together)
        torch.testing.assert_close(Equation.fit([fields]).fitted(contexts), found, atol=1e-6, rtol=1e-5)


def test_a_saved_one_forecasts_the_same():
    fields = solved_by(gray_scott, walls=True)
    model = Equation.fit([fields], Domain(walls=True, spacing=(1.0, 1.25)))
    again = Equation.from_settings(model.settings())
    again.load_state_dict(model.state_dict())
    torch.testing.assert_close(again(fields[None, :CONTEXT]), model(fields[None, :CONTEXT]))


@pytest.mark.parametrize("support", [[], [torch.zeros(2, 2, 8, 8)]], ids=["none", "short"])
def test_unfit_supports_are_refused(support):
    with pytest.raises(ArgumentError, match="at least 3 frames"):
        Equation.fit(support)


def test_a_support_whose_squares_are_not_finite_has_no_say(monkeypatch):
    fields = solved_by(gray_scott)

    def missed(*arguments):
        gram, cross, value = squares(*arguments)
        return Squares(gram * torch.inf, cross, value)

    with monkeypatch.context() as patch:
        patch.setattr("rdjepa.forecasters.equation.squares", missed)
        model = Equation.fit([fields])
    assert (model.gram == 0).all() and model(fields[None, :CONTEXT]).isfinite().all()


def test_buffers_in_single_precision_are_enough():
    fields = solved_by(gray_scott)
    model, context = Equation.fit([fields]), fields[None, :CONTEXT]
    torch.testing.assert_close(copy.deepcopy(model).float()(context), model(context), atol=1e-5, rtol=0)


def test_a_context_is_fitted_once_and_no_more_are_kept_than_are_said(monkeypatch):
    monkeypatch.setattr(equation, "ITERATIONS", 2)
    fields = solved_by(gray_scott)
    contexts = torch.stack([fields[i : i + CONTEXT] for i in range(6)]).float()
    plain = Equation.fit([fields])
    expected = plain(contexts)
    model, fits, fit = Remembering.of(plain), [], Equation._fit

    def counted(self, frames, bounds, alone=False):
        fits.append((type(self), alone, len(frames)))
        return fit(self, frames, bounds, alone)

    size = contexts[0].nbytes + 11 * fields[0].double().nbytes  # 5 frames of forecast and variance, and what is missed
    monkeypatch.setattr(equation, "REMEMBERED", 5 * size - 1)
    monkeypatch.setattr(Equation, "_fit", counted)
    for chosen in (slice(0, 2), slice(1, 6), slice(0, 6)):
        torch.testing.assert_close(model(contexts[chosen]), expected[chosen], atol=1e-5, rtol=1e-4)
    assert fits == [(Remembering, alone, count) for count in (2, 4, 2) for alone in (False, True)]
