"""Windows of stored trajectories are those that would be cut from all of them, and a `DataLoader` takes them."""

from dataclasses import replace

import numpy as np
import pytest
from torch.utils.data import DataLoader

import rdjepa
from rdjepa.data import store
from rdjepa.data.fields import block_means, channels_first
from rdjepa.data.trajectory import Key
from rdjepa.data.window_dataset import WindowDataset
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import ArgumentError, DataError


@pytest.fixture
def data(tmp_path, make):
    """Trajectories of two systems and of a family, of several lengths."""
    numbers = np.random.default_rng(0)
    keys = [Key("barkley"), Key("barkley", index=1), Key("barkley", "test"), Key("oregonator"), Key("family")]
    for frames, key in zip((12, 15, 10, 11, 12), keys, strict=True):
        fields = numbers.normal(3.0, 2.0, (frames, 8, 8, 2)).astype(np.float32)
        store.write(tmp_path, replace(make(key), fields=fields, times=np.arange(float(frames))))
    return tmp_path


def expected(data, key, normalizer, spec=FORECASTING, grid=8):
    fields = block_means(store.get(data, key).fields, grid)
    return spec.stack(channels_first(normalizer.standardize(fields)))


@pytest.mark.parametrize(("stride", "grid"), [(1, 8), (1, 4), (2, 8)])
def test_windows_are_those_of_all_trajectories_in_their_order(data, stride, grid):
    spec = replace(FORECASTING, stride=stride)
    frames = ("oregonator", "barkley") if stride == 1 else ("barkley",)
    keys = [key for name in frames for key in store.keys(data, name, "pool", "id")]
    if stride == 2:
        store.path_of(data, keys.pop(0)).unlink()  # too short
        store.write(data, replace(store.get(data, keys[0]), fields=np.ones((18, 8, 8, 2), "f4"), times=np.arange(18.0)))
    found = WindowDataset(data, frames, grid=grid, stride=stride)
    own = {
        name: rdjepa.Normalizer.fit(
            [block_means(store.get(data, key).fields, grid) for key in store.keys(data, name, "pool")]
        )
        for name in frames
    }
    whole = [expected(data, key, own[key.system], spec, grid) for key in keys]
    assert found.keys == keys and len(found) == sum(len(each.context) for each in whole)
    for place, joined in enumerate(map(np.concatenate, zip(*whole, strict=True))):
        np.testing.assert_allclose(np.stack([window[place] for window in found]), joined, atol=1e-5)
    assert found.place(-1) == (keys[-1], len(whole[-1].context) - 1)
    with pytest.raises(IndexError):
        found[len(found)]


def test_a_loader_of_torch_collates_them_with_workers_too(data):
    found = WindowDataset(data, ["barkley"], "test", normalizers=WindowDataset(data, "barkley").normalizers)
    ((context, target),) = DataLoader(found, batch_size=2, num_workers=1)  # type: ignore[arg-type]
    assert context.shape == (2, 4, 2, 8, 8) and target.shape == (2, 5, 2, 8, 8)
    assert np.array_equal(context[1].numpy(), found[1].context) and found[1].context.dtype == np.float32


def test_equations_of_a_family_have_statistics_of_their_own(data):
    found = WindowDataset(data, ["family", "family"])
    assert list(found.normalizers) == ["family/pool/id/00000"]
    fields = store.get(data, Key("family")).fields
    own = rdjepa.Normalizer.fit([fields], "trajectory")
    assert found.normalizers["family/pool/id/00000"] == own
    np.testing.assert_array_equal(found[0].context, expected(data, Key("family"), own).context[0])


@pytest.mark.parametrize(
    ("systems", "options", "error", "words"),
    [
        (
            "gray-scott",
            {},
            ArgumentError,
            r"trajectories of gray-scott \(pool, id\) .* data build --systems gray-scott",
        ),
        ([], {}, ArgumentError, "at least one system"),
        ("barkley", {"split": "train"}, ArgumentError, "a split among pool, validation, test, got 'train'"),
        ("barkley", {"regime": "ood"}, ArgumentError, "a regime among id, coeff-ood, ic-ood"),
        ("barkley", {"normalizers": {"barkley": 1}}, ArgumentError, "to be a Normalizer, got 1"),
        ("barkley", {"normalizers": {}}, ArgumentError, "the field statistics of barkley/pool/id/00000, got none"),
        ("barkley", {"grid": 3}, DataError, "multiples of 3"),
        ("barkley", {"stride": 0}, ArgumentError, "stride"),
        ("barkley", {"stride": 3}, DataError, "at least 25 frames, got 12"),
    ],
)
def test_unfit_arguments_are_refused(data, systems, options, error, words):
    with pytest.raises(error, match=words):
        WindowDataset(data, systems, **options)
