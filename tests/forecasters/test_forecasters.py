"""What every forecaster must do, on sizes that a test can afford; a new one is found by its name."""

import warnings

import numpy as np
import pytest
import torch

import rdjepa
from rdjepa import forecasters
from rdjepa.adaptation.adapt import AdaptConfig, tensors, train, windows
from rdjepa.errors import ArgumentError, Note
from rdjepa.forecasters import cnext_unet, fno, lno, no_latent, registry, revit, riesz_no
from rdjepa.forecasters.base import ForecastModel, require_forecast
from rdjepa.forecasters.linear import Linear
from rdjepa.forecasters.persistence import Persistence, extrapolation, persistence
from rdjepa.models.device import autocast
from rdjepa.models.rdjepa import PRESETS
from tiny import TINY

SMALL = {
    "rd-jepa": TINY,
    "rd-jepa-decoder": TINY,
    "rd-jepa-tuned": TINY,
    "rd-jepa-zero-shot": TINY,
    "scratch": TINY,
    "no-latent": no_latent.Config(16, 8, conditioner_rate=3e-3, decoder_rate=3e-3, grid=32),
    "fno": fno.Config(8, 3, 6, readout=16, rate=1e-2, grid=32),
    "lno": lno.Config(8, 2, readout=16, rate=3e-3, grid=32),
    "riesz-no": riesz_no.Config(8, 6, readout=16, rate=3e-3, grid=32),
    "revit": revit.Config(16, (1, 2, 1, 2, 1), heads=2, window=2, rate=3e-3, grid=32),
    "cnext-unet": cnext_unet.Config(4, 3, layer_scale=0.1, rate=1e-2, grid=32),
    "persistence": None,
    "extrapolation": None,
    "linear": None,
    "autoregression": None,
    "equation": None,
}
NAMES = [
    name for name, entry in ((name, forecasters.get(name)) for name in forecasters.names())
    if not (entry.rehearses or entry.retains or entry.augments or entry.base != "none")  # with the networks of others
]  # fmt: skip
TRAINED = [name for name in NAMES if forecasters.get(name).trained]
CPU = torch.device("cpu")


def build(name: str, seed: int = 0) -> ForecastModel:
    return forecasters.build(name, SMALL[name], seed=seed)


def context(model: ForecastModel, batch=2, seed=0):
    side = model.grid or 16
    return torch.randn(batch, 4, 2, side, side, generator=torch.Generator().manual_seed(seed))


def test_the_names_are_those_of_the_benchmark():
    assert forecasters.names() == [
        "rd-jepa", "rd-jepa-decoder", "scratch", "no-latent", "rd-jepa-rehearsal", "scratch-rehearsal",
        "no-latent-rehearsal", "rd-jepa-retained", "rd-jepa-auto", "rd-jepa-alone", "rd-jepa-augmented",
        "rd-jepa-auto-augmented", "scratch-augmented", "rd-jepa-anchored", "scratch-anchored", "rd-jepa-tuned",
        "rd-jepa-zero-shot", "fno", "lno", "riesz-no", "revit", "cnext-unet", "persistence", "extrapolation",
        "linear", "autoregression", "equation",
    ]  # fmt: skip
    assert set(SMALL) == set(NAMES)
    ends = ("-decoder", "-rehearsal", "-retained", "-auto", "-alone", "-augmented", "-anchored", "-tuned", "-zero-shot")
    beside = {name for name in forecasters.names() if name.endswith(ends)}
    assert set(forecasters.usual()) == set(forecasters.names()) - beside
    for name in ("scratch-rehearsal", "no-latent-rehearsal"):
        assert forecasters.model_class(name) is forecasters.model_class(name.removesuffix("-rehearsal"))


def test_tables_have_the_order_of_the_paper_and_users_stand_before_what_nothing_trains(registrations):
    assert registry.in_print() == [
        "rd-jepa", "rd-jepa-decoder", "rd-jepa-rehearsal", "rd-jepa-retained", "rd-jepa-auto", "rd-jepa-alone",
        "rd-jepa-augmented", "rd-jepa-auto-augmented", "rd-jepa-anchored", "rd-jepa-tuned", "no-latent",
        "no-latent-rehearsal", "scratch",
        "scratch-rehearsal", "scratch-augmented", "scratch-anchored", "fno", "lno", "revit",
        "riesz-no", "cnext-unet", "rd-jepa-zero-shot", "persistence", "extrapolation", "linear",
        "autoregression", "equation",
    ]  # fmt: skip
    forecasters.register(forecasters.Baseline("mine", "Mine", "mine:Mine"))
    assert registry.in_print()[-7:] == [
        "mine",
        "rd-jepa-zero-shot",
        "persistence",
        "extrapolation",
        "linear",
        "autoregression",
        "equation",
    ]
    assert registry.get("mine").short == "Mine" and registry.get("no-latent").short == "No latent"


