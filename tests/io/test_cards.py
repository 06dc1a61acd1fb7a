from rdjepa.io.cards import model_card, runs


def record_of_a_run():
    config = {"batch": 8, "seed": 1234, "precision": "float32", "peak": 1e-3, "warmup": 5, "minimum": 1e-6}
    return {
        "objective": "predictive-latent",
        "summary": "predicting future states in latent space",
        "pretrained": ["encoder", "predictor"],
        "without": [],
        "systems": ["gray-scott"],
        "config": config | {"weight_decay": 0.05, "ema": (0.996, 0.99995), "weights": []},
        "steps": 77,
        "grid": 64,
        "trajectories": {"gray-scott": 12},
        "validation_trajectories": {"gray-scott": 3},
        "diagnostics": {"step": 77, "latent_loss": 0.25},
        "software": {"torch": "2"},
    }


def test_card_states_data_seed_and_diagnostics():
    card = model_card("nano", record_of_a_run())
    assert "Encoder and predictor of RD-JEPA, pretrained by predicting future states in latent space." in card
    assert "random weights" not in card and "Left out" not in card
    for fact in (
        "77 steps",
        "seed 1234",
        "| gray-scott | 12 | 3 |",
        "| latent_loss | 0.25 |",
        "only in-distribution pool trajectories of these systems",
        "64 x 64 points",
    ):
        assert fact in card


def test_card_states_how_often_a_system_is_drawn():
    record = record_of_a_run()
    assert "times as often" not in model_card("nano", record)
    drawn = record | {"config": record["config"] | {"weights": [["family", 5]]}}
    assert "family is drawn 5 times as often as another." in model_card("nano", drawn)


def test_card_states_every_run_that_it_went_on_from_and_the_systems_of_all():
    first = record_of_a_run() | {"systems": ["gray-scott"], "fingerprint": "a" * 64}
    again = {"objective": "decoder", "pretrained": ["encoder", "predictor", "decoder"], "fingerprint": "b" * 64}
    second = first | again | {"start": first, "steps": 5, "trajectories": {"brusselator": 4}}
    last = second | {"start": second, "steps": 2, "systems": ["brusselator", "gray-scott"]}
    card = model_card("nano", last | {"validation_trajectories": {}})
    assert [run["steps"] for run in runs(last)] == [2, 5, 77]
    assert "only in-distribution pool trajectories of brusselator, gray-scott (all runs together), no test" in card
    assert "bbbbbbbbbbbb, 5 steps of batch 8 on pool trajectories 4 of brusselator; that one from aaaaaaaaaaaa" in card
    assert "It went on from" not in model_card("nano", first)


def test_card_tells_recordings_from_what_was_simulated():
    record = record_of_a_run() | {"systems": ["gray-scott", "mine"], "recorded": ["mine"]}
    card = model_card("nano", record)
    assert "only in-distribution pool trajectories of gray-scott, no test trajectory." in card
    assert "Not simulated by this package but recorded: mine. Nothing is known here of their equations" in card
    assert "Simulated by this package" not in model_card("nano", record | {"systems": ["mine"]})


def test_card_states_objective_fresh_networks_and_what_was_left_out():
    told = {"objective": "masked-fields", "summary": "reconstructing", "pretrained": ["encoder"], "without": ["tubes"]}
    measured = {"diagnostics": {"held_out_loss": 0.5, "latent_std": 0.7}}
    card = model_card("nano", record_of_a_run() | told | measured)
    for fact in (
        "\nEncoder of RD-JEPA, pretrained by reconstructing.",
        "The predictor has random weights.",
        "Left out of the method: tubes.",
        "| held_out_loss | 0.5 |",
        "| latent_std | 0.7 |",
    ):
        assert fact in card
    assert "averaging coefficient" not in card and "latent_loss" not in card
    whole = told | {"pretrained": ["encoder", "predictor", "decoder"]}
    assert "The decoder is part of it" in model_card("nano", record_of_a_run() | whole)
    assert "\nEncoder, predictor and decoder of RD-JEPA, pre" in model_card("nano", record_of_a_run() | whole)
    nothing = model_card("nano", record_of_a_run() | told | {"objective": "random", "pretrained": []})
    assert "The encoder and the predictor have random weights." in nothing
