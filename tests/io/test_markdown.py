from rdjepa.io.markdown import pipe_table


def test_a_table_has_a_line_per_row_below_its_heading() -> None:
    assert pipe_table(("a", "b"), [("1", "2"), ["", "x"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n|  | x |"
    assert pipe_table(["a"], []) == "| a |\n| --- |"
