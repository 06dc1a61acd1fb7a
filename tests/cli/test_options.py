"""Names and defaults that help shows are those of the modules that own them."""

import inspect

import pytest
from typer.main import get_command

from rdjepa import api, demo
from rdjepa.adaptation import export
from rdjepa.cli import about, curve, look, main, options, pretrain, study
from rdjepa.data import trajectory
from rdjepa.errors import ArgumentError
from rdjepa.evaluation import metrics
from rdjepa.evaluation.probe import ProbeConfig
from rdjepa.io import checkpoint
from rdjepa.models import borders
from rdjepa.models import rdjepa as models
from rdjepa.pde import system
from rdjepa.pretraining import engine, objectives, parts
from rdjepa.study import profiles, registry
from rdjepa.study.supply import Supply


@pytest.mark.parametrize(
    ("shown", "known"),
    [
        (options.SPLITS, trajectory.SPLITS),
        (options.REGIMES, system.REGIMES),
        (options.PRESETS, models.PRESETS),
        (options.BASES, api.BASES),
        (options.METRICS, metrics.DEFAULT_METRICS),
        (options.BORDERS, borders.BORDERS),
        (options.ENCODERS, api.ENCODERS),
        (options.DECODERS, api.DECODERS),
        (options.COMPILE_MODES, engine.MODES),
        (options.EXPORTS, export.FORMATS),
        (options.FRAME_PLACES, engine.PLACES),
        (options.OBJECTIVES, objectives.names()),
        (options.PARTS, parts.PARTS),
        (options.STUDIES, registry.names()),
        (options.PROFILES, profiles.PROFILES),
        ((options.MODEL,), (checkpoint.DEFAULT,)),
        (options.PHASES, registry.get("ablation").phases),
    ],
)
def test_names_in_help_are_those_that_are_known(shown, known):
    assert shown == tuple(known)


@pytest.mark.parametrize(
    ("command", "known"),
    [
        (about.demo, vars(demo.DemoConfig())),
        (curve.learning_curve, {"steps": api.CURVE_UPDATES, "draws": api.CURVE_DRAWS}),
        (
            look.first_look,
            {"steps": api.LOOK_UPDATES, "level": api.LOOK_LEVEL, "hold_out": api.LOOK_SHARE},
        ),
        (pretrain.probe, {"train": ProbeConfig.train, "test": ProbeConfig.test}),
        (study.run, {"cache": Supply.limit / study.GIB}),
    ],
)
def test_defaults_of_commands_are_those_of_what_they_call(command, known):
    shown = {name: parameter.default for name, parameter in inspect.signature(command).parameters.items()}
    both = shown.keys() & known.keys()
    assert both and {name: shown[name] for name in both} == {name: known[name] for name in both}


def test_names_are_separated_by_commas_and_at_least_one_is_needed():
    assert options.names_in(" a, b,") == options.names_in("a", "b,") == ["a", "b"]
    with pytest.raises(ArgumentError, match="separated by commas"):
        options.names_in(" , ")


def test_trajectories_are_named_by_positions():
    assert options.reading_of(index="0, 3").index == (0, 3)
    for text in ("", "0,,1", "a", "-1", "1.5"):
        with pytest.raises(ArgumentError, match="whole numbers separated by commas"):
            options.reading_of(index=text)


def test_a_share_to_retain_is_a_number_or_left_to_the_data():
    assert (options.share_of("auto"), options.share_of("0.5")) == ("auto", 0.5)
    with pytest.raises(ArgumentError, match="expected a share to retain of a number or auto, got 'half'"):
        options.share_of("half")


def test_every_command_that_reads_data_of_others_takes_all_that_they_may_not_say():
    reading = {"field", "axes", "components", "interval", "length", "boundary", "spacing"}
    commands = vars(get_command(main.app))["commands"]
    taken = {name: {each.name for each in command.params} & reading for name, command in commands.items()}
    assert {name for name, options in taken.items() if options} == {
        *("inspect", "first-look", "adapt", "evaluate", "forecast", "learning-curve", "view")
    }
    assert all(options in (set(), reading) for options in taken.values())
