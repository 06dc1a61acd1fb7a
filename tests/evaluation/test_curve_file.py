import pytest

from rdjepa.errors import DataError
from rdjepa.evaluation import curve_file
from rdjepa.evaluation.leaving_out import Measured


def test_rows_come_back_from_their_file_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [Measured("a, b", 1, 0, h, 0.1 / h, "x") for h in range(1, 6)]
    assert curve_file.read(curve_file.write(rows, path)) == rows and curve_file.is_curve(path)
    whole = path.read_text()
    for text in (whole.replace("0.1,", "nan,"), whole + "a,1", whole.replace(",1,", ",one,"), "a,b\n1,2\n", "\x00\xff"):
        path.write_text(text, "latin-1")
        with pytest.raises(DataError, match=r"expected .*; give a file that `rdjepa learning-curve` wrote"):
            curve_file.read(path)
    with pytest.raises(DataError, match="no such file"):
        curve_file.read(tmp_path / "missing.csv")
