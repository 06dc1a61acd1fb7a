import pytest

from rdjepa.viz import style


@pytest.mark.parametrize(
    ("limits", "labels"),
    [
        ((1.8, 5.3), ["2", "3", "4", "5"]),
        ((0.9, 11), ["1", "2", "5", "10"]),
        ((2.5, 19), ["3", "5", "7", "10"]),
        ((2.6, 10.2), ["3", "4", "5", "6", "7", "8", "9", "10"]),
        ((0.0004, 0.9), ["0.001", "0.01", "0.1"]),
        ((0.9, 1100), ["1", "10", "100", "1000"]),
    ],
)
def test_a_logarithmic_axis_has_fewer_numbers_the_more_decades_it_spans(limits, labels):
    figure = style.Figure(figsize=(2, 2))
    axes = figure.subplots()
    axes.plot([1, 2], [1, 2])
    style.logarithmic(axes.xaxis)
    axes.set_xlim(*limits)
    ticks = [*axes.xaxis.get_major_ticks(), *axes.xaxis.get_minor_ticks()]
    figure.draw_without_rendering()
    low, high = limits
    shown = sorted((tick.get_loc(), tick.label1.get_text()) for tick in ticks)
    assert [text for at, text in shown if low <= at <= high and text] == labels