@pytest.mark.parametrize("name", NAMES)
def test_the_registry_tells_what_the_class_is(name):
    with torch.device("meta"):
        model = forecasters.build(name, "paper")
    assert bool(model.parameter_groups()) == forecasters.get(name).trained
    assert forecasters.get(name).path == f"{type(model).__module__}:{type(model).__qualname__}"


@pytest.mark.parametrize("name", NAMES)
def test_four_frames_in_five_out(name):
    model = build(name)
    assert isinstance(model, ForecastModel) and model.name == name
    with torch.no_grad():
        out = model(given := context(model, 3))
    assert out.shape == (3, 5, *given.shape[2:]) and out.isfinite().all()


@pytest.mark.parametrize(
    ("made", "got"),
    [
        (torch.zeros(2, 4, 2, 8, 8), r"shape \(2, 4, 2, 8, 8\)"),
        (torch.zeros(1, 5, 2, 8, 8), r"shape \(1, 5, 2, 8, 8\)"),
        (torch.zeros(2, 5, 8, 8, 2), r"shape \(2, 5, 8, 8, 2\)"),
        (None, "a NoneType"),
        (np.zeros((2, 5, 2, 8, 8)), "a ndarray"),
    ],
)
def test_what_is_no_forecast_is_refused(made, got):
    right = torch.zeros(2, 5, 2, 8, 8)
    assert require_forecast(right, (2, 16, 2, 8, 8), Persistence()) is right
    with pytest.raises(
        ArgumentError, match=rf"a tensor \(2, 5, 2, 8, 8\), .* from `predict` of Persistence, got {got}"
    ):
        require_forecast(made, (2, 4, 2, 8, 8), Persistence())


@pytest.mark.parametrize("name", TRAINED)
def test_reduced_precision_is_near_and_so_are_its_gradients(name):
    def forecast_and_gradient(precision):
        model = build(name)
        with autocast(CPU, precision):
            out = model(context(model))
        out.square().mean().backward()
        gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        assert out.dtype == torch.float32  # the last layer is not reduced
        return out.detach(), gradient

    for whole, reduced in zip(forecast_and_gradient("float32"), forecast_and_gradient("bfloat16"), strict=True):
        assert (whole - reduced).norm() < 0.05 * whole.norm()


@pytest.mark.parametrize("name", NAMES)
def test_double_precision_is_near(name):
    model = build(name)
    given = context(model)
    with torch.no_grad():
        single, double = model(given), model.double()(given.double())
    assert double.dtype == torch.float64
    assert (single - double).norm() <= 1e-4 * double.norm()


@pytest.mark.parametrize("name", ["persistence", "extrapolation", "linear", "autoregression"])
def test_what_nothing_trains_takes_reduced_precision(name):
    model = build(name)
    given = context(model).cumsum(1)
    if isinstance(model, Linear):
        model = model.fit([context(model, 12).flatten(0, 1).cumsum(0)])
    whole = model(given)
    with autocast(CPU, "bfloat16"):
        assert torch.equal(model(given), whole)
    assert (model(given.bfloat16()) - whole).norm() < 0.05 * whole.norm()


@pytest.mark.parametrize("rule", [persistence, extrapolation])
def test_a_rule_is_the_same_of_tensors(rule):
    model = build(rule.__name__)
    assert np.array_equal(model(context(model)).numpy(), rule(context(model).numpy()))


@pytest.mark.parametrize("name", TRAINED)
def test_every_trained_parameter_gets_a_gradient_and_every_other_is_frozen(name):
    model = build(name)
    model.train()
    model(context(model)).square().mean().backward()
    trained = {id(p) for group in model.parameter_groups() for p in group["params"]}
    for key, parameter in model.named_parameters():
        assert (id(parameter) in trained) == parameter.requires_grad, key
        if id(parameter) in trained and "mask_token" not in key:  # hides tokens in pretraining only
            assert parameter.grad is not None and parameter.grad.abs().sum() > 0, key


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_entry_does_not_influence_another(name):
    model = build(name).eval()
    a, b = context(model, 1, 1), context(model, 1, 2)
    with torch.no_grad():
        torch.testing.assert_close(model(torch.cat([a, b]))[:1], model(a), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", TRAINED)
def test_the_seed_decides_the_weights(name):
    before = torch.get_rng_state()
    one, two, other = build(name, 1), build(name, 1), build(name, 2)
    assert torch.equal(before, torch.get_rng_state())
    equal = [torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True)]
    assert all(equal)
    assert not all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("name", TRAINED)
