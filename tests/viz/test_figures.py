import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from rdjepa.viz import figures, inline

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


def test_curves_need_only_some_lines_with_diagnostics(drawn, tmp_path):
    measured = dict.fromkeys(
        ("latent_loss", "mean_loss", "persistence_loss", "target_std", "target_rank", "target_cosine"), 0.5
    )
    lines = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0} | measured]
    watched = {
        "gates": {"diffusion": [0.2, 0.3], "reaction": [0.1, 0.2]},
        "gradient_norms": {"encoder.tokenizer": 0.1},
        "queue": {"samples": 9, "systems": {"gray-scott": {"target_rank": 3.0}}},
    }
    for shown in (lines, [line | watched for line in lines]):
        figures.curves(shown, tmp_path / "c.png")
    counts = [{axis.get_ylabel(): len(axis.lines) for axis in figure.axes} for figure in drawn]
    assert counts[0] == {"latent loss": 4, "targets across samples": 2, "RankMe of targets": 1}
    assert counts[1] == counts[0] | {"RankMe of targets": 2, "state": 4, "gradient norms": 1}


def test_what_was_measured_once_is_a_point(drawn, tmp_path):
    lines = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0, "latent_loss": 1.5}]
    figures.curves(lines, tmp_path / "c.png")
    training, held_out = drawn[0].axes[0].lines
    assert training.get_marker() == "" and held_out.get_marker() == "."
    assert inline.curve([3.0]).axes[0].lines[0].get_marker() == "."


@pytest.mark.parametrize(("skill", "low"), [([-9.0, 0.5], -0.2), ([-9.0, -2.0], -2.2)])
def test_the_skill_at_the_end_is_within_its_panel(drawn, tmp_path, skill, low):
    figures.curves([{"step": step, "skill_mean": each} for step, each in enumerate(skill)], tmp_path / "c.png")
    assert drawn[0].axes[0].get_ylim() == pytest.approx((low, 1))


def test_panels_that_a_run_has_nothing_for_are_left_out(drawn, tmp_path):
    def size(*lines):
        figures.curves(lines, tmp_path / "c.png")
        return tuple(drawn[-1].get_size_inches())

    one = size({"step": 1, "loss": 2.0})
    two = size({"step": 1, "loss": 2.0, "gradient_norm": 1.0})
    four = size({"step": 1, "loss": 2.0, "gradient_norm": 1.0, "latent_std": 0.5, "latent_rank": 3.0})
    assert size() == one  # a run without lines has an empty picture
    assert two == (2 * one[0], one[1]) and four == pytest.approx((3 * one[0], 2 * one[1]))
    assert [len(figure.axes) for figure in drawn] == [1, 2, 4, 0]


def test_a_forecast_at_one_horizon_is_drawn(drawn, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "SHOWN_HORIZONS", (2,))
    reference = RNG.standard_normal((5, 16, 16, 2))
    figures.forecast(reference, {"a": reference + 1}, tmp_path / "f.png", title="t")
    shown = [axis.images[0].get_array() for axis in drawn[0].axes if axis.images]
    truth = reference[1, ..., 0]
    assert np.allclose(shown, [truth, truth + 1, np.ones_like(truth)]) and drawn[0].axes[0].get_title() == "h = 2"


DRAW = """
import gc, sys
import numpy as np
from rdjepa.data.trajectory import Trajectory
assert not [name for name in ("matplotlib", "xarray", "torch") if name in sys.modules]
import matplotlib
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
before = matplotlib.get_backend(), dict(matplotlib.rcParams)
from pathlib import Path
from rdjepa.viz import figures, style
out = Path(sys.argv[1])
mine = Trajectory(np.zeros((5, 8, 8, 2), np.float32), np.arange(5.0))
mine._repr_html_(), mine.plot(), mine.animate()
fields = np.random.default_rng(0).standard_normal((5, 16, 16, 2))
figures.forecast(fields, {"a": fields + 1}, out / "f.png", title="t")
figures.contact_sheet({"a": fields}, out / "s.png", title="t")
figures.animation(fields, {"a": fields + 1}, out / "m.gif", title="t")
figures.curves([{"step": 1, "loss": 2.0}], out / "c.png")
with style.print_style():
    figure = style.Figure(figsize=(2, 1))
    figure.subplots().plot([1, 2])
    style.save(figure, out, "p")
del figure
gc.collect()
print(before == (matplotlib.get_backend(), dict(matplotlib.rcParams)), before[0], plt.get_fignums(),
      sum(isinstance(each, Figure) for each in gc.get_objects()))
"""


def test_showing_and_drawing_leave_the_backend_the_settings_and_no_figure(tmp_path):
    environment = os.environ | {"MPLBACKEND": "svg"}
    done = subprocess.run(
        [sys.executable, "-c", DRAW, tmp_path], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == "True svg [] 0"
    assert {path.name for path in tmp_path.iterdir()} == {"f.png", "s.png", "m.gif", "c.png", "p.pdf", "p.png"}


def test_a_contact_sheet_names_the_frames_that_it_shows(drawn, tmp_path):
    rows = {name: RNG.standard_normal((count, 8, 8, 2)) for name, count in (("a", 40), ("b", 20))}
    figures.contact_sheet(rows, tmp_path / "s.png", title="t")
    titles = [f"{component}, frame {frame}" for component in "uv" for frame in (0, 13, 19)]
    assert [axis.get_title() for axis in drawn[0].axes] == titles + [""] * 6
    for axis, title in zip(drawn[0].axes, titles, strict=False):
        component, frame = "uv".index(title[0]), int(title.split()[-1])
        assert np.array_equal(axis.images[0].get_array(), rows["a"][frame, ..., component])


def test_a_mosaic_holds_any_number_of_trajectories(tmp_path):
    groups = {name: RNG.standard_normal((count, 3, 16, 16)) for name, count in (("many", 30), ("one", 1))}
    path = figures.mosaic(groups, tmp_path / "m.png", title="t")
    with Image.open(path) as image:
        assert min(image.size) > 400
        assert len(image.convert("RGB").getcolors(10**7) or []) > 100


def test_a_uniform_trajectory_has_a_tile_too(drawn, tmp_path):
    figures.mosaic({"flat": np.ones((2, 3, 8, 8))}, tmp_path / "m.png", title="t")
    shown = drawn[0].axes[0].images[0].get_array().compressed()
    assert len(shown) == 2 * 3 * 8 * 8 and (shown == 0).all()
