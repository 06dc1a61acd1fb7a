import numpy as np
from PIL import Image

from rdjepa.viz import figures

RNG = np.random.default_rng(0)


def test_forecast_figure_is_drawn(tmp_path):
    reference = RNG.standard_normal((5, 16, 16, 2))
    shown = {"a": reference + 0.1, "b": reference * 0}
    path = figures.forecast(reference, shown, tmp_path / "f.png", title="t")
    with Image.open(path) as image:
        assert min(image.size) > 500
        assert len(image.convert("RGB").getcolors(10**7) or []) > 100


def test_animation_has_one_picture_per_frame(tmp_path):
    reference = RNG.standard_normal((4, 16, 16, 2))
    path = figures.animation(reference, {"a": reference + 1}, tmp_path / "f.gif", title="t")
    with Image.open(path) as image:
        assert image.n_frames == 4  # type: ignore[attr-defined]


def test_curves_need_only_some_lines_with_diagnostics(tmp_path):
    measured = dict.fromkeys(
        ("latent_loss", "mean_loss", "persistence_loss", "target_std", "target_rank", "target_cosine"), 0.5
    )
    lines = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0} | measured]
    older = figures.curves(lines, tmp_path / "c.png").stat().st_size
    watched = {
        "gates": {"diffusion": [0.2, 0.3], "reaction": [0.1, 0.2]},
        "gradient_norms": {"encoder.tokenizer": 0.1},
        "queue": {"samples": 9, "systems": {"gray-scott": {"target_rank": 3.0}}},
    }
    assert figures.curves([line | watched for line in lines], tmp_path / "c.png").stat().st_size > older
