"""``cranfield checklist``."""

from __future__ import annotations

import json

import pytest

import cranfield as cf
from cranfield.cli import main


@pytest.fixture
def files(tmp_path):
    cf.Ratings.of(["a", "a", "b"], ["x", "y", "x"]).frame().write_csv(tmp_path / "train.csv")
    cf.Ratings.of(["a", "b"], ["z", "y"]).frame().write_csv(tmp_path / "test.csv")
    (tmp_path / "mine.tsv").write_text("user\titem\tscore\na\tz\t2\na\ty\t1\n")
    return [str(tmp_path / name) for name in ("train.csv", "test.csv", "mine.tsv")]


def test_a_foreign_experiment_is_checked_in_every_format(files, capsys, tmp_path):
    main(["checklist", *files])
    assert capsys.readouterr().out.startswith("# Checklist: train")
    main(["checklist", *files, "--format", "json"])
    assert json.loads(capsys.readouterr().out)["missing"] > 10
    main(["checklist", *files, "--out", str(tmp_path / "list.tex")])
    assert r"\begin{table}" in (tmp_path / "list.tex").read_text()


@pytest.mark.parametrize("sources", [["."], ["missing"], [".", "test.csv"]])
def test_what_is_no_experiment_is_one_line_and_2(sources, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["checklist", *sources])
    assert end.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
