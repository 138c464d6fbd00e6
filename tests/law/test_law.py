"""The law: one question has one answer, whatever holds the lists, whichever engine measures them, whoever is asked.

Each question draws a small world and a setting. The reference is `brute`, which imports nothing of cranfield. Three
routes are asked; their values, averages, p-values and sentences are compared with the reference and with each other.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
try:
    from brute import NAN, Answer, Reference, permutation_p
    from design import Question, design, pairs_of, possible_pairs
    from routes import ROUTES, SPARK, Asker, Compared, Refused, Route
    from world import draw_world
finally:
    sys.path.pop(0)

from cranfield import CranfieldError, Scores
from cranfield.data import Relevance
from cranfield.judgments import judging
from cranfield.measures import blocks, engines, ranged
from cranfield.measures.blocks import ValueTable
from cranfield.metrics import beyond
from cranfield.rankings import lists

AS_RUNS, ORDERED = judging.as_runs, ValueTable._ordered


@cache
def questions() -> list[Question]:
    """Return the questions of the quick tests; they take seconds to design, so only the worker that asks them does."""
    return design(0)


REFUSALS = (
    ("command", "ranges", "segment", "--segment needs all lists at once"),
    ("command", "spilled", "segment", "--segment needs all lists at once"),
    ("command", "spark", "segment", "--segment needs all lists at once"),
    ("python", "spark", "ties=input", "ties='input' needs the order of the rows, and Spark rows have none"),
    ("command", "spark", "ties=input", "--ties input needs the order of the rows, and Spark rows have none"),
    ("python", "spark", "form=order", "the lists have neither scores nor ranks, and Spark rows have no order"),
    ("command", "spark", "form=order", "the lists have neither scores nor ranks, and Spark rows have no order"),
)
"""Which route refuses which option, and why; any other refusal is a failure, and so is a row that does not hold."""


def refusals(route: Route, question: Question, reference: Reference) -> list[str]:
    """Return the reasons for which a route refuses a question; none if it must answer."""
    reasons = ["everything is in one group"] if len(reference.groups()) == 1 else []
    if not any(r >= reference.threshold for own in reference.test.values() for r in own.values()):
        reasons.append("nothing can be measured")
    for entry, engine, option, why in REFUSALS:
        name, _, value = option.partition("=")
        given = question[name]
        if (route.entry, route.engine) == (entry, engine) and ((given == value) if value else given != "none"):
            reasons.append(why)
    return reasons


def close(found: float | None, expected: float, *, relative: float = 1e-10, absolute: float = 1e-12) -> bool:
    found = NAN if found is None else found
    if math.isnan(expected) or math.isnan(found):
        return math.isnan(expected) and math.isnan(found)
    return abs(found - expected) <= absolute + relative * abs(expected)


def differences(found: Answer, expected: Answer) -> list[str]:
    """Return what a route says differently from the reference."""
    wrong = []
    if found.threshold is not None and found.threshold != expected.threshold:
        wrong.append(f"threshold {found.threshold}, not {expected.threshold}")
    tables = ("values", "averages", "filled", "unjudged", *(["groups"] if found.groups else []))
    for name in tables:
        told, known = getattr(found, name), getattr(expected, name)
        if name == "groups":
            told = {key: value for key, value in told.items() if key in known}
        if set(told) - set(known) and name == "values":
            told = {key: value for key, value in told.items() if key in known}
        if set(told) != set(known):
            wrong.append(f"{name}: other keys, such as {next(iter(set(told) ^ set(known)))}")
            continue
        off = [key for key in known if not close(told[key], known[key])]
        wrong += [f"{name} {key}: {told[key]}, not {known[key]}" for key in off[:2]]
    return wrong


def wrong_tests(compared: Compared, reference: Reference, answer: Answer, question: Question) -> list[str]:
    """Return p-values that differ from those of the definition, where it is quick to follow."""
    if question["average"] != "mean" or question["significance"] not in ("permutation", "student", "sign"):
        return []
    from scipy import stats

    wrong = []
    for (metric, first, second), (difference, p, _) in compared.pairs.items():
        d = reference.differences(answer, first, second, metric)
        different = [x for x in d if abs(x) > 1e-12]
        if question["significance"] == "permutation":
            expected = permutation_p(d) if 0 < len(different) <= 24 else None
        elif question["significance"] == "student":
            expected = stats.ttest_1samp(d, 0).pvalue if len(d) > 1 and np.ptp(d) > 1e-12 else None
        else:
            wins = sum(x > 0 for x in different)
            expected = stats.binomtest(wins, len(different)).pvalue if different else None
        if d and not close(difference, sum(d) / len(d), absolute=1e-12):
            wrong.append(f"difference {metric}, {first}, {second}: {difference}, not {sum(d) / len(d)}")
        if expected is not None and not close(p, expected, relative=1e-9, absolute=1e-15):
            wrong.append(f"p {metric}, {first}, {second}: {p}, not {expected}")
    return wrong


def unlike(compared: Compared, other: Compared) -> list[str]:
    """Return what two comparisons say differently."""
    if set(compared.pairs) != set(other.pairs):
        return ["other pairs"]
    wrong = []
    for key, numbers in compared.pairs.items():
        if not all(
            close(mine, NAN if its is None else its, relative=1e-9) for mine, its in zip(numbers, other.pairs[key])
        ):
            wrong.append(f"{key}: {numbers}, not {other.pairs[key]}")
    return wrong + [f"{mine!r}, not {its!r}" for mine, its in zip(compared.verdict, other.verdict) if mine != its][:1]


@contextmanager
def made_small(route: Route) -> Iterator[None]:
    """Make ranges so small that a world has several, and let values spill to files from the first byte."""
    with pytest.MonkeyPatch.context() as patch:
        if route.engine in ("ranges", "spilled"):
            patch.setattr(ranged, "_LARGEST_RANGE", 6000)
            patch.setattr(ranged, "_SMALLEST_RANGE", 1)
        if route.engine == "spilled":
            patch.setattr(blocks, "ValueTable", lambda most: ValueTable(-1.0))
        yield


def broken(question: Question, folder: Path, spark=None) -> list[str]:
    """Ask a question by its routes; return where the law does not hold."""
    setting = question.setting
    # SciPy goes through all sign patterns of a Wilcoxon test with ties, one by one.
    most_users = 7 if question["significance"] == "wilcoxon" else 40
    world = draw_world(question.seed, question["form"], question["scale"], setting.repeated != "error", most_users)
    reference = Reference(world, setting)
    expected = reference.answer()
    asker = Asker(world, setting, folder, question.predictions, spark)
    options = None if question["significance"] == "none" else {"significance": question["significance"]}
    wrong: list[str] = []
    first: Compared | None = None
    notes: set[str] | None = None
    for route in question.routes:
        reasons = refusals(route, question, reference)
        try:
            with made_small(route):
                answer, compared = asker.ask(route, options)
        except (CranfieldError, Refused) as error:
            if not any(why in str(error) for why in reasons):
                wrong.append(f"{route}: refused with {str(error)[:300]}")
            continue
        if reasons and reasons != ["nothing can be measured"]:  # unless some metric needs nothing relevant
            wrong.append(f"{route}: answered, and the table of refusals says {reasons}")
        wrong += [f"{route}: {what}" for what in differences(answer, expected)]
        if answer.notes is not None:
            # Lists in a dictionary have an order of their own; rows of a table have one only by accident.
            told = {note for note in answer.notes if not note.endswith("taken in the order of the rows")}
            notes = told if notes is None else notes
            wrong += [f"{route}: note {note!r}" for note in notes ^ told]
        if compared is not None:
            wrong += [f"{route}: {what}" for what in wrong_tests(compared, reference, expected, question)]
            wrong += [f"{route}: {what}" for what in unlike(compared, first or compared)]
            first = first or compared
    return wrong


def check(questions: Iterable[Question], tmp_path: Path, spark=None) -> None:
    wrong = []
    for question in questions:
        folder = tmp_path / str(question.seed)
        folder.mkdir()
        wrong += [f"{question}\n    {what}" for what in broken(question, folder, spark)]
    assert not wrong, f"{len(wrong)} differences\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("part", range(6))
def test_one_question_has_one_answer_on_every_route(part, tmp_path):
    check(questions()[part::6], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 31))
def test_thousands_of_questions_have_one_answer_each(seed, tmp_path):
    check(design(seed), tmp_path)


def on_spark(questions: list[Question]) -> list[Question]:
    """Return the questions for Spark, those that it refuses last."""
    asked = [replace(question, routes=(SPARK[place % 2],)) for place, question in enumerate(questions)]
    return sorted(asked, key=lambda question: question["ties"] == "input" or question["form"] == "order")


@pytest.mark.spark
def test_spark_answers_as_every_other_engine_does(tmp_path, spark):
    asked = on_spark(questions())
    check(asked[:16] + asked[-4:], tmp_path, spark)


@pytest.mark.slow
@pytest.mark.spark
def test_spark_answers_every_question_as_every_other_engine_does(tmp_path, spark):
    check(on_spark(questions()), tmp_path, spark)


def test_every_pair_of_values_occurs():
    asked = set().union(*(pairs_of(dict(question.factors), question.routes) for question in questions()))
    assert possible_pairs(random.Random(1), ROUTES) <= asked
    assert len(questions()) * 3 == sum(len(question.routes) for question in questions())


def _other_threshold(*given, **options):
    return replace(Relevance.of(*given, **options), threshold=1.0)


MUTANTS = {
    "ranges of users choose their own threshold": (
        lambda patch: patch.setattr(engines, "Relevance", SimpleNamespace(of=_other_threshold)),
        lambda question: question["threshold"] == "auto" and question["scale"] in ("stars", "ten"),
        ("ranges", "spilled"),
    ),
    "ties of a run are not averaged": (
        lambda patch: patch.setattr(judging, "as_runs", lambda runs, ties=None, gaps="keep": AS_RUNS(runs, None, gaps)),
        lambda question: question["ties"] == "average" and question["group"] == "hits",
        ("memory",),
    ),
    "gaps between ranks are closed": (
        lambda patch: patch.setattr(lists, "_places", lambda ranks, indptr: None),
        lambda question: question["form"] == "ranks" and question["gaps"] == "keep" and question["group"] == "gains",
        ("memory", "ranges", "spilled"),
    ),
    "items outside the catalogue earn novelty": (
        lambda patch: patch.setattr(beyond, "dead_items", lambda judged: None),
        lambda question: question["catalogue"] == "file" and question["group"] in ("novelty", "exposure"),
        ("memory", "ranges", "spilled"),
    ),
    "users of a file of values are in another order": (
        lambda patch: patch.setattr(ValueTable, "_ordered", _in_order_of_blocks),
        lambda question: question["group"] in ("hits", "gains"),
        ("spilled",),
    ),
    "a system is averaged over the users that another serves": (
        lambda patch: patch.setattr(Scores, "served", property(lambda scores: scores.covered[-1])),
        lambda question: question["coverage"] == "reduced",
        ("memory", "ranges", "spilled"),
    ),
    "undefined values are left out in any case": (
        lambda patch: patch.setattr(Scores, "counts_zero", lambda scores, m, undefined: False),
        lambda question: question["undefined"] == "zero" and question["group"] == "hits",
        ("memory", "ranges", "spilled"),
    ),
}


def _in_order_of_blocks(table, name, order):
    return ORDERED(table, name, np.arange(len(order))[::-1] if name == "values" else order)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_law_catches_a_planted_fault(mutant, tmp_path, monkeypatch):
    plant, concerns, of_engines = MUTANTS[mutant]
    plant(monkeypatch)
    asked = [question for question in questions() if concerns(question)]
    for question in asked:
        routes = tuple(route for route in question.routes if route.engine in of_engines)
        folder = tmp_path / str(question.seed)
        folder.mkdir()
        if routes and broken(replace(question, routes=routes), folder):
            return
    pytest.fail(f"no difference in {len(asked)} questions")
