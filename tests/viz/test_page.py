"""A page is one file without a network, holds the fields that it was given, and plays in a browser."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from rdjepa.data.fields import with_second
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import ArgumentError, DataError
from rdjepa.evaluation.metrics import relative_l2
from rdjepa.evaluation.view import TRAJECTORIES, thinned, view
from rdjepa.viz.page import Clip, _curve, encoded, is_page

pytest.importorskip("bokeh", reason="the extra `view` is not installed")
BROWSER = os.environ.get("RDJEPA_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def trajectory(seed=0, frames=12, side=16):
    fields = np.random.default_rng(seed).standard_normal((frames, side, side, 2)).astype(np.float32)
    return Trajectory(3 + fields, np.arange(frames, dtype=float), key=Key("mine", index=seed))


def drift(context):
    """A forecast: the newest frame, and one more in every frame."""
    return context[:, -1:] + np.arange(1, 6)[:, None, None, None]


class Elements(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def models(path):
    """The objects of the page, as the JSON in it describes them."""
    (text,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', path.read_text(), re.DOTALL)
    (document,) = json.loads(text).values()
    found = []

    def walk(value):
        if isinstance(value, dict):
            found.append(value)
            [walk(each) for each in value.values()]
        elif isinstance(value, list):
            [walk(each) for each in value]

    walk(document)
    return found


def test_the_page_is_one_small_file_that_loads_nothing(tmp_path):
    given = [trajectory(seed, side=128, frames=40) for seed in range(6)]
    path = view(given, tmp_path / "v.html", drift, title="<b>mine</b>", losses=[3.0, 2.0, 1.0])
    text = path.read_text()
    assert len(text) < 8 * 2**20 and is_page(path)
    for tag, attributes in Elements(text).found:
        assert "src" not in attributes and not (tag == "link" and "href" in attributes), (tag, attributes)
    assert "<b>mine</b>" not in text and "of 6 trajectories on 128 x 128 points, shown on 64 x 64" in text
    names = {each.get("name") for each in models(path)}
    assert {"Select", "Slider", "Toggle", "CustomJS", "Image", "Line"} <= names
    labels = next(each["attributes"]["options"] for each in models(path) if each.get("name") == "Select")
    assert len(labels) == TRAJECTORIES and labels[0][1] == "1: mine/pool/id/00000"


def test_fields_and_small_errors_survive_the_encoding():
    rng = np.random.default_rng(0)
    reference = rng.standard_normal((9, 8, 6, 2))
    error = 1e-4 * rng.standard_normal((5, 8, 6, 2))
    curve = np.ones((5, 3))
    clip = Clip("a", np.arange(9), reference, reference[4:] + error, curve, curve, curve[:, 0], curve[:, 0])
    data = encoded([clip])
    low, high, largest = data["low"], data["high"], data["largest"]
    back = low + (high - low) * data["reference"].reshape(reference.shape) / 255
    assert np.abs(back - reference).max() <= 0.51 * (high - low).max() / 255
    wrong = largest * (data["error"].reshape(error.shape) / 127.5 - 1)
    assert np.abs(wrong - error).max() <= 0.51 * largest.max() / 127.5 < 2e-6
    assert (data["given"], data["F"], data["rows"], data["columns"], data["windows"]) == (4, 9, 8, 6, [1])


@pytest.mark.parametrize(("losses", "mark"), [([2.0], "Scatter"), ([2.0, 1.0], "Line")])
def test_a_single_loss_is_a_point(losses, mark):
    (curve,) = _curve(losses).renderers
    assert type(curve.glyph).__name__ == mark and list(curve.data_source.data["y"]) == losses


def test_errors_on_the_page_are_those_of_the_windows(tmp_path, monkeypatch):
    seen: list[Clip] = []
    monkeypatch.setattr("rdjepa.evaluation.view.page", lambda clips, path, **_: seen.extend(clips))
    given = trajectory()
    view([given], tmp_path / "v.html", drift, title="t")
    assert [list(clip.frames[[0, -1]]) for clip in seen] == [[0, 8], [1, 9], [2, 10], [3, 11]]
    for clip in seen:
        assert clip.l2 is not None and clip.still is not None and clip.wrong is not None
        newest, future = given.fields[clip.frames[3]], given.fields[clip.frames[4:]]
        made = newest + np.arange(1, 6)[:, None, None, None]
        norm = np.linalg.norm(future.reshape(5, -1), axis=1)
        assert np.allclose(clip.l2, np.linalg.norm((made - future).reshape(5, -1), axis=1) / norm, rtol=1e-5)
        assert np.allclose(clip.still, np.linalg.norm((newest - future).reshape(5, -1), axis=1) / norm, rtol=1e-5)
        assert np.allclose(clip.wrong.sum(-1), ((made - future) ** 2).mean(axis=(1, 2, 3)), rtol=1e-4)  # Parseval


def test_errors_and_pictures_are_of_the_measured_component_alone(monkeypatch, tmp_path):
    seen: list[Clip] = []
    monkeypatch.setattr("rdjepa.evaluation.view.page", lambda clips, path, **_: seen.extend(clips))
    both = trajectory()
    one = replace(both, fields=with_second(both.fields[..., :1]))
    for forecast in (drift, None):
        view([one, one], tmp_path / "v.html", forecast, title="t")
        assert {clip.reference.shape[-1] for clip in seen} == {1}
    future = one.fields[seen[0].frames[4:], ..., :1]
    made = one.fields[seen[0].frames[3], ..., :1] + np.arange(1, 6)[:, None, None, None]
    assert seen[0].l2 is not None and np.allclose(seen[0].l2, relative_l2(made, future), rtol=1e-5)


@pytest.mark.parametrize(
    ("height", "width", "rows", "columns", "k", "words"),
    [
        (16, 16, 16, 16, 1, "16 x 16 points."),
        (256, 256, 64, 64, 4, "256 x 256 points, shown on 64 x 64."),
        (32, 128, 32, 128, 1, "32 x 128 points."),
        (48, 96, 24, 48, 2, "48 x 96 points, shown on 24 x 48."),
        (65, 65, 32, 32, 2, "65 x 65 points, the first 64 rows and 64 columns shown on 32 x 32."),
        (131, 150, 43, 50, 3, "131 x 150 points, the first 129 rows and 150 columns shown on 43 x 50."),
        (2, 20000, 1, 10000, 2, "2 x 20000 points, shown on 1 x 10000."),
    ],
)
def test_means_of_blocks_are_shown_and_said_to_be(monkeypatch, height, width, rows, columns, k, words):
    told: dict = {}
    monkeypatch.setattr("rdjepa.evaluation.view.page", lambda clips, path, **settings: told.update(settings))
    fields = np.random.default_rng(0).standard_normal((3, height, width, 2)).astype(np.float32)
    blocks = fields[:, : rows * k, : columns * k].reshape(3, rows, k, columns, k, 2)
    assert np.allclose(thinned(fields), blocks.mean(axis=(2, 4)), atol=1e-6)
    view([Trajectory(fields, np.arange(3.0))], "v.html", title="t")
    assert told["facts"] == f"1 of 1 trajectories on {words}"


def test_the_page_knows_names_of_components_and_the_shape_of_cells(tmp_path):
    def shown(*given):
        found = models(view(given, tmp_path / "v.html", title="t"))
        options = [each["attributes"]["options"] for each in found if each.get("name") == "Select"]
        (plot,) = (
            each["attributes"] for each in found if each.get("name") == "Figure" and "Image" in str(each["attributes"])
        )
        return options, [plot[side]["attributes"]["end"] for side in ("x_range", "y_range")]

    named = replace(trajectory(), names=("predator", "prey"), spacing=(1.0, 0.25))
    assert shown(named) == ([[["0", "1: mine/pool/id/00000"]], [["0", "predator"], ["1", "prey"]]], [64, 16])
    assert shown(replace(named, spacing=(1.0, 2.0)))[1] == [16, 32]
    assert shown(named, trajectory(1))[0][1] == [["0", "u"], ["1", "v"]] == shown(trajectory())[0][1]
    assert shown(trajectory())[1] == [16, 16]
    wide = replace(trajectory(), fields=trajectory().fields[:, :8], spacing=(1.0, 1.0))
    assert shown(wide)[1] == [16, 16] and shown(replace(wide, spacing=(4.0, 1.0)))[1] == [32, 8]


def test_trajectories_of_other_cells_have_spectra_of_other_lengths(tmp_path):
    given = trajectory(frames=9)
    path = view([given, replace(given, spacing=(1.0, 2.0))], tmp_path / "v.html", drift, title="t")
    assert is_page(path)


def test_what_cannot_be_shown_is_refused_and_nothing_written(tmp_path, monkeypatch):
    one = with_second(trajectory().fields[..., :1])
    for given, words in (
        ([], "at least one trajectory"),
        ([trajectory(), trajectory(side=8)], "on one grid, got 8 x 8, 16 x 16"),
        ([trajectory(), replace(trajectory(), fields=one)], "got some of one and some of two"),
        ([trajectory(frames=8)], "at least 9 frames"),
    ):
        with pytest.raises(DataError, match=words):
            view(given, tmp_path / "v.html", drift, title="t")
    monkeypatch.setitem(sys.modules, "bokeh", None)
    with pytest.raises(ArgumentError, match=r"pip install 'rdjepa\[view\]'"):
        view([trajectory()], tmp_path / "v.html", title="t")
    assert list(tmp_path.iterdir()) == []


DRIVE = """
<script>
const wait = () => new Promise(done => setTimeout(done, 200))
const errors = []
window.addEventListener("error", event => errors.push(event.message))
setTimeout(async () => {
  const all = [...Bokeh.documents[0]._all_models.values()]
  const titled = title => all.find(model => model.title === title)
  const images = () => all.filter(model => model.type === "ColumnDataSource" && model.data.image).map(
    source => Array.from(source.data.image[0]).reduce((a, b) => a + b, 0) / source.data.image[0].length)
  const seen = [images()]
  titled("frame of the window").value = 9; await wait(); seen.push(images())
  titled("window").value = 2; await wait(); seen.push(images())
  titled("trajectory").value = "1"; await wait(); seen.push(images())
  titled("component").value = "1"; await wait(); seen.push(images())
  const play = all.find(model => model.type === "Toggle")
  titled("window").value = 1; titled("frame of the window").value = 1
  play.active = true; await new Promise(done => setTimeout(done, 1100)); play.active = false
  console.log("RESULT" + btoa(JSON.stringify({seen, played: titled("frame of the window").value, errors})) + "END")
}, 1500)
</script>
"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium; RDJEPA_CHROMIUM names one")
def test_a_browser_shows_the_chosen_frame_and_plays(tmp_path):
    given = [replace(each, fields=each.fields[:, :12]) for each in (trajectory(0), trajectory(1))]
    path = view(given, tmp_path / "v.html", drift, title="t", losses=[2.0, 1.0])
    before, end, after = path.read_text().rpartition("</body>")  # the library mentions it, too
    path.write_text(before + DRIVE + end + after)
    assert BROWSER is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--remote-debugging-port=0"]
    flags.append(f"--user-data-dir={tmp_path / 'profile'}")
    shown = subprocess.Popen(  # what a page says to its console goes to the browser's standard error
        [BROWSER, *flags, path.as_uri()], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    late = threading.Timer(60, os.killpg, (shown.pid, signal.SIGKILL))
    late.start()
    try:
        assert shown.stderr is not None
        lines = (re.search("RESULT(.*)END", line) for line in shown.stderr)
        found = next((match[1] for match in lines if match), None)
    finally:
        late.cancel()
        os.killpg(shown.pid, signal.SIGKILL)
        shown.wait()
    assert found, "the page said nothing within a minute"
    result = json.loads(base64.b64decode(found))
    assert result["errors"] == [] and 3 <= result["played"] <= 6
    # (trajectory, first frame of the window, frame, component): what each choice above shows
    for means, (which, start, frame, c) in zip(
        result["seen"], [(0, 0, 0, 0), (0, 0, 8, 0), (0, 1, 9, 0), (1, 1, 9, 0), (1, 1, 9, 1)], strict=True
    ):
        fields = given[which].fields[..., c]
        newest, h = fields[start + 3], frame - start - 3
        future = newest + h if h > 0 else fields[frame]
        expected = [fields[frame].mean(), future.mean(), np.abs(future - fields[frame]).mean()]
        assert means == pytest.approx(expected, abs=0.02)
