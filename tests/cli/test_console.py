from rdjepa.cli.console import training_line

MEASURED = {"latent_loss": 0.4, "skill_mean": 0.8, "skill_persistence": 0.7, "target_std": 0.9, "target_rank": 41.3}


def test_a_training_line_shows_what_was_measured_so_far_and_warnings_first():
    assert training_line({"loss": 0.5, "step": 3}) == "loss 0.5000"
    whole = training_line({"loss": 0.5, "warnings": ["targets span few directions"]} | MEASURED)
    assert whole.startswith("WARNING targets span few directions;")
    assert "skill 0.80 0.70 std 0.90 rank 41" in whole
    assert "\n" not in whole
