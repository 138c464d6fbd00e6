from __future__ import annotations

import io
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau

import cranfield as cf
from cranfield.cli import main
from cranfield.facts.demo import SignificantPairs
from cranfield.reports.demo_page import demo_page
from cranfield.reports.demonstration import HELD_OUT, METRIC, METRICS, RANDOM_ITEMS, TRUTH, Demo, demo
from cranfield.reports.markup import text


class Command(NamedTuple):
    """What the command left: the demo, the stages it told of (name, steps, steps done), its folder, what it said."""

    demo: Demo
    told: list
    folder: Path
    out: str
    err: str


@pytest.fixture(scope="module")
def command(tmp_path_factory, without_drawing):
    """Run the command once for all tests."""
    folder, made, told, out, err = tmp_path_factory.mktemp("demo") / "made", [], [], io.StringIO(), io.StringIO()

    def kept(size, *, seed, stages):
        @contextmanager
        def counted(what, steps=1):
            told.append([what, steps, 0])
            with stages(what, steps) as advance:

                def count():
                    told[-1][2] += 1
                    advance()

                yield count

        made.append(demo(size, seed=seed, stages=counted))
        return made[0]

    with pytest.MonkeyPatch.context() as patch, without_drawing(), redirect_stdout(out), redirect_stderr(err):
        patch.setattr("cranfield.cli.demo.demo", kept)
        patch.setattr("cranfield._terminal._PATIENCE", float("inf"))
        main(["demo", "small", "--out", str(folder)])
    return Command(made[0], told, folder, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def found(command):
    return command.demo


@pytest.fixture(scope="module")
def page(command):
    return (command.folder / "report.html").read_text(encoding="utf-8")


def test_the_command_tells_what_it_found_and_writes_a_report(command, page):
    assert command.out.startswith("The published table puts ")
    assert f"The report: {command.folder / 'report.html'}" in command.out
    assert [line.rsplit(maxsplit=2)[0].strip() for line in command.err.splitlines()] == [
        "Simulating a world", "Training and ranking", "Measuring", "Comparing", "Assessing", "Trying other decisions",
        "Auditing", "Removing popularity", "Writing the report",
    ]  # fmt: skip
    assert 'id="truth"' in page
    assert len(page) < 10_000_000
    tables = {path.name for path in (command.folder / "tables").iterdir()}
    assert {
        "scores-held-out.csv",
        "scores-truth.csv",
        "scores-random-items.tex",
        "scores-truth.md",
        "comparison-held-out.csv",
    } <= tables
    assert pl.read_csv(command.folder / "tables" / "scores-truth.csv").height == 8 * 5
    assert (command.folder / "figures" / "orders.pdf").read_bytes().startswith(b"%PDF")


def test_a_world_and_the_demo_show_themselves(found, rows_shown):
    assert rows_shown(found.world) == 5
    assert rows_shown(found) == 16


def test_the_truth_is_what_the_world_says_of_the_lists(found):
    for s, run in enumerate(found.runs):
        expected = found.world.true_value(run, METRIC, exclude=found.split.train).mean()
        assert found.averages(TRUTH)[s] == pytest.approx(expected, abs=1e-12)


def test_no_test_set_holds_a_training_pair_and_the_truth_holds_all_others(found):
    train = found.split.train
    lists = {name: scores.judged.sum() for name, scores in found.scores.items()}
    assert lists[TRUTH] == train.n_users * train.n_items - len(train)
    assert lists[HELD_OUT] == len(found.split.test)
    assert lists[RANDOM_ITEMS] == train.n_users * np.ceil(0.05 * train.n_items)


def test_the_published_order_is_further_from_the_truth_than_that_on_random_items(found):
    assert found.tau(HELD_OUT) < 0.5 < found.tau(RANDOM_ITEMS)


def test_a_personal_system_is_truly_best_and_popularity_is_measured_above_its_true_place(found):
    truly, published = found.order(TRUTH), found.order(HELD_OUT)
    assert truly[0] not in ("random", "popularity", "item mean")
    assert truly[-1] == "popularity"
    assert published.index("popularity") < truly.index("popularity")
    measured = published.index("popularity") + 1
    assert f"The table overrates popularity: rank {measured} of 8, but rank 8 in truth" in str(found)


def test_the_average_rating_is_called_item_mean_in_sentences_and_on_the_page(found, page):
    assert "item mean" in found.systems
    assert "average" not in found.systems
    assert "<dt>item mean</dt><dd>" in page
    assert "<dt>average</dt>" not in page


def test_the_advice_on_metrics_is_checked_against_the_truth(found, page):
    taus = found.metric_taus(HELD_OUT)
    true = found.averages(TRUTH)
    means = found.scores[HELD_OUT].average()
    assert list(taus) == list(METRICS)
    expected = [kendalltau(means[:, m], true)[0] for m in range(len(METRICS))]
    assert list(taus.values()) == pytest.approx(expected)
    advised = found.assessment.advice().frame()["metric"][0]
    check = str(found.advice_check())
    assert f"puts {advised} first" in check
    assert found.sentences()[-1] == check
    nearest = max(taus, key=taus.get)
    assert nearest in check or taus[advised] == taus[nearest]
    assert 'id="metrics-and-truth"' in page
    assert text(check) in page


def test_the_check_of_the_advice_says_which_metrics_are_nearer_to_the_truth(found, monkeypatch):
    advised = found.assessment.advice().frame()["metric"][0]
    others = [metric for metric in METRICS if metric != advised]
    taus = {metric: 0.5 if metric in others[:2] else 0.1 for metric in METRICS}
    monkeypatch.setattr(Demo, "metric_taus", lambda *_: taus)
    assert f"{others[0]} and {others[1]} come closest to the true order (tau 0.50)" in str(found.advice_check())
    monkeypatch.setattr(Demo, "metric_taus", lambda *_: dict.fromkeys(METRICS, 0.25))
    assert "all 5 metrics are equally far from the truth (tau 0.25)" in str(found.advice_check())


@pytest.mark.parametrize("test", [HELD_OUT, RANDOM_ITEMS])
def test_wrong_claims_are_significant_pairs_whose_winner_is_truly_worse(found, test):
    true = dict(zip(found.systems, found.averages(TRUTH)))
    measured = dict(zip(found.systems, found.averages(test)))
    counts = [0, 0, 0, 0]
    for row in found.comparisons[test].of_metric(METRIC).rows(named=True):
        winner, loser = sorted((row["system_a"], row["system_b"]), key=measured.get, reverse=True)
        wrong, untold = true[winner] < true[loser], row["better"] is None
        if row["significant"]:
            counts = [n + one for n, one in zip(counts, (True, wrong, untold, wrong and untold))]
    assert found.claims(test) == SignificantPairs(test, 28, *counts)
    assert (counts[1] > 0) == (test == HELD_OUT)
    assert (counts[2] > 0) == (test == HELD_OUT)


def test_the_sentences_name_the_published_and_the_true_winner(found):
    said = str(found)
    assert f"puts {found.order(HELD_OUT)[0]} first" in said
    assert f"of those of {found.order(TRUTH)[0]}." in said
    assert f"The truly best system is {found.order(TRUTH)[0]}" in " ".join(found.sentences())
    assert f"{found.tau(HELD_OUT):.2f} on held-out ratings" in said


def test_the_page_does_not_tell_where_it_was_made(page):
    assert str(Path.cwd()) not in page


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_same_seed_gives_the_same_demo_and_page_and_another_another(found, page):
    again = demo("small", seed=0)
    assert str(again) == str(found)
    assert demo_page(again) == page
    assert not np.array_equal(demo("small", seed=1).averages(HELD_OUT), found.averages(HELD_OUT))


def test_the_first_systems_of_the_published_table_and_the_truly_best_are_audited(found, page):
    published, truly = found.order(HELD_OUT), found.order(TRUTH)
    assert set(found.audit.systems) == {*published[:3], truly[0]}
    assert found.audit.systems_at_start[0] == published[0]
    assert found.audit.grid.n_cells == 72
    pairs = found.audit.truth("pairs")
    true = dict(zip(found.systems, found.averages(TRUTH)))
    assert pairs["true_a"].to_list() == pytest.approx([true[system] for system in pairs["system_a"]])
    assert '<section id="audit"' in page
    assert "can still be the worse system" in page


def test_an_unknown_size_is_refused():
    with pytest.raises(cf.SettingError, match="size"):
        demo("huge")


def test_stages_are_told_in_the_order_of_the_line(command, found):
    assert [what for what, _, _ in command.told] == [
        "Simulating a world", "Training and ranking", "Measuring", "Comparing", "Assessing", "Trying other decisions",
        "Auditing", "Removing popularity",
    ]  # fmt: skip
    assert all(done in (0, steps) for _, steps, done in command.told)
    assert len(found.variants) == 15
