"""Files of lists: which are made, which are kept on resuming, and what is said of the others."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import polars as pl
import pytest

from cranfield import Ratings, splits
from cranfield.rankings import Ranking, Serving, recommend, recommend_to_files

DECISIONS = {field.name: field.default for group in (Serving, Ranking) for field in fields(group)} | {"seed": 0}


def ratings(first: int = 0) -> Ratings:
    draw = np.random.default_rng(0)
    user, item = np.nonzero(draw.random((20, 15)) < 0.6)
    return Ratings.of(user, np.where(np.arange(len(item)) == 0, first, item), draw.integers(1, 6, len(user)))


def divided(**options) -> splits.Split:
    whole, held_out = ratings(), np.arange(len(ratings())) % 3 == 0
    return splits.predefined(whole.keep(~held_out), whole.keep(held_out), **options)


def make(folder, data=None, *, resume=True, systems=("random",), **decisions):
    files = {system: folder / f"{system}.tsv" for system in systems}
    lists = recommend_to_files(data or ratings(), files, resume=resume, **{**DECISIONS, **decisions})
    return {path.name: remark for path, _, remark in lists}


def test_a_file_holds_the_run_of_its_system_and_a_record_of_everything_that_it_depends_on(tmp_path):
    files = {"popularity": tmp_path / "a.parquet"}
    ((path, run, remark),) = recommend_to_files(ratings(), files, **{**DECISIONS, "length": 3})
    assert (path, remark) == (files["popularity"], "")
    assert pl.read_parquet(path).rows() == run.frame().rows() == recommend(ratings(), "popularity", 3)[0].frame().rows()
    recorded = json.loads((tmp_path / ".cranfield-records" / "a.parquet.json").read_text())["made_of"]
    assert DECISIONS.keys() <= recorded.keys()
    assert (recorded["system"], recorded["length"], recorded["test ratings"]) == ("popularity", 3, None)
    assert not (tmp_path / ".cranfield-checkpoints").exists()


def test_without_resuming_every_file_is_replaced(tmp_path):
    assert make(tmp_path, resume=False) == {"random.tsv": ""}
    assert make(tmp_path, resume=False) == {"random.tsv": " (replaced)"}


def test_resuming_makes_only_what_is_missing(tmp_path):
    assert make(tmp_path) == {"random.tsv": ""}
    before = (tmp_path / "random.tsv").stat()
    assert make(tmp_path, systems=("random", "popularity"), jobs=2) == {"popularity.tsv": ""}
    assert (tmp_path / "random.tsv").stat() == before


def _changed_list(folder):
    path = folder / "random.tsv"
    path.write_text(path.read_text().replace("0", "1", 1))


def _no_record(folder):
    (folder / ".cranfield-records" / "random.tsv.json").unlink()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 8}, "the existing file differs in parameters, seed"),
        ({"length": 3}, "the existing file differs in length"),
        ({"min_ratings": 2}, "the existing file differs in min ratings"),
        ({"sample": 0.5}, "the existing file differs in sample"),
        ({"fill": "popularity"}, "the existing file differs in fill"),
        ({"keep_seen": True}, "the existing file differs in keep seen"),
        ({"data": divided(overlap="test")}, "the existing file differs in training ratings, test ratings"),
        ({"data": ratings(first=14)}, "the existing file differs in training ratings"),
        (_changed_list, "the existing file has changed since it was written"),
        (_no_record, "no record says how the existing file was made"),
    ],
)
def test_resuming_makes_anew_what_does_not_agree_and_says_so(tmp_path, change, said):
    assert make(tmp_path / "r") == {"random.tsv": ""}
    other = change if isinstance(change, dict) else {}
    if not other:
        change(tmp_path / "r")
    assert make(tmp_path / "r", **other) == {"random.tsv": f" (made again: {said})"}
    make(tmp_path / "whole", **other)
    assert (tmp_path / "r" / "random.tsv").read_bytes() == (tmp_path / "whole" / "random.tsv").read_bytes()
    assert make(tmp_path / "r", **other) == {}


def test_what_another_version_made_is_not_kept(tmp_path, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr("cranfield.rankings.recommending.__version__", "0.0.1")
        make(tmp_path)
    assert make(tmp_path) == {"random.tsv": " (made again: the existing file differs in version)"}


def test_profiles_and_groups_of_items_are_inputs_too(tmp_path):
    split = splits.strong_generalisation(ratings(), given=0.5)
    make(tmp_path, split, systems=("ease",))
    recorded = json.loads((tmp_path / ".cranfield-records" / "ease.tsv.json").read_text())["made_of"]
    assert recorded["profiles"][0] == split.profiles.fingerprint
