"""Seconds per random window of stored trajectories: HDF5 files, opened for every window, and a memory-mapped array.

    python benchmarks/read.py [--trajectories 64] [--windows 2000]

Both readers read the same windows of 9 frames of the same trajectories in the same random order, from files that the
operating system may have in memory (a tenth of the windows is read before the timing). The lower bound is a copy from
one memory-mapped array of all trajectories.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import rdjepa
from rdjepa.data import store
from rdjepa.data.windows import FORECASTING

SYSTEM, LENGTH = "schnakenberg", FORECASTING.length


def seconds(read: Callable[[int, int], np.ndarray], places: np.ndarray) -> float:
    """Return the seconds per window, after a warm-up over the first tenth."""
    for number, start in places[: len(places) // 10]:
        read(number, start)
    began = time.perf_counter()
    for number, start in places:
        read(number, start)
    return (time.perf_counter() - began) / len(places)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trajectories", type=int, default=64)
    parser.add_argument("--windows", type=int, default=2000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = [store.write(folder, rdjepa.simulate(SYSTEM, seed=i)) for i in range(arguments.trajectories)]
        flat = np.lib.format.open_memmap(
            Path(folder) / "all.npy", "w+", np.float32, (len(paths), *store.read(paths[0]).fields.shape)
        )
        for number, path in enumerate(paths):
            flat[number] = store.read(path).fields
        rng = np.random.default_rng(0)
        places = rng.integers([len(paths), FORECASTING.count(flat.shape[1])], size=(arguments.windows, 2))

        def hdf5(number: int, start: int) -> np.ndarray:
            return store.read_window(paths[number], start, start + LENGTH)

        def memory_mapped(number: int, start: int) -> np.ndarray:
            return np.array(flat[number, start : start + LENGTH])

        for number, start in places[:20]:
            np.testing.assert_array_equal(hdf5(number, start), memory_mapped(number, start))
        ours, floor = seconds(hdf5, places), seconds(memory_mapped, places)
        size = flat[0, :LENGTH].nbytes / 2**20
        print("| reader | ms a window | MiB/s | ratio |")
        print("|---|---|---|---|")
        print(f"| memory-mapped array | {1e3 * floor:.3f} | {size / floor:.0f} | 1.00 |")
        print(f"| HDF5, opened for every window | {1e3 * ours:.3f} | {size / ours:.0f} | {ours / floor:.2f} |")


if __name__ == "__main__":
    main()
