"""Tables from papers: both layouts, missing cells, errors, and what is refused in one line."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import cranfield as cf
from cranfield._errors import CranfieldError
from cranfield.across import read_table

WIDE = "dataset,ease,knn\nml-1m,0.31,0.28\nlastfm,0.12,OOM\nyelp,0.05,0.04\n"


def table_of(text, folder):
    file = folder / "results.csv"
    file.write_text(text, encoding="utf-8")
    return read_table(file)


def test_datasets_may_be_rows_or_columns_or_both_be_columns(tmp_path):
    tables = [
        table_of(text, tmp_path)
        for text in (
            WIDE,
            "system;ml-1m;lastfm;yelp\nease;0.31;0.12;0.05\nknn;0.28;-;0.04\n",
            "System,Dataset,Value\nease,ml-1m,0.31\nease,lastfm,0.12\nease,yelp,0.05\nknn,ml-1m,0.28\nknn,yelp,0.04\n",
        )
    ]
    for table in tables:
        assert (table.systems, table.datasets) == (("ease", "knn"), ("ml-1m", "lastfm", "yelp"))
        assert np.array_equal(table.means, [[0.31, 0.12, 0.05], [0.28, np.nan, 0.04]], equal_nan=True)
        assert table.errors is None


def test_frames_of_polars_and_pandas_are_tables():
    columns = {"dataset": ["x", "y"], "a": [0.3, 0.2], "b": [0.2, None]}
    for frame in (pl.DataFrame(columns), pd.DataFrame(columns)):
        assert np.array_equal(read_table(frame).means, [[0.3, 0.2], [0.2, np.nan]], equal_nan=True)


def test_standard_errors_follow_a_sign_or_stand_in_their_own_column(tmp_path):
    wide = table_of("dataset,a,b\nx,0.310 ± 0.004,0.3+/-0.01\n", tmp_path)
    assert wide.errors.tolist() == [[0.004], [0.01]]
    long = table_of("system,dataset,value,error\na,x,0.310,0.004\nb,x,0.3,0.01\n", tmp_path)
    assert long.errors.tolist() == [[0.004], [0.01]]


def test_half_a_printed_digit_is_measured_against_the_smallest_value(tmp_path):
    assert table_of("dataset,a,b\nx,0.310,0.010\n", tmp_path).rounding == pytest.approx(0.05)
    verdict = cf.compare_datasets(pl.DataFrame({"dataset": ["x", "y"], "a": [0.31, 0.2], "b": [0.3, 0.01]})).verdict
    assert "Warning: half a printed digit is 50 % of a value; use more digits." in verdict


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dataset,a,b\nx,0.3,much\n", "row 2, column 'b': 'much' is not a number"),
        ("name,a,b\nx,0.3,0.2\n", "not clear which side of the table holds the systems"),
        ("dataset,a,a\nx,0.3,0.2\n", "the column 'a' is there twice"),
        ("dataset,a,b\nx,0.3\n", "row 2: there are 2 cells, and the header has 3"),
        ("dataset,a,b\nx,0.3,0.2\nx,0.1,0.2\n", "row 3: 'a' has two values on 'x'"),
        ("dataset,a,b\nx,-,OOM\n", "the table holds no numbers"),
        ("dataset,a,b\nx,0.3,inf\n", "'inf' is not a number"),
        ("dataset,a,b\nx,0.3 ± -0.1,0.2\n", "is not a number"),
        ("dataset,a,b\n", "the table has no rows"),
        ("", "the table has no rows"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_in_one_line(text, said, tmp_path):
    with pytest.raises(CranfieldError) as error:
        table_of(text, tmp_path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_text_or_not_there_is_refused(tmp_path):
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    for file in ("a.csv", "b.csv"):
        with pytest.raises(CranfieldError, match="cannot be read"):
            read_table(tmp_path / file)


def test_means_alone_have_the_reference_values():
    means = {"A": [0.137, 0.307, 0.135, 0.094, 0.033], "B": [0.111, 0.279, 0.121, 0.106, 0.073]}
    result = cf.compare_datasets(pl.DataFrame({"dataset": list("vwxyz"), **means}))
    row = result.frame().row(0, named=True)
    assert (row["effect"], row["lower"], row["upper"], row["p"]) == pytest.approx(
        (-0.099705, -0.604267, 0.404857, 0.612433), abs=1e-6
    )
    assert np.isnan([row["tau"], row["i2"], row["these_lower"], row["chance"]]).all()
    assert any("no standard errors" in said for said in result.verdict)


def test_values_of_which_lower_is_better_are_named_by_their_metric():
    frame = pl.DataFrame({"dataset": ["x", "y", "z"], "a": [0.8, 0.9, 0.7], "b": [0.9, 1.0, 0.8]})
    assert cf.compare_datasets(frame, metrics="RMSE").standings[0].main == ("a", "b")
    assert cf.compare_datasets(frame).standings[0].main == ("b", "a")