def test_one_window_is_learnt(name):
    model = build(name)
    y, x = np.mgrid[0:32, 0:32] * 2 * np.pi / 32
    wave = np.stack([np.stack([np.sin(x - 0.3 * t), np.cos(y + 0.2 * t)], -1) for t in range(9)]).astype(np.float32)
    data = windows(model, tensors([wave]))
    losses = train(model, data, AdaptConfig(steps=25, batch=1))
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("name", NAMES)
def test_an_adapted_forecaster_is_saved_and_forecasts_the_same_bits(name, tmp_path):
    model = build(name)
    fields = context(model, 3).flatten(0, 1).movedim(1, -1).numpy()
    adapted = rdjepa.adapt(model, fields, steps=1, device="cpu")
    loaded = rdjepa.load_forecaster(adapted.save(tmp_path / "f.safetensors"))
    assert loaded.record["forecaster"] == name
    assert np.array_equal(loaded.forecast(fields[:4]), adapted.forecast(fields[:4]))


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("preset", ["paper", "nano"])
def test_presets_take_the_fields_of_the_benchmark(name, preset):
    with torch.device("meta"):
        model = forecasters.build(name, preset)
    assert (model.grid, model.components, model.preset) == (PRESETS[preset].grid, 2, preset)


@pytest.mark.parametrize("name", TRAINED)
def test_unknown_presets_are_answered_with_the_known_ones(name):
    with pytest.raises(ValueError, match=r"paper.*nano"):
        forecasters.build(name, "huge")


@pytest.mark.parametrize("name", ["fno", "lno", "riesz-no", "revit", "cnext-unet"])
def test_other_fields_are_refused_and_the_size_is_named(name):
    with pytest.raises(ValueError, match="32, 32"):
        build(name)(torch.zeros(1, 4, 2, 16, 16))
    with pytest.raises(ValueError, match="expected a context"):
        build(name)(torch.zeros(1, 4, 3, 32, 32))


@pytest.mark.parametrize(
    "impossible",
    [
        lambda: fno.FNO(fno.Config(8, 1, 20, grid=32)),
        lambda: riesz_no.RieszNO(riesz_no.Config(8, 20, grid=32)),
        lambda: revit.ReViT(revit.Config(16, heads=2, grid=96)),
        lambda: cnext_unet.CNextUNet(cnext_unet.Config(grid=100)),
    ],
)
def test_grids_that_a_forecaster_cannot_take_are_refused(impossible):
    with pytest.raises(ValueError, match="expected a grid of"):
        impossible()


def test_nano_forecasters_are_of_the_size_of_what_nano_rd_jepa_trains():
    with torch.device("meta"):
        sizes = {
            name: sum(p.numel() for g in forecasters.build(name, "nano").parameter_groups() for p in g["params"])
            for name in TRAINED
        }
    trained = sizes["rd-jepa"]
    assert all(0.4 * trained < sizes[name] < 1.2 * trained for name in ("fno", "revit", "cnext-unet"))
    # the two small operators are small in the paper too; more width costs memory with its square
    assert sizes["lno"] < sizes["riesz-no"] < trained


def test_only_a_pretrained_encoder_summarizes_contexts(tiny):
    """The name is one that no network has for a layer of its own."""
    with torch.no_grad():
        for name in forecasters.names():
            kind = forecasters.model_class(name)
            own = kind.latent_summary is not ForecastModel.latent_summary
            assert own == issubclass(kind, forecasters.model_class("rd-jepa"))
        for name in ("rd-jepa", "rd-jepa-tuned"):
            model = forecasters.build(name, "tiny").eval()
            found = model.latent_summary(*model.features(context(model, 3)))
            assert found is not None and found.shape == (3, tiny.width)
        assert (scratch := forecasters.build("scratch", "tiny")).latent_summary(context(scratch)) is None


def test_spare_styles_in_a_row_differ():
    looks = [registry.line_style(f"of-my-own-{number}", number) for number in range(35)]
    assert len({(look["color"], look["marker"]) for look in looks}) == len(looks)


def test_random_weights_under_the_name_of_pretrained_ones_are_noted(tiny):
    with pytest.warns(Note, match=r'rd-jepa has random weights where it is built by name; rdjepa.adapt\("nano-wide"'):
        forecasters.build("rd-jepa", "tiny")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forecasters.build("scratch", "tiny")
