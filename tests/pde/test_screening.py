import numpy as np
import pytest

from rdjepa.pde import screening

SIZE, FRAMES = 32, 12


def waves(periods: float = 2, speed: float = 0.3) -> np.ndarray:
    """A travelling wave, (T, H, W, 2)."""
    phase = 2 * np.pi * periods * np.arange(SIZE) / SIZE - speed * np.arange(FRAMES)[:, None, None]
    phase = np.broadcast_to(phase, (FRAMES, SIZE, SIZE))
    return np.stack([np.cos(phase), np.sin(phase)], axis=-1).astype(np.float32)


def changed(value: float) -> np.ndarray:
    fields = waves()
    fields[5, 3, 3, 1] = value
    return fields


def frozen(frames: slice) -> np.ndarray:
    fields = waves()
    fields[frames] = fields[frames][:1]
    return fields


@pytest.mark.parametrize(
    ("screen", "good", "bad", "reason"),
    [
        (screening.Finite(10.0), waves(), changed(np.nan), "not finite"),
        (screening.Finite(10.0), waves(), changed(-np.inf), "not finite"),
        (screening.Finite(10.0), changed(-9.9), changed(-10.1), "amplitude 10.1 above 10"),
        (screening.Within(1, -1.5, 2.0), changed(1.9), changed(2.0), "2"),
        (screening.Within(1, -1.5, 2.0), waves(), changed(-1.6), "-1.6"),
        (screening.MinMeanChange(0.05), waves(), waves(speed=0.01), "mean change .* below 0.05"),
        (screening.MinMeanChange(0.05, last=4), frozen(slice(0, 7)), frozen(slice(6, None)), "in the last 4 intervals"),
        (screening.MinChangeShare(0.05, 0.9), waves(), frozen(slice(0, 4)), "share .* below 0.9"),
        (screening.MinFinalContrast(0.1), waves(), waves() * np.linspace(1, 0, FRAMES)[:, None, None, None], "final"),
        (screening.MinContrast(0.1), waves(), np.ones_like(waves()), "least standard deviation"),
        (screening.TotalVariationWithin(0.1, 1.0), waves(2), waves(10), "outside"),
        (screening.TotalVariationWithin(0.1, 1.0), waves(2), 0.01 * waves(2), "outside"),
        (screening.MaxFineShare(0.05), waves(7), waves(9), "unresolved share"),
    ],
)
def test_screens_pass_what_they_should_and_give_a_reason_for_the_rest(screen, good, bad, reason):
    assert screen(good) is None
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(screen(bad))


