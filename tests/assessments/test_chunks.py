from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from cranfield.assessments import assess
from cranfield.assessments.chunks import Chunks
from cranfield.assessments.robustness import Robustness


def counting(frame):
    calls = []

    def make():
        calls.append(1)
        return frame

    return make, calls


def test_a_chunk_is_made_once_and_anew_when_its_inputs_change(tmp_path):
    make, calls = counting(pl.DataFrame({"a": [1.5, 2.5]}))
    chunks = Chunks(tmp_path)
    first = chunks.get("ratings-0.5", {"seed": 1}, make)
    assert chunks.get("ratings-0.5", {"seed": 1}, make).equals(first)
    assert len(calls) == 1
    chunks.get("ratings-0.5", {"seed": 2}, make)
    assert len(calls) == 2
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"no Parquet at all", None])
def test_a_damaged_chunk_is_noticed_and_made_again(tmp_path, damage):
    make, calls = counting(pl.DataFrame({"a": [1.5, 2.5]}))
    Chunks(tmp_path).get("x", {}, make)
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content) if damage is None else damage)
    assert Chunks(tmp_path).get("x", {}, make)["a"].to_list() == [1.5, 2.5]
    assert len(calls) == 2
    assert len(list(tmp_path.iterdir())) == 1


def test_without_a_folder_nothing_is_kept():
    make, calls = counting(pl.DataFrame({"a": [1]}))
    Chunks(None).get("x", {}, make)
    Chunks(None).get("x", {}, make)
    assert len(calls) == 2


def test_an_assessment_goes_on_where_it_stopped_with_the_same_result(world, tmp_path, monkeypatch):
    runs, test = world
    asking = {"threshold": 4, "scenarios": ["ratings", "popular"], "samples": 3}
    whole = assess(runs, test, ["P@10", "RR"], sizes=[0.5, 0.2], **asking).frame("samples")
    assess(runs, test, ["P@10", "RR"], sizes=[0.5], out=tmp_path, **asking)
    kept = set(tmp_path.iterdir())
    assert len(kept) == 2
    resumed = assess(runs, test, ["P@10", "RR"], sizes=[0.5, 0.2], out=tmp_path, **asking)
    assert resumed.frame("samples").equals(whole)
    assert kept < set(tmp_path.iterdir())

    def never(*_):
        raise AssertionError("a kept part was made again")

    monkeypatch.setattr(Robustness, "_chunk", never)
    again = assess(runs, test, ["P@10", "RR"], sizes=[0.5, 0.2], out=tmp_path, **asking)
    assert again.frame("samples").equals(whole)


def test_other_runs_metrics_thresholds_or_seeds_make_other_chunks(make_world, tmp_path):
    runs, test = make_world(users=20)
    others, _ = make_world(users=20, depth=19)
    asking = {"scenarios": "ratings", "sizes": [0.5], "samples": 2, "out": tmp_path}
    assess(runs, test, ["P@10"], threshold=4, **asking)
    assess(others, test, ["P@10"], threshold=4, **asking)
    assess(runs, test, ["P@9"], threshold=4, **asking)
    assess(runs, test, ["P@10"], threshold=3, **asking)
    assess(runs, test, ["P@10"], threshold=4, seed=1, **asking)
    assert len(list(tmp_path.iterdir())) == 5


def test_another_similarity_makes_other_samples(make_world, tmp_path):
    runs, test = make_world(users=20)
    asked = {"scenarios": "ratings", "sizes": [0.5], "samples": 2, "threshold": 4, "out": tmp_path}
    for share in (0.25, 0.75):
        assess(runs, test, ["ILD@5"], similarity=lambda a, b, share=share: np.full(len(a), share), **asked)
    assert len(list(tmp_path.iterdir())) == 2


def test_other_predictions_make_other_samples(tmp_path):
    test = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "rating": [5, 1, 4, 2]})

    def tau(predictions):
        lists = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "score": [2, 1, 2, 1]})
        runs = {name: lists.with_columns(prediction=pl.lit(value)) for name, value in predictions.items()}
        asked = {"scenarios": "ratings", "sizes": [1.0], "out": tmp_path}
        return assess(runs, test, ["RMSE"], **asked).frame("values")["value"].to_list()

    assert tau({"a": 1.0, "b": 2.0}) != tau({"a": 4.0, "b": 2.0})
