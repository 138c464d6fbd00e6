from __future__ import annotations

import cranfield as cf
from cranfield.measures import Averaging
from cranfield.reports.sections.segments import by_group


def test_the_section_shows_averages_verdicts_and_interactions(make_scores, evil):
    scores = make_scores(metrics=("P@5",))
    ids = scores.user_ids.all.to_list()
    segments = scores.segments({user: evil[0] if place % 2 else "b" for place, user in enumerate(ids)})
    section = by_group([cf.compare_segments(segments, significance="student")], Averaging(), 0.95)
    assert section.title == "Group by group"
    assert "given, b (20 users): P@5:" in section.html
    assert evil[0] not in section.html
    assert set(section.tables) == {"segments-given", "segments-given-pairs", "segments-given-interactions"}
    assert 'id="figure-segments-given"' in section.html
    assert "the best of a group in colour." in section.html
    assert section.html.count("<tr>") == 1 + 2 * len(scores.systems)


def test_scores_that_are_not_compared_have_averages_alone(make_scores):
    scores = make_scores(metrics=("P@5",))
    segments = scores.segments(dict(zip(scores.user_ids.all.to_list(), "ab" * 20)))
    section = by_group([segments], Averaging(), 0.95)
    assert "users): P@5:" not in section.html
    assert set(section.tables) == {"segments-given"}


def test_without_groups_there_is_no_section():
    assert by_group([], Averaging(), 0.95) is None


def test_the_page_says_how_many_users_of_a_group_are_compared():
    test = cf.Ratings.of(list(range(10)), ["x"] * 10)
    runs = {"a": {u: ["x", "y"] for u in range(10)}, "b": {u: ["y", "x"] for u in range(10) if u % 5 < 3}}
    scores = cf.measure(runs, test, "EPC@1", train=cf.Ratings.of([20, 20, 21], ["x", "y", "x"]))
    compared = cf.compare_segments(scores.segments({u: f"g{u // 5}" for u in range(10)}))
    html = by_group([compared], Averaging(), 0.95).html
    assert "given, g0 (3 users)" in html
    assert ">3</td>" in html
    assert ">5</td>" not in html
