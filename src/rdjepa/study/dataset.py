"""The benchmark's dataset on disk: build it, and copy a small sample of it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rdjepa import systems
from rdjepa.data import manifest, store
from rdjepa.data.build import BuildReport, build
from rdjepa.data.parallel import check_workers
from rdjepa.data.recorded import recorded
from rdjepa.data.splits import coinciding_seeds, support_order
from rdjepa.data.trajectory import SPLITS, Key
from rdjepa.errors import ArgumentError
from rdjepa.io import sealed
from rdjepa.io.atomic import write_bytes
from rdjepa.pde.system import System
from rdjepa.progress import Progress
from rdjepa.study import protocol

SUPPORT = "support.json"


@dataclass(frozen=True)
class Support:
    """Content of support.json.

    Attributes:
        pool: number of trajectories of the full benchmark, which are chosen from.
        order: seed -> indices, of which the first K are the support set.
        coinciding_at_1: pairs of seeds that select the same trajectory at K = 1.
    """

    pool: int
    order: dict[str, tuple[int, ...]]
    coinciding_at_1: tuple[tuple[int, int], ...]


def build_dataset(
    out: Path | str,
    *,
    systems_: Sequence[str] = protocol.SYSTEMS,
    splits: Sequence[str] = SPLITS,
    scale: float = 1.0,
    count: int | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> BuildReport:
    """Simulate the benchmark's trajectories, or a part, with recipe, manifest, statistics and support sets.

    Args:
        out: dataset directory.
        systems_: names of systems, or .py files that define one.
        splits: among pool, validation and test.
        scale: share of every count of the paper, rounded up.
        count: at most this many trajectories of every split and regime.
        workers: local processes.
        scheduler: address of a running Dask scheduler, instead of local processes.
        progress: called with the number of trajectories done, their total and the key of the latest.

    Raises:
        ArgumentError: unknown names, two systems of one name, a count of zero, or a directory of another configuration.
    """
    check_workers(workers, scheduler)
    found: dict[str, System] = {}
    sources: dict[str, str] = {}
    for name in systems_:
        system = systems.get(name)
        if found.setdefault(system.name, system) is not system:
            raise ArgumentError(
                f"expected systems of different names, got two named {system.name!r}, whose trajectories would be "
                f"mixed; rename the one in {name}"
            )
        if name.endswith(".py"):
            sources[system.name] = str(Path(name).resolve())
    keys = [key for system in found.values() for key in _keys(system, splits, scale, count)]
    if not keys:
        raise ArgumentError(
            f"expected trajectories to make, got none: {', '.join(found)} has no split {' or '.join(splits)}; name "
            "another split or system"
        )
    manifest.claim(out, found.values())
    built = build(out, keys, sources=sources, workers=workers, scheduler=scheduler, progress=progress)
    _describe(out, found)
    return built


def _describe(data: Path | str, names: Iterable[str]) -> None:
    """Write field statistics and support sets of the systems with a pool, and the manifest."""
    for name in names:
        if store.keys(data, name, "pool"):
            store.write_stats(Path(data) / name)
            if protocol.role(name) != "family" and name not in recorded(data):  # no study adapts to either
                write_support(data, name)
    manifest.write(data)


def _keys(system: System, splits: Sequence[str], scale: float, count: int | None) -> list[Key]:
    """Return the keys of a system's trajectories; a user's has test trajectories of every regime that it defines."""
    keys = [key for key in protocol.keys([system.name], splits, scale, count) if key.regime in system.regimes]
    others = () if system.name in protocol.SYSTEMS or protocol.role(system.name) == "family" else system.regimes
    tests = [key for key in keys if (key.split, key.regime) == ("test", "id")]
    more = [replace(key, regime=regime) for regime in others if regime != "id" for key in tests]
    return list(dict.fromkeys([*keys, *more]))  # a source has tests of all regimes already


def write_support(data: Path | str, system: str) -> Path:
    """Write the support sets of a system: the pool's order under each of its three seeds, as every study takes it.

    The pool is that of the full benchmark, however much of it is in the data: a study simulates what they lack. A
    smaller support set is the beginning of a larger one. Pairs of seeds that select the same trajectory at K = 1 are
    listed; a study refuses them.
    """
    pool = protocol.counts(system)["pool", "id"]
    seeds, largest = protocol.support_seeds(system), max(protocol.budgets(system))
    order = {str(seed): tuple(support_order(pool, seed)[:largest]) for seed in seeds}
    content = Support(pool, order, tuple(coinciding_seeds(pool, 1, seeds)))
    return sealed.write(Path(data) / system / SUPPORT, asdict(content))


def sample(data: Path | str, out: Path | str, share: float = 0.01) -> list[Key]:
    """Copy the first trajectories of every part of a dataset, a share of each and at least one.

    Raises:
        ArgumentError: a share outside (0, 1], no data, or some at `out` already.
    """
    if not 0 < share <= 1:
        raise ArgumentError(f"expected a share above 0 and up to 1, got {share:g}; give 0.01 for one in a hundred")
    if any((Path(out) / name).exists() for name in (manifest.RECIPE, manifest.MANIFEST)) or store.keys(out):
        raise ArgumentError(f"expected a directory without data for the sample, got some in {out}; choose another")
    groups: dict[tuple[str, str, str], list[Key]] = {}
    for key in manifest.read(data):
        groups.setdefault((key.system, key.split, key.regime), []).append(key)
    chosen = [key for keys in groups.values() for key in keys[: max(1, round(share * len(keys)))]]
    names = dict.fromkeys(key.system for key in chosen)
    told = (manifest.RECIPE, *(f"{name}/{manifest.RECORDINGS}" for name in names))
    for name in told:
        if (Path(data) / name).is_file():
            write_bytes(Path(out) / name, (Path(data) / name).read_bytes())
    for key in chosen:
        store.write(out, store.get(data, key))
    _describe(out, names)
    return chosen
