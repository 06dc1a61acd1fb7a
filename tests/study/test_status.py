from rdjepa.study.status import _left


def test_the_time_left_goes_by_finished_ones_of_a_kind_or_else_by_all():
    taken = [("fno", 8.0), ("fno", 12.0)]
    assert _left([], []) == 0 and _left(["fno"], []) is None
    assert _left(["fno"], taken) == 10 and _left(["fno", "lno"], taken) == 20
    assert _left(["fno", "lno"], [*taken, ("lno", 1.0)]) == 11