@pytest.mark.parametrize(
    "screen",
    [
        screening.Finite(),
        screening.Within(1, -1.5, 2.0),
        screening.MinMeanChange(0.05),
        screening.MinMeanChange(0.05, last=8),
        screening.MinChangeShare(0.05, 1.0),
        screening.MinFinalContrast(0.1),
        screening.MinContrast(0.1),
        screening.TotalVariationWithin(0.1, 1.0),
        screening.MaxFineShare(0.5),
        screening.PaceWithin(0.0, 0.0, 2.0),
        screening.MinStructure(0.1, 0.1),
    ],
    ids=repr,
)
def test_no_screen_passes_what_is_not_finite(screen):
    assert screen(waves()) is None
    fields = waves()
    fields[len(fields) // 2 :] = np.nan
    assert screen(fields) is not None


def test_what_is_not_finite_is_rejected_before_any_screen():
    for value in (np.nan, np.inf, -np.inf):
        assert screening.first_reason((), changed(value)) == "a value is not finite"
        assert screening.first_reason((lambda fields: "too dull",), changed(value)) == "a value is not finite"


def test_within_looks_at_one_component_only():
    assert screening.Within(0, -1.5, 1.5)(changed(9.0)) is None


def test_the_first_rejecting_screen_speaks():
    screens = (screening.Finite(10.0), screening.Finite(1.05), screening.MinContrast(5.0))
    assert screening.first_reason(screens, changed(2.0)) == "amplitude 2 above 1.05"
    assert screening.first_reason(screens[:1], waves()) is None


def test_relative_changes_of_a_rotating_wave():
    """A unit wave that turns by an angle changes by 2 sin(angle / 2) of itself."""
    assert np.allclose(screening.relative_changes(waves(speed=0.3)), 2 * np.sin(0.15), rtol=1e-5)


def test_fine_share_splits_the_variance_at_four_cells():
    coarse, fine = waves(7), waves(9)
    assert np.allclose(screening.fine_share(coarse), 0, atol=1e-6)
    assert np.allclose(screening.fine_share(fine), 1, atol=1e-6)
    assert np.allclose(screening.fine_share(3 * coarse + fine + 5), 0.1, atol=1e-4)


def test_total_variation_of_a_ramp_between_two_levels():
    fields = np.zeros((1, SIZE, SIZE, 2), dtype=np.float32)
    fields[0, :, SIZE // 2 :, 0] = 1
    assert screening.total_variations(fields)[0] == pytest.approx(1 / (SIZE - 1))


def test_the_pace_of_a_rotating_wave_does_not_depend_on_units():
    """A wave of unit deviation that turns by an angle changes by 2 sin(angle / 2) of it."""
    pace, fields = 2 * np.sin(0.15), waves(speed=0.3)
    for same in (fields, 1e-3 * fields, 5 + fields):
        assert screening.PaceWithin(0.98 * pace, 0.98 * pace, 1.02 * pace)(same) is None
    assert "mean pace 0.299 below 0.31" in str(screening.PaceWithin(0.31, 0.0, 1.0)(fields))
    assert "late pace 0.299 below 0.31" in str(screening.PaceWithin(0.0, 0.31, 1.0)(fields))
    assert "largest pace 0.299 above 0.29" in str(screening.PaceWithin(0.0, 0.0, 0.29)(fields))


def test_structure_is_one_for_a_wave_and_zero_for_a_uniform_oscillation():
    fields = waves(speed=0.3)
    uniform = np.broadcast_to(fields[:, :1, :1], fields.shape)
    assert screening.MinStructure(0.99, 0.99)(fields) is None
    assert "mean structure" in str(screening.MinStructure(1e-9, 0.0)(uniform))
    fading = np.concatenate([fields[:-1], 0 * fields[-1:]])
    assert "final structure 0 below 0.1" in str(screening.MinStructure(0.1, 0.1)(fading))


def test_reasons_are_counted_without_their_values():
    assert screening.tally(["change 0.1 below 0.2", "a value is not finite", "change 0.3 below 0.2"]) == {
        "change below its bound": 2,
        "a value is not finite": 1,
    }
    assert screening.tally(["v>1", "", "v>1"]) == {"v>1": 2, "no reason given": 1}
    ramp = np.linspace(-1, 3, 2 * 8 * 8 * 2).reshape(2, 8, 8, 2)
    screens = screening.Within(0, -0.5, 1.1), screening.TotalVariationWithin(1e3, 1e4)
    reasons = [str(screen(ramp)) for screen in screens]
    assert list(screening.tally([*reasons, "distance to barkley 0.1 below 0.2"])) == [
        "u outside its bounds",
        "total variation outside its bounds",
        "distance to barkley below its bound",
    ]


def test_one_bad_frame_between_good_ones_is_seen():
    flat = waves()
    flat[5] = flat[5, :1, :1]
    assert "least standard deviation 0 below 0.1" in str(screening.MinContrast(0.1)(flat))
    assert "total variation in [0, " in str(screening.TotalVariationWithin(0.1, 1.0)(flat))
    for frame in (0, FRAMES // 2, -1):
        fine = waves(2)
        fine[frame] = waves(9)[frame]
        assert "unresolved share" in str(screening.MaxFineShare(0.05)(fine))


def test_contrast_of_one_component_is_enough_and_structure_is_the_mean_of_both():
    one = waves()
    one[..., 1] = 0.1 * np.arange(FRAMES)[:, None, None]
    assert screening.MinFinalContrast(0.1)(one) is None
    assert screening.MinStructure(0.7, 0.7)(one) is None  # the root of a half
    assert "mean structure 0.707 below 0.72" in str(screening.MinStructure(0.72, 0.0)(one))


def test_the_late_pace_is_that_of_the_later_half_alone():
    reason = screening.PaceWithin(0.1, 0.1, 1.0)(frozen(slice(5, None)))
    assert "late pace 0 below 0.1" in str(reason)
