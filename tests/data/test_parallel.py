"""Jobs come back with their positions, and one that fails does not take the others with it."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rdjepa.data import parallel
from rdjepa.data.parallel import completed
from rdjepa.errors import ArgumentError
from rdjepa.memory import SETTINGS


def square(x: float) -> float:
    if x < 0:
        raise ArithmeticError(f"negative {x}")
    return x * x


def die_once(marker: str) -> int:
    """Kill this process, unless that has happened before."""
    if not Path(marker).exists():
        Path(marker).write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def environment(name: str) -> str | None:
    return os.environ.get(name)


def test_workers_keep_freed_memory_unless_the_environment_says_otherwise(monkeypatch):
    first, second = SETTINGS
    monkeypatch.delenv(first, raising=False)
    monkeypatch.setenv(second, "131072")
    with completed(environment, [(first,), (second,)], "ab", workers=2) as results:
        assert dict(results) == {0: str(SETTINGS[first][1]), 1: "131072"}


def test_in_this_process_jobs_run_in_order():
    with completed(square, [(1,), (2,), (3,)], "abc") as results:
        assert list(results) == [(0, 1), (1, 4), (2, 9)]


def test_in_this_process_an_error_is_raised():
    with completed(square, [(-1,)], "a") as results, pytest.raises(ArithmeticError):
        list(results)


def test_on_a_cluster_an_error_stands_in_place_of_its_result():
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        with completed(square, [(2,), (-1,), (3,)], "abc", scheduler=cluster.scheduler_address) as results:
            found = dict(results)
        assert (found[0], found[2]) == (4, 9) and isinstance(found[1], ArithmeticError)
        with completed(square, [], "", scheduler=cluster.scheduler_address) as results:
            assert list(results) == []


def until(mark: str, awaited: str) -> str:
    """Write a file once another one is there."""
    deadline = time.monotonic() + 60
    while not Path(awaited).exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    Path(mark).write_text("")
    return mark


@pytest.mark.parametrize("held", [1, 2])
def test_a_local_worker_has_no_more_jobs_than_it_may_hold(monkeypatch, held):
    """So none waits behind a long one while another worker is idle."""
    from distributed import Client

    given: list = []
    submit = Client.submit

    def noted(client, *arguments, **settings):
        given.append(submit(client, *arguments, **settings))
        most.append(sum(not future.done() for future in given))
        return given[-1]

    most: list[int] = []
    monkeypatch.setattr(Client, "submit", noted)
    with completed(square, [(x,) for x in range(7)], "abcdefg", workers=2, held=held) as results:
        assert dict(results) == {x: x * x for x in range(7)}
    assert len(given) == 7 and max(most) <= 2 * held


def test_a_job_waits_for_an_earlier_one_and_not_for_others(tmp_path):
    """The first job ends only after the fourth, which therefore has to pass by the second and the third."""
    from distributed import LocalCluster

    first, second, third, fourth, there = (str(tmp_path / name) for name in ("a", "b", "c", "d", "there"))
    Path(there).write_text("")
    jobs = [(first, fourth), (second, first), (third, second), (fourth, there)]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        completed(until, jobs, "abcd", after={1: 0, 2: 1}, scheduler=cluster.scheduler_address) as results,
    ):
        assert list(results) == [(3, fourth), (0, first), (1, second), (2, third)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_job_that_is_not_to_begin_takes_with_it_those_that_wait_for_it(workers):
    asked: list[tuple[int, float]] = []
    found: dict[int, float] = {}

    def begins(position):
        asked.append((position, found[position - 1]))
        return position != 1

    with completed(
        square, [(2,), (3,), (4,), (5,)], "abcd", after={1: 0, 2: 1}, begins=begins, workers=workers
    ) as ends:
        for position, result in ends:
            found[position] = result
    assert found == {0: 4, 3: 25} and asked == [(1, 4)]


def test_runs_beside_each_other_on_a_cluster_get_their_own_results():
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        with (
            completed(square, [(2,), (3,)], "ab", scheduler=address) as first,
            completed(square, [(4,), (5,)], "ab", scheduler=address) as second,
            completed(str, [(2,), (3,)], "ab", scheduler=address) as third,
        ):
            assert [dict(each) for each in (first, second, third)] == [{0: 4, 1: 9}, {0: 16, 1: 25}, {0: "2", 1: "3"}]


def test_a_killed_worker_costs_one_try(tmp_path):
    jobs = [(str(tmp_path / "marker"),), (str(tmp_path / "marker"),)]
    with completed(die_once, jobs, "ab", workers=2) as results:
        assert all(isinstance(result, int) and result != os.getpid() for _, result in results)


def test_no_workers_are_refused():
    with pytest.raises(ValueError, match="at least one worker"), completed(square, [(1,)], "a", workers=0):
        pass


def test_without_the_package_of_a_cluster_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ArgumentError, match=r"pip install 'rdjepa\[cluster\]'"),
        completed(square, [(1,), (2,)], "ab", workers=2),
    ):
        pass


def test_an_interrupt_waits_until_workers_have_started():
    started = []
    with pytest.raises(KeyboardInterrupt), parallel._interrupts_later():
        os.kill(os.getpid(), signal.SIGINT)
        started.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))
    assert started == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


MASKED = """
import signal
from rdjepa.data.parallel import completed

def masked(number):
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])

if __name__ == "__main__":
    with completed(masked, [(0,), (1,)], "ab", workers=2) as results:
        print(sorted(results))
"""


def test_workers_leave_an_interrupt_to_the_process_that_started_them(tmp_path):
    (tmp_path / "script.py").write_text(MASKED)  # a fresh process: the first worker is what used to differ
    ran = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=300)
    assert ran.stdout.strip() == "[(0, True), (1, True)]", ran.stderr


def test_workers_that_a_script_starts_as_it_is_imported_by_one_are_refused(monkeypatch):
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with (
        pytest.raises(ArgumentError, match="starts its workers under if __name__ == '__main__':"),
        completed(square, [(1,), (2,)], "ab", workers=2),
    ):
        pass
    with completed(square, [(1,), (2,)], "ab") as results:
        assert list(results) == [(0, 1), (1, 4)]


@pytest.mark.parametrize("address", ["nowhere://x", "nobody.invalid:8786"])
def test_an_address_that_is_none_is_refused_without_waiting(address, monkeypatch):
    monkeypatch.setattr(parallel, "PATIENCE", "1 h")
    with (
        pytest.raises(ArgumentError, match=f"expected a Dask scheduler at {address}"),
        completed(square, [(1,), (2,)], "ab", scheduler=address),
    ):
        pass
