"""Parts side by side on several threads: what is made of each, in their order, and nothing left behind."""

import threading

import pytest
import torch

from rdjepa.forecasters.apart import apart


@pytest.fixture(params=[1, 3], ids=["one thread", "three threads"])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_what_is_made_of_each_part_comes_in_their_order(threads):
    matrices = torch.rand(7, 5, 5, generator=torch.Generator().manual_seed(0)).unbind()
    assert torch.equal(torch.stack(apart(torch.linalg.inv, matrices)), torch.stack([*map(torch.linalg.inv, matrices)]))
    assert apart(len, []) == []


def test_parts_are_made_at_the_same_time_by_a_thread_each(threads):
    together = threading.Barrier(threads, timeout=30)

    def waits(part):
        together.wait()
        return torch.get_num_threads()

    assert apart(waits, range(threads)) == [1] * threads
    assert torch.get_num_threads() == threads


def test_a_part_that_fails_is_the_error_of_all(threads):
    begun = []

    def fails(part):
        begun.append(part)
        raise ValueError(f"part {part}")

    with pytest.raises(ValueError, match="part 0"):
        apart(fails, range(1_000))
    assert len(begun) < 1_000 and torch.get_num_threads() == threads


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_every_part_is_in_the_mode_of_the_whole(threads, mode):
    one = torch.ones(1, requires_grad=True)
    with mode():
        found = apart(lambda part: part * one, [torch.ones(1)] * 3)
    assert [x.is_inference() for x in found] == [mode is torch.inference_mode] * 3
    assert [x.requires_grad for x in found] == [mode is torch.enable_grad] * 3
