import pytest
import torch

from rdjepa.forecasters.anchored import CONTINUATIONS, SHELLS, Anchored, missed_by_continuations
from rdjepa.forecasters.base import CONTEXT, HORIZONS, ForecastModel

POINTS = 32


def waves(numbers, frames=16, speed=0.3, level=0.0):
    """Plane waves that run along x, one for each wave number, in two components, (T, 2, H, W)."""
    x = 2 * torch.pi * torch.arange(POINTS) / POINTS
    time = torch.arange(frames)[:, None, None]
    field = torch.stack([torch.cos(k * x - speed * time) for k in numbers]).sum(0).expand(frames, POINTS, POINTS)
    return torch.stack([field, 0.5 * field], dim=1) + level


def windows(fields):
    cut = fields.unfold(0, CONTEXT + HORIZONS, 1).movedim(-1, 1)
    return cut[:, :CONTEXT], cut[:, CONTEXT:]


class Wrong(ForecastModel):
    """It knows the future of some fields, and is wrong by the same field at every horizon."""

    grid = None

    def __init__(self, future, error):
        super().__init__()
        self.future, self.error = future, torch.nn.Parameter(torch.as_tensor(error))

    @classmethod
    def from_preset(cls, preset):
        raise NotImplementedError

    from_settings = from_preset

    def settings(self):
        return {}

    def predict(self, *features):
        return self.future + self.error

    def parameter_groups(self):
        return [{"params": [self.error], "lr": 1.0}]


def error(made, future):
    return float((made - future).detach().norm() / future.norm())


def test_an_error_that_is_the_same_at_all_horizons_is_removed_where_the_context_is_continued_well():
    learned, (context, future) = waves([1, 2], speed=0.02), windows(waves([1, 2], speed=0.02, level=0.4))
    for wrong in (torch.tensor(0.7), 0.5 * waves([1])[0], waves([2])[3]):
        model = Wrong(future, wrong)
        assert error(Anchored(model, missed_by_continuations([learned]))(context), future) < 0.03 * error(
            model(context), future
        )


def test_what_cannot_be_continued_is_left_alone():
    noise = torch.randn(40, 2, POINTS, POINTS, generator=torch.Generator().manual_seed(0))
    context, future = windows(noise)
    model = Wrong(future, 0.1 * torch.randn(2, POINTS, POINTS, generator=torch.Generator().manual_seed(1)))
    anchored = Anchored(model, missed_by_continuations([noise]))(context)
    assert (anchored - model(context)).norm() < 0.35 * noise.std() * anchored.numel() ** 0.5
    missed = missed_by_continuations([noise])
    assert (missed.argmin(0) == 0).all()  # of noise, the newest frame misses least
    expected = torch.tensor(
        [sum(w * w for w in each) + 1 for each in CONTINUATIONS]
    )  # its variance, and the frame's own
    torch.testing.assert_close(missed[:, :, 5:].mean((1, 2)) / POINTS**2, expected, rtol=0.05, atol=0)


def test_a_network_that_is_right_is_hardly_changed():
    context, future = windows(waves([1, 3]))
    assert error(Anchored(Wrong(future, 0.0), missed_by_continuations([waves([1, 3])]))(context), future) < 0.02


def test_polynomials_in_time_are_continued_without_error():
    time = torch.arange(12.0)[:, None, None, None]
    shape = torch.randn(2, POINTS, POINTS, generator=torch.Generator().manual_seed(2))
    for degree in range(3):
        missed = missed_by_continuations([(time / 10) ** degree * shape])
        assert missed[degree].max() < 1e-6 * missed.max().clamp(min=1) and missed.shape == (3, 2, SHELLS)


def test_shells_are_of_wavelength_whatever_the_number_of_points():
    field = waves([2])[:, :, ::2, ::2]
    for fields in (field, field.repeat(1, 1, 2, 2)):
        spectrum = missed_by_continuations([fields])[0, 0]
        assert int(spectrum.argmax()) == 8  # a wave of 8 points: 64 / 8


def test_it_is_trained_as_the_network_and_starts_without_correction():
    context, future = windows(waves([1]))
    network = Wrong(future, 0.3)
    model = Anchored(network)
    torch.testing.assert_close(model(context), network(context))
    assert [p for group in model.parameter_groups() for p in group["params"]] == [network.error]
    with pytest.raises(ValueError, match="at least 5 frames, got 4"):
        missed_by_continuations([waves([1], 4)])
    with pytest.raises(ValueError, match="at least 5 frames, got 0"):
        missed_by_continuations([])


def test_between_walls_it_is_what_it_is_of_fields_beside_their_mirror_images():
    """So nothing jumps at a border, and an error there is corrected as one inside is."""

    def beside(fields):
        fields = torch.cat([fields, fields.flip(-1)], dim=-1)
        return torch.cat([fields, fields.flip(-2)], dim=-2)

    fields = waves([1, 2], speed=0.02)[..., :24, 2:21] + torch.linspace(0, 3, 19)
    context, future = windows(fields)
    wrong = torch.cos(torch.pi * (torch.arange(19) + 0.5) / 19)
    between = Anchored(Wrong(future, wrong), missed_by_continuations([fields], walls=True), walls=True)
    whole = Anchored(Wrong(beside(future), beside(wrong.expand(24, 19))), missed_by_continuations([beside(fields)]))
    made = between(context)
    assert torch.allclose(made, whole(beside(context))[..., :24, :19], atol=1e-4)
    missed = (made - future).square().mean((0, 1, 2, 3)).sqrt()
    assert missed.max() < 1e-4
