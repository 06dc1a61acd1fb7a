"""What pretraining reads: windows of stored trajectories of several systems, balanced over the systems (S2.3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from rdjepa.data import store
from rdjepa.data.fields import channels_first
from rdjepa.data.normalization import Normalizer
from rdjepa.data.windows import PRETRAINING
from rdjepa.training.targets import TargetConfig, sample_queries

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Batch:
    """One step's input, standardized, channels first.

    Attributes:
        systems: (B,) name of each sample's system.
        context: (B, T, C, H, W) frames.
        futures: (n, C, H, W), each distinct target frame of each sample once.
        patches: (B, M) queried patches.
        offsets: (B, M) queried offsets.
        frame_of_query: (B, M) row of `futures` that answers each query.
        mask: (B, T, S) hidden context tokens.
    """

    systems: tuple[str, ...]
    context: Tensor
    futures: Tensor
    patches: Tensor
    offsets: Tensor
    frame_of_query: Tensor
    mask: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The same batch on a device."""
        moved = {name: value.to(device, non_blocking=True) for name, value in vars(self).items() if name != "systems"}
        return Batch(self.systems, **moved)


class Source:
    """Trajectories in memory, standardized per system with the statistics of these trajectories alone.

    Batch number i of a seed is a pure function of (seed, i), so a resumed run continues the same sequence.
    """

    def __init__(
        self,
        fields: Mapping[str, list[np.ndarray]],
        normalizers: Mapping[str, Normalizer],
        checksums: Mapping[str, str],
    ) -> None:
        """Hold what `open` read.

        Args:
            fields: system -> list of standardized (T, C, H, W) arrays.
            normalizers: system -> the statistics they were standardized with.
            checksums: key -> checksum of every trajectory; the manifest of the run.
        """
        self.fields, self.normalizers, self.checksums = dict(fields), dict(normalizers), dict(checksums)

    @classmethod
    def open(cls, base: Path | str, systems: Sequence[str], split: str = "pool", limit: int | None = None) -> "Source":
        """Read the in-distribution trajectories of `split` ("pool" or "validation") of several systems.

        Raises:
            ValueError: the test split is asked for, or a system has no trajectory there.
        """
        if split not in ("pool", "validation"):
            raise ValueError(f"expected the split pool or validation, got {split!r}; training never reads test data")
        fields: dict[str, list[np.ndarray]] = {}
        normalizers: dict[str, Normalizer] = {}
        checksums: dict[str, str] = {}
        for name in systems:
            keys = store.keys(base, system=name, split=split, regime="id")[:limit]
            if not keys:
                raise ValueError(
                    f"expected trajectories of {name} ({split}) under {base}, got none; "
                    f"make some with: rdjepa simulate {name} --split {split} --count 100 --out {base}"
                )
            physical = [store.read(store.path_of(base, key)).fields for key in keys]
            normalizer = Normalizer.fit(physical)
            checksums |= {str(key): store.checksum(x) for key, x in zip(keys, physical, strict=True)}
            fields[name] = [channels_first(normalizer.standardize(x)) for x in physical]
            normalizers[name] = normalizer
        return cls(fields, normalizers, checksums)

    def batch(self, seed: int, index: int, size: int, side: int, config: TargetConfig) -> Batch:
        """Batch number `index` of the sequence `seed`: a system, a trajectory, a window and queries per sample."""
        rng = np.random.default_rng([seed, index])
        names = list(self.fields)
        systems, contexts, futures, patches, offsets, rows, masks = [], [], [], [], [], [], []
        count = 0
        for _ in range(size):
            name = names[rng.integers(len(names))]
            trajectory = self.fields[name][rng.integers(len(self.fields[name]))]
            start = rng.integers(PRETRAINING.count(len(trajectory)))
            newest = start + PRETRAINING.context - 1
            queries = sample_queries(rng, side, PRETRAINING.context, config)
            distinct, row = np.unique(queries.offsets, return_inverse=True)
            systems.append(name)
            contexts.append(trajectory[start : newest + 1])
            futures.append(trajectory[newest + distinct])
            patches.append(queries.patches)
            offsets.append(queries.offsets)
            rows.append(row + count)
            masks.append(queries.mask)
            count += len(distinct)
        return Batch(
            tuple(systems),
            torch.from_numpy(np.stack(contexts)),
            torch.from_numpy(np.concatenate(futures)),
            torch.from_numpy(np.stack(patches)),
            torch.from_numpy(np.stack(offsets)),
            torch.from_numpy(np.stack(rows)),
            torch.from_numpy(np.stack(masks)),
        )
