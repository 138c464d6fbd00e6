"""The popularity groups of items come back from the file that a split writes."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import InputError, simulate, splits
from cranfield.splits.item_groups import read_item_groups


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
def test_groups_come_back_as_they_were_written(tmp_path, ending):
    split = splits.percentiles(simulate.world(40, 30, 500).ratings, groups=3)
    splits.write(split, tmp_path, format=ending)
    again = read_item_groups(tmp_path / f"groups.{ending}", split.train.item_ids)
    np.testing.assert_array_equal(again, split.item_groups)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("item\na\nb\n", "there is no column 'group'"),
        ("item,group\na,0\n", "item b has no group"),
        ("item,group\na,0\nb,many\n", "item b has no group"),
        ("item,group\na,0\nb,-2\n", "item b has no group"),
        ("item,group\na,0\na,1\nb,1\n", "item a has more than one row"),
        (None, "it is not a file"),
    ],
)
def test_a_file_that_does_not_say_every_group_is_refused(tmp_path, content, message):
    path = tmp_path / "groups.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_item_groups(path, splits.random(simulate.popularity(9, 2, 10)).train.item_ids.of(["a", "b"]))
