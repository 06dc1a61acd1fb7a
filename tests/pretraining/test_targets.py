from collections import Counter

import numpy as np
import pytest
import torch

from rdjepa.data.windows import PRETRAINING
from rdjepa.errors import ArgumentError
from rdjepa.forecasters.base import CONTEXT
from rdjepa.models.embeddings import MAX_OFFSET
from rdjepa.models.rdjepa import build
from rdjepa.pretraining.targets import (
    BLOCK,
    SAME_TIME,
    TUBE,
    TargetConfig,
    sample_offsets,
    sample_queries,
    sample_region,
)

CONFIG = TargetConfig()


def test_networks_and_forecasters_have_the_context_and_the_largest_offset_of_the_windows(tiny):
    """They import no data, so they state both themselves."""
    assert PRETRAINING.max_offset == MAX_OFFSET and PRETRAINING.context == CONTEXT
    made = build("tiny", seed=0)(torch.zeros(1, PRETRAINING.context, 2, tiny.grid, tiny.grid), PRETRAINING.max_offset)
    assert made.shape[1] == PRETRAINING.max_offset


def test_regions_reach_every_edge_and_stay_inside():
    rng = np.random.default_rng(0)
    covered = np.zeros((16, 16), dtype=int)
    for _ in range(2_000):
        region = sample_region(rng, 16, CONFIG)
        assert 4 <= region.size <= 4 * 36
        assert np.array_equal(region, np.unique(region))
        covered.reshape(-1)[region] += 1
    assert (covered > 0).all()
    assert np.allclose(covered[0], covered[-1], rtol=0.5)  # first and last row alike


def test_one_rectangle_has_uniform_sides():
    rng = np.random.default_rng(1)
    one = TargetConfig(rectangles=(1, 1))
    heights = Counter(len(np.unique(sample_region(rng, 16, one) // 16)) for _ in range(5_000))
    assert set(heights) == {2, 3, 4, 5, 6}
    assert all(abs(n / 5_000 - 0.2) < 0.03 for n in heights.values())


def test_target_types_and_offsets_have_the_printed_distribution():
    rng = np.random.default_rng(2)
    kinds: Counter[str] = Counter()
    blocks: Counter[int] = Counter()
    for _ in range(10_000):
        kind, offsets = sample_offsets(rng, CONFIG)
        kinds[kind] += 1
        if kind == BLOCK:
            blocks[int(offsets[0])] += 1
        if kind == TUBE:
            assert len(set(offsets.tolist())) == 4
            assert 1 <= offsets.min() <= offsets.max() <= 8
        if kind == SAME_TIME:
            assert offsets.tolist() == [0]
    for kind, share in ((BLOCK, 0.5), (TUBE, 0.4), (SAME_TIME, 0.1)):
        assert abs(kinds[kind] / 10_000 - share) < 0.02
    assert set(blocks) == set(range(1, 9))
    assert all(abs(n / kinds[BLOCK] - 1 / 8) < 0.02 for n in blocks.values())


@pytest.mark.parametrize(("queries", "enough"), [(100, True), (144, True), (145, False), (256, False)])
def test_queries_come_from_region_times_offsets_without_repeats_when_there_are_enough(queries, enough):
    """Of one square of 36 patches and the four offsets of a tube."""
    config = TargetConfig(rectangles=(1, 1), sides=(6, 6), probabilities=(0.0, 1.0, 0.0), queries=queries)
    rng = np.random.default_rng(3)
    for _ in range(50):
        q = sample_queries(rng, 16, 4, config)
        assert q.patches.shape == q.offsets.shape == (queries,)
        assert np.ptp(q.patches // 16) <= 5 and np.ptp(q.patches % 16) <= 5 and len(np.unique(q.offsets)) == 4
        pairs = set(zip(q.patches.tolist(), q.offsets.tolist(), strict=True))
        assert len(pairs) == queries if enough else 36 < len(pairs) < 144


def test_only_same_time_targets_hide_their_region_and_only_in_the_newest_frame():
    rng = np.random.default_rng(4)
    bare = TargetConfig(mask_probability=0.0)
    for _ in range(300):
        q = sample_queries(rng, 16, 4, bare)
        assert not q.mask[:3].any()
        assert q.mask[3].any() == (q.kind == SAME_TIME)
        if q.kind == SAME_TIME:
            assert set(q.patches.tolist()) <= set(np.flatnonzero(q.mask[3]).tolist())


def test_extra_masking_hits_a_third_of_samples_with_the_printed_rates():
    rng = np.random.default_rng(5)
    future = TargetConfig(probabilities=(1.0, 0.0, 0.0))
    shares = np.array([sample_queries(rng, 16, 4, future).mask.mean() for _ in range(4_000)])
    masked = shares[shares > 0]
    assert abs(masked.size / shares.size - 0.35) < 0.03
    assert abs(masked.mean() - 0.15) < 0.01
    assert masked.min() > 0.02
    assert masked.max() < 0.30


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"max_offset": 3}, r"tube of at most 3 distinct offsets.* got 4; "),
        ({"probabilities": (0.5, 0.4, 0.2)}, r"add up to 1, got \(0.5, 0.4, 0.2\); "),
        ({"rectangles": (4, 1)}, "rectangles from low to high, got 4 to 1; "),
        ({"sides": (6, 2)}, "sides from low to high"),
        ({"mask_range": (0.25, 0.05)}, "mask_range from low to high"),
    ],
)
def test_distributions_that_cannot_be_drawn_from_are_refused(settings, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        TargetConfig(**settings)


@pytest.mark.parametrize("offset", [0, 9])
def test_offsets_beyond_the_window_are_refused(offset):
    with pytest.raises(ArgumentError, match=r"offset from 1 to 8, got|max_offset to be a whole number of at least 1"):
        TargetConfig(max_offset=offset)
