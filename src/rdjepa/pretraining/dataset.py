"""The dataset of pretraining: windows of stored trajectories of several systems, drawn equally often (S2.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from rdjepa.checks import of_class
from rdjepa.data import store
from rdjepa.data.statistics import Normalizer
from rdjepa.data.windows import PRETRAINING
from rdjepa.errors import ArgumentError
from rdjepa.pretraining.frames import Frames, read_frames
from rdjepa.pretraining.targets import Queries, Sampler

ALL = slice(None)


@dataclass(frozen=True)
class Batch:
    """One step's input, standardized, channels first.

    Attributes:
        systems: (B,) name of each sample's system.
        context: (B, T, C, H, W) frames.
        futures: (n, C, H, W), each distinct target frame of each sample once.
        patches: (B, M) queried patches; (B, 0) where whole frames are asked for.
        offsets: (B, M) queried offsets, in frames after the newest context frame; (B, 0) where none is needed.
        frame_of_query: (B, M) row of `futures` at each of the offsets.
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
        """Copy the batch to a device."""
        moved = {name: value.to(device, non_blocking=True) for name, value in vars(self).items() if name != "systems"}
        return Batch(self.systems, **moved)

    def pinned(self) -> "Batch":
        """Copy the batch to page-locked memory, which a GPU can read while it computes."""
        return Batch(self.systems, **{n: value.pin_memory() for n, value in vars(self).items() if n != "systems"})


@dataclass(frozen=True)
class Plan:
    """A batch before any frame is read: `Batch` with the rows of its frames instead of the frames.

    Attributes:
        systems, patches, offsets, frame_of_query, mask: as in `Batch`.
        context: (B, T) rows of the context frames.
        futures: (n,) rows of the target frames.
    """

    systems: tuple[str, ...]
    context: Tensor
    futures: Tensor
    patches: Tensor
    offsets: Tensor
    frame_of_query: Tensor
    mask: Tensor


class Dataset:
    """Trajectories of several systems, standardized, from which batches are cut.

    Batch number i of a seed is a pure function of (seed, i), so a resumed run continues the same sequence.

    Attributes:
        frames: the standardized frames of all trajectories.
        normalizers: the statistics that they were standardized with, by system, or by key in a family of equations.
        checksums: key -> checksum of every trajectory; the manifest of the run.
    """

    def __init__(
        self, frames: Frames, normalizers: Mapping[str, Normalizer], checksums: Mapping[str, str] | None = None
    ) -> None:
        self.frames, self.normalizers, self.checksums = frames, dict(normalizers), dict(checksums or {})

    @classmethod
    def open(
        cls,
        data: Path | str,
        systems: Sequence[str] | Mapping[str, str],
        split: str = "pool",
        limit: int | Mapping[str, int] | None = None,
        *,
        dtype: torch.dtype = torch.float32,
        mapped: Path | None = None,
        grid: int | None = None,
        known: Mapping[str, Normalizer] = MappingProxyType({}),
    ) -> "Dataset":
        """Read the in-distribution trajectories of `split` ("pool" or "validation") of several systems.

        Args:
            data: dataset directory.
            systems: names of systems, or the name of each and what commands call it, which may be a file.
            split: which split; never the test split.
            limit: at most this many trajectories of each system, the first ones; or how many by system, all of those
                that it does not name.
            dtype: as for `read_frames`.
            mapped: as for `read_frames`.
            grid: as for `read_frames`.
            known: as for `read_frames`.

        Raises:
            ArgumentError: the test split is asked for, or a system has no trajectory there.
            DataError: trajectories that do not fit together or are too short.
            InsufficientMemoryError: more frames than the machine has memory for.
        """
        if split not in ("pool", "validation"):
            raise ArgumentError(f"expected the split pool or validation, got {split!r}; training never reads test data")
        most = dict(limit) if isinstance(limit, Mapping) else dict.fromkeys(systems, limit)
        named = systems if isinstance(systems, Mapping) else dict(zip(systems, systems, strict=True))
        keys = {name: store.keys(data, system=name, split=split, regime="id")[: most.get(name)] for name in systems}
        for name, found in keys.items():
            if not found:
                raise ArgumentError(
                    f"expected trajectories of {name} ({split}) under {data}, got none; "
                    f"make some with: rdjepa simulate {named[name]} --split {split} --count 100 --out {data}"
                )
        return cls(*read_frames(data, keys, dtype, mapped, grid, known))

    def plan(
        self,
        seed: int,
        index: int,
        size: int,
        side: int,
        sampler: Sampler,
        part: slice = ALL,
        weights: Mapping[str, int] = MappingProxyType({}),
        strides: Sequence[int] = (1,),
    ) -> Plan:
        """Draw batch number `index` of the sequence `seed`: a system, a trajectory, a window and queries per sample.

        Args:
            seed: seed of the sequence.
            index: number of the batch.
            size: samples of the whole batch.
            side: tokens per side of the latent grid.
            sampler: draws the queries.
            part: which of the samples are wanted; the draws are those of the whole batch.
            weights: how many times as often as another one a system is drawn; once where it is not named.
            strides: those of windows, drawn equally often.
        """
        rng = np.random.default_rng([seed, index])
        windows = [replace(PRETRAINING, stride=stride) for stride in strides]
        names = [name for name in self.frames.spans for _ in range(weights.get(name, 1))]
        # The whole batch is drawn even for a part of it, so samples do not depend on the number of processes.
        drawn = []
        for _ in range(size):
            name = names[rng.integers(len(names))]
            spans = self.frames.spans[name]
            row, length = spans[int(rng.integers(len(spans)))]
            window = windows[rng.integers(len(windows))] if len(windows) > 1 else windows[0]
            start = row + rng.integers(window.count(length))
            queries = of_class(sampler.sample(rng, side), Queries, f"what {type(sampler).__name__} draws")
            drawn.append((name, window, start, queries))
        contexts, futures, answers, count = [], [], [], 0
        for _, window, start, queries in drawn[part]:
            contexts.append(window.given(np.array([start]))[0])
            distinct, answer = np.unique(queries.offsets, return_inverse=True)
            futures.append(window.at(start, distinct))
            answers.append(answer + count)
            count += len(distinct)
        names_, _, _, wanted = zip(*drawn[part], strict=True)
        return Plan(
            names_,
            torch.from_numpy(np.stack(contexts)),
            torch.from_numpy(np.concatenate(futures)),
            torch.from_numpy(np.stack([queries.patches for queries in wanted])),
            torch.from_numpy(np.stack([queries.offsets for queries in wanted])),
            torch.from_numpy(np.stack(answers)),
            torch.from_numpy(np.stack([queries.mask for queries in wanted])),
        )

    def cut(self, plan: Plan) -> Batch:
        """Read the frames of a plan; the result is on the device of the frames."""
        frames = {"context": self.frames.take(plan.context), "futures": self.frames.take(plan.futures)}
        return Batch(**{**vars(plan), **frames})

    def batch(
        self, seed: int, index: int, size: int, side: int, sampler: Sampler, strides: Sequence[int] = (1,)
    ) -> Batch:
        """Return batch number `index` of the sequence `seed`, with all samples, see `plan`."""
        return self.cut(self.plan(seed, index, size, side, sampler, strides=strides))
