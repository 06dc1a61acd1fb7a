import pytest

from rdjepa.errors import ArgumentError
from rdjepa.io.checkpoint import Sources
from rdjepa.models.rdjepa import build
from rdjepa.pretraining.start import Start, check_start


def sources(statistics, **trajectories):
    """Data of a run: system -> statistics, and system -> number of pool trajectories."""
    keys = {f"{name}/pool/id/{i:05d}": "0" * 64 for name, count in trajectories.items() for i in range(count)}
    return Sources(dict.fromkeys(trajectories, statistics), keys)


def test_a_model_with_random_weights_is_nothing_to_start_from(tiny):
    with pytest.raises(ArgumentError, match="with pretrained networks to start from, got one with random weights"):
        check_start(build("tiny", seed=5), tiny, "predictive-latent")


def test_statistics_of_fewer_trajectories_than_both_runs_saw_are_known_as_such(tiny):
    first = sources("first", barkley=3, brusselator=2)
    start = Start(build(tiny, seed=0), {}, first, {})
    joined = start.sources_with(sources("later", barkley=5, brusselator=2, schnakenberg=4))
    assert joined.normalizers == {"barkley": "first", "brusselator": "first", "schnakenberg": "later"}
    assert joined.counts == {"barkley": 3} and len(joined.trajectories) == 5 + 2 + 4
    again = Start(start.model, {}, joined, {}).sources_with(sources("later", barkley=9))
    assert again.counts == {"barkley": 3}
    assert not start.sources_with(first).counts


def test_the_smallest_distance_to_what_is_held_out_is_that_of_all_stages(tiny):
    record = {"systems": ["family"], "summary": "s"}

    def told(before, later):
        first, second = ({"nearest": {"family": {"distance": value}}} for value in (before, later))
        return Start(build(tiny, seed=0), record | first, sources("first", family=1), {}).told(record | second)

    for before, later in ((0.2, 0.5), (0.5, 0.2)):
        assert told(before, later)["nearest"]["family"]["distance"] == 0.2
