from rdjepa.io.cards import model_card


def test_card_states_data_seed_and_diagnostics():
    config = {"batch": 8, "seed": 1234, "precision": "float32", "peak": 1e-3, "warmup": 5, "minimum": 1e-6}
    record = {
        "config": config | {"weight_decay": 0.05, "ema": (0.996, 0.99995)},
        "steps": 77,
        "grid": 64,
        "trajectories": {"gray-scott": 12},
        "validation_trajectories": {"gray-scott": 3},
        "diagnostics": {"step": 77, "latent_loss": 0.25},
        "software": {"torch": "2"},
    }
    card = model_card("nano", record)
    for fact in (
        "77 steps",
        "seed 1234",
        "| gray-scott | 12 | 3 |",
        "| latent_loss | 0.25 |",
        "of these systems only",
        "64 x 64 points",
    ):
        assert fact in card
