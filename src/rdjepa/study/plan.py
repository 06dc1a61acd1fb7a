"""The cells of a study, in the order in which they are computed, and the pretrainings that they start from (S3.1)."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from rdjepa import systems
from rdjepa.data.splits import coinciding_seeds
from rdjepa.errors import StudyError
from rdjepa.forecasters import registry as forecasters
from rdjepa.study import changes, pretrainings, protocol, registry
from rdjepa.study.cell import Cell
from rdjepa.study.directory import Directory
from rdjepa.study.fingerprints import checkpoint_fingerprint
from rdjepa.study.pretrainings import Pretraining
from rdjepa.study.profiles import Profile

KEYS = ("system", "k", "support_seed", "forecaster", "change", "group")  # of conditions on cells
GROUPS = list(changes.GROUPS)


def cells(study: str, only: Sequence[str] = (), phase: str | None = None) -> list[Cell]:
    """Return the cells of a study: the smallest K under the first seed, then its other seeds, then the larger K.

    Within one K and seed all systems and forecasters come first, so a study that is stopped early compares all of them.
    Changes come group after group, so that it leaves whole tables.

    Args:
        study: name of a registered study.
        only: conditions "key=value" on system, k, support_seed and forecaster, or on change (the same as forecaster)
            and group (of a change); values of one key are alternatives.
        phase: one of the study's phases; the first by default, all systems in a study without phases.

    Raises:
        StudyError: an unknown study, phase, key or value, conditions that no cell meets together, a study of an unknown
            system or forecaster or about one that it does not compare, or seeds that select the same trajectory at
            K = 1.
    """
    plan = registry.get(study)
    _check(plan)
    found = []
    for system in plan.systems_in(phase):
        chosen = plan.seeds_of(system)
        pool = protocol.counts(system)["pool", "id"]
        same = coinciding_seeds(pool, 1, chosen)
        if same:
            pairs = ", ".join(f"{a} and {b}" for a, b in same)
            raise StudyError(f"expected seeds that select different trajectories of {system} at K = 1, got {pairs}")
        for number, k in enumerate(plan.budgets_of(system)):
            if k > pool:
                raise StudyError(f"expected at most the {pool} pool trajectories of {system}, got K = {k}; lower it")
            for place, seed in enumerate(chosen):
                for name in plan.compared():
                    change = changes.find(name)
                    if change is None or change.applies(system):
                        cell = Cell(plan.cells, system, k, seed, name)
                        found.append(((GROUPS.index(cell.group), number, place), cell))
    here, wanted = plan.systems_in(phase), {condition.replace(" ", "") for condition in only}
    for other, own in plan.phases.items():
        for name in own:
            if f"system={name}" in wanted and name not in here:
                raise StudyError(
                    f"expected system among {', '.join(here)}, got {name}, which is of the phase {other}; give "
                    f"--phase {other}"
                )
    found.sort(key=lambda item: item[0])
    return select([cell for _, cell in found], only)


def _check(plan: registry.Study) -> None:
    """Refuse a study that names what is unknown, or a subject, a control or systems of a phase that are not its own."""
    every = (*systems.names(), *systems.wall_names())
    for kind, chosen, known in (
        ("system", plan.systems, every),
        ("forecaster", plan.compared(), [*forecasters.names(), *changes.names()]),
        ("subject", (plan.subject,) if plan.subject else (), plan.compared()),
        ("control", (plan.control,) if plan.control else (), plan.compared()),
        ("system of a phase", tuple(chain.from_iterable(plan.phases.values())), plan.systems),
    ):
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise StudyError(
                f"expected every {kind} of the study {plan.name} among {', '.join(known)}, got {unknown[0]!r}; "
                "correct the name, or register it first"
                + "; recordings have no equation that a study could draw trajectories of"
                * kind.startswith("system")
            )


def select(every: Sequence[Cell], only: Sequence[str]) -> list[Cell]:
    """Return the cells that meet all conditions; see `cells`."""
    wanted: dict[str, set[str]] = {}
    for condition in only:
        key, equals, value = (each.strip() for each in condition.partition("="))
        if not equals or key not in KEYS:
            raise StudyError(f"expected {'=..., '.join(KEYS)}=..., got {condition!r}; name one of them")
        known = dict.fromkeys(str(getattr(cell, key)) for cell in every)
        if value not in known:
            raise StudyError(f"expected {key} among {', '.join(known)}, got {value!r}; name one of them")
        wanted.setdefault(key, set()).add(value)
    chosen = [cell for cell in every if all(str(getattr(cell, key)) in values for key, values in wanted.items())]
    if wanted and not chosen:
        raise StudyError(f"expected cells that meet {', '.join(only)} together, got none; leave one of these out")
    return chosen


def pretrained(cells: Iterable[Cell]) -> list[str]:
    """Return the forecasters that start from the checkpoint of the profile."""
    names = dict.fromkeys(cell.forecaster for cell in cells)
    return [name for name in names if changes.find(name) is None and forecasters.get(name).pretrained]


def settings(cells: Iterable[Cell], profile: Profile) -> dict[str, dict[str, Any]]:
    """Return what study.json holds of a run, by the name of its entry, all of it taken before any is written.

    The checkpoint is recorded by forecaster, not by profile: forecasters without pretraining run with any or none.

    Raises:
        CheckpointError: the checkpoint is missing or of another size.
    """
    weights = {name: checkpoint_fingerprint(profile, forecasters.get(name).keeps_decoder) for name in pretrained(cells)}
    found = {profile.name: profile.settings()}
    return found | {f"{profile.name}/{name}": {"checkpoint": each} for name, each in weights.items()}


def needed(directory: Directory, cells: Sequence[Cell], profile: Profile) -> list[Pretraining]:
    """Return the pretrainings that some cells start from, and before each that is not finished what it goes on from."""
    starts = dict.fromkeys(each for cell in cells if (each := cell.pretraining(profile)))
    unfinished = pretrainings.distinct(each for each in starts if not directory.is_done(each.name))
    return list(dict.fromkeys([*unfinished, *starts]))


def starts_of(cells: Sequence[Cell], profile: Profile) -> list[Pretraining]:
    """Return the pretrainings that some cells start from and what these go on from, each once."""
    return pretrainings.distinct(cell.pretraining(profile) for cell in cells)
