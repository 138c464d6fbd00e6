"""Systems that use the order of events: the toys of their definitions, and the definitions in plain loops."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from cranfield import InputError, SettingError
from cranfield.data import Ratings, read
from cranfield.data.events import basket_codes
from cranfield.recommenders import read_model, recommender, save_model
from cranfield.tables import Vocabulary

DAY = 86_400
WORDS = "abcdefgh"


def logged(rows, **options):
    """Make ratings of rows of user, item, time and, if given, basket."""
    users, items, times, *baskets = zip(*rows)
    user_ids, user = Vocabulary.encode(list(users))
    item_ids, item = Vocabulary.encode(list(items))
    when = np.array(times, dtype=np.int64)
    codes = basket_codes(user, np.array(baskets[0]), when) if baskets else None
    given = {"repeated": "sum/max", "baskets": codes, **options}
    return Ratings.from_codes(user_ids, item_ids, user, item, np.ones(len(user)), when, **given)


def in_baskets(histories):
    """Make ratings of the baskets of users, in order."""
    return logged([(u, i, t, t) for u, baskets in histories.items() for t, b in enumerate(baskets) for i in b])


def scored(spelling, train, user):
    row = recommender(spelling).fit(train).score([train.user_ids.code(user)])[0]
    return {item: value for item, value in zip(train.item_ids.all.to_list(), row.tolist()) if value == value}


def close(found, expected):
    assert set(found) == set(expected)
    assert all(found[item] == pytest.approx(value, abs=5e-7) for item, value in expected.items())


# Reference values.


@pytest.mark.parametrize(("n", "weights"), [(2, [0.35, 0.5]), (5, [0.163333, 0.105, 0.116667, 0.15, 0.166667])])
def test_the_weights_of_baskets_in_groups(n, weights):
    train = in_baskets({"a": [[str(number)] for number in range(n)]})
    close(scored("tifu-knn(groups=3, alpha=1)", train, "a"), dict(zip(map(str, range(n)), weights)))


def test_tifu_knn_scores_the_toy():
    train = in_baskets({"a": [["x", "y"], ["x"], ["z"]], "b": [["x"], ["y"]], "c": [["w"]]})
    close(scored("tifu-knn(groups=2, k=1, alpha=1)", train, "a"), {"x": 0.575, "y": 0.35, "z": 0.25})
    close(scored("tifu-knn(groups=2, k=1)", train, "a"), {"x": 0.5075, "y": 0.395, "z": 0.175})
    model = recommender("tifu-knn(groups=2, k=1)").fit(train)
    rows = model._ratings.toarray()
    assert np.linalg.norm(rows[0] - rows[1]) == pytest.approx(0.368273, abs=5e-7)
    assert np.linalg.norm(rows[1] - rows[2]) == pytest.approx(1.171537, abs=5e-7)


SESSIONS = {1: "pq", 2: "qrs", 3: "ps", 4: "rs", 5: "qpt"}


def session_log(sessions):
    return logged([(s, i, 100 * s + place) for s, items in sessions.items() for place, i in enumerate(items)])


def profile_of(words, items, at=1000):
    """Return one profile over a vocabulary of items."""
    codes = items.codes(list(words))
    times = np.arange(at, at + len(words))
    one = Vocabulary.of(["now"])
    users = np.zeros(len(words), dtype=np.int32)
    return Ratings.from_codes(one, items, users, codes, np.ones(len(words)), times, repeated="sum/max")


SKNN = {"p": 1.483163, "q": 2.149830, "r": 0.666667, "s": 0.666667, "t": 0.666667}
VSKNN = {"p": 2.666667, "q": 4.333333, "r": 1.666667, "s": 1.666667, "t": 1.333333}


@pytest.mark.parametrize(("name", "expected"), [("sknn", SKNN), ("vsknn", VSKNN)])
def test_session_neighbours_score_the_toy(name, expected):
    train = session_log(SESSIONS)
    model = recommender(f"{name}(k=3)").fit(train)
    row = model.score_profiles(profile_of("prq", train.item_ids))[0]
    close(dict(zip("pqrst", row.tolist())), expected)
    # The session is not its own neighbour if it is in training.
    close(scored(f"{name}(k=3)", session_log({**SESSIONS, 6: "prq"}), 6), expected)


def test_decaying_item_neighbours_score_the_toy():
    rows = [("a", "x", 1), ("a", "y", 2), ("b", "x", 3), ("b", "y", 4), ("c", "x", 5), ("c", "z", 5)]
    train = logged([(user, item, day * DAY) for user, item, day in rows])
    close(scored("itemknn-decay(half_life=2)", train, "a"), {"x": 0.288675, "y": 0.204124, "z": 0.144338})


# The definitions in plain loops.


def random_log(draw, *, baskets=True, users=7, ties=True):
    """Return random histories: for each user a list of baskets, each a list of items, and the time of each basket."""
    histories = {}
    for user in range(users):
        count = int(draw.integers(1, 9)) if user else 1
        when = np.cumsum(draw.integers(0 if ties and baskets else 1, 3 * DAY, count))
        sizes = draw.integers(1, 4, count) if baskets else np.ones(count, dtype=int)
        histories[user] = [(int(t), list(draw.choice(list(WORDS), s))) for t, s in zip(when, sizes)]
    return histories


def as_ratings(histories, *, baskets=True):
    rows = [(u, i, t, b) for u, history in histories.items() for b, (t, items) in enumerate(history) for i in items]
    return logged(rows if baskets else [row[:3] for row in rows])


def compare(spelling, train, expected, digits=1e-9):
    """Compare every score with ``expected(user, item)``, None for no score."""
    found = recommender(spelling).fit(train).score(np.arange(train.n_users))
    wanted = [[expected(u, i) for i in train.item_ids.all] for u in train.user_ids.all]
    np.testing.assert_allclose(found, np.array(wanted, dtype=float), rtol=digits, atol=digits)


def tifu(history, groups=7, within=0.9, across=0.7):
    n = len(history)
    m = min(groups, n)
    q, r = divmod(n, m)
    sizes = [q] * (m - r) + [q + 1] * r
    vector, baskets = Counter(), iter(history)
    for g, s in enumerate(sizes, 1):
        for j in range(1, s + 1):
            for item in set(next(baskets)[1]):
                vector[item] += within ** (s - j) * across ** (m - g) / (s * m)
    return vector


@pytest.mark.parametrize("baskets", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_tifu_knn_is_its_definition(seed, baskets):
    draw = np.random.default_rng(seed)
    log = random_log(draw, baskets=baskets)
    if seed % 2:
        log[5] = log[3]  # equal distances, and a distance of 0
    k, groups = int(draw.integers(1, 9)), int(draw.integers(1, 5))
    vectors = {user: tifu(history, groups) for user, history in log.items()}

    def distance(u, v):
        return round(sum((vectors[u][i] - vectors[v][i]) ** 2 for i in WORDS), 12)

    def expected(u, i):
        near = sorted((distance(u, v), v) for v in log if v != u)[:k]
        score = 0.7 * vectors[u][i] + 0.3 * sum(vectors[v][i] for _, v in near) / len(near)
        return score or None

    compare(f"tifu-knn(k={k}, groups={groups})", as_ratings(log, baskets=baskets), expected)


@pytest.mark.parametrize("spelling", ["half_life=1.5", "step=0.6", "step=1"])
@pytest.mark.parametrize("seed", range(4))
def test_decaying_item_neighbours_are_their_definition(seed, spelling):
    log = random_log(np.random.default_rng(seed))
    had = {item: {u for u, h in log.items() if any(item in basket for _, basket in h)} for item in WORDS}
    now = max(t for history in log.values() for t, _ in history)

    def sim(i, j):
        return round(len(had[i] & had[j]) / math.sqrt(len(had[i]) * len(had[j]) or 1), 12)

    def weight(t, since):
        name, value = spelling.split("=")
        return 2 ** (-(now - t) / DAY / float(value)) if name == "half_life" else float(value) ** since

    def expected(u, i):
        near = sorted((-sim(i, j), j) for j in WORDS if j != i and sim(i, j) > 0)[:3]
        events = [(t, len(log[u]) - 1 - b, j) for b, (t, basket) in enumerate(log[u]) for j in set(basket)]
        parts = [weight(t, since) * sim(i, j) for t, since, j in events if j in {name for _, name in near}]
        return sum(parts) if parts else None

    compare(f"itemknn-decay(k=3, {spelling})", as_ratings(log), expected)


def of_sessions(current, sessions, k, sample, *, vector, decay=False):
    """Score items from the events of the current session and the (time, id, items) of others."""
    c = [item for _, item in sorted(current)]
    times = sorted(time for time, _ in current)
    position = {i: max(sum(t <= time for t in times) for time, j in current if j == i) for i in c}
    found = []
    for time, number, items in sorted(sessions, key=lambda one: (-one[0], one[1])):
        common = set(c) & set(items)
        if common:
            sim = len(common) / math.sqrt(len(set(c)) * len(set(items)))
            if vector:
                sim = sum(position[i] / len(c) for i in common)
            steps = min(len(c) - position[i] + 1 for i in common)
            found.append((-round(sim, 12), -time, number, sim / steps if decay else sim, items))
    scores = Counter()
    for *_, sim, items in sorted(found[:sample])[:k]:
        for i in set(items):
            scores[i] += sim
    return scores


KINDS = {"sknn": {"vector": False}, "vsknn": {"vector": True}, "vsknn(score_decay)": {"vector": True, "decay": True}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_session_neighbours_are_their_definition(seed, kind):
    draw = np.random.default_rng(seed)
    log = random_log(draw)
    k, sample = int(draw.integers(1, 6)), int(draw.integers(1, 9))
    ordered = {u: sorted(history, key=lambda one: one[0]) for u, history in log.items()}
    sessions = [(t, (u, b), items) for u, history in ordered.items() for b, (t, items) in enumerate(history)]

    def expected(u, i):
        t, items = ordered[u][-1]
        others = [one for one in sessions if one[1] != (u, len(ordered[u]) - 1)]
        return of_sessions([(t, item) for item in items], others, k, sample, **KINDS[kind])[i] or None

    name, _, decay = kind.partition("(")
    options = f"k={k}, sample={sample}" + (", score_decay=true" if decay else "")
    compare(f"{name}({options})", as_ratings(log), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_without_sessions_a_user_is_one(seed, kind):
    draw = np.random.default_rng(seed)
    log = {u: [(int(t), str(i)) for t, i in zip(draw.integers(0, 6, n), draw.choice(list(WORDS), n))]
           for u, n in enumerate(draw.integers(1, 7, 9).tolist())}  # fmt: skip
    train = logged([(u, i, t) for u, events in log.items() for t, i in events])
    sessions = [(max(t for t, _ in events), u, [i for _, i in events]) for u, events in log.items()]

    def expected(u, i):
        return of_sessions(log[u], [one for one in sessions if one[1] != u], 3, 5, **KINDS[kind])[i] or None

    name, _, decay = kind.partition("(")
    compare(f"{name}(k=3, sample=5{', score_decay=true' if decay else ''})", train, expected)


def ranked(spelling, train, user):
    """Return a user's items in the order of a run: by score, then ids as text, descending."""
    scores = scored(spelling, train, user)
    return sorted(sorted(scores, key=str, reverse=True), key=lambda item: -scores[item])


TIES = {
    "id": lambda own, everyone, latest, i: 0,
    "id_ascending": lambda own, everyone, latest, i: i,
    "popularity": lambda own, everyone, latest, i: -everyone[i],
    "recent": lambda own, everyone, latest, i: -latest[i],
}


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("scope", ["global", "personal", "both"])
@pytest.mark.parametrize("baskets", [True, False])
def test_ties_decide_the_order_of_frequencies(scope, ties, baskets):
    for seed in range(5):
        draw = np.random.default_rng(seed)
        log = {u: [(b, draw.integers(0, 15, 4).tolist() if baskets else [int(draw.integers(0, 15))])
                   for b in range(int(draw.integers(1, 12)))] for u in range(6)}  # fmt: skip
        everyone = Counter(i for history in log.values() for _, items in history for i in set(items))
        last = {i: max(b for history in log.values() for b, items in history if i in items) for i in everyone}
        train = as_ratings(log, baskets=baskets)
        for u, history in log.items():
            own = Counter(i for _, items in history for i in set(items))
            latest = {i: max(b for b, items in history if i in items) for i in own}
            by_text = sorted(everyone, key=str, reverse=True)
            personal = sorted(
                (i for i in by_text if i in own), key=lambda i: (-own[i], TIES[ties](own, everyone, latest, i))
            )
            of_all = sorted(by_text, key=lambda i: (-everyone[i], TIES[ties](own, everyone, last, i)))
            wanted = {"global": of_all, "personal": personal, "both": [*personal, *(i for i in of_all if i not in own)]}
            assert ranked(f"topfreq(scope={scope}, ties={ties})", train, u) == wanted[scope]


def test_frequencies_are_the_whole_part_of_scores():
    train = in_baskets({"a": [["x", "y"], ["x"], ["x", "x"]], "b": [["y"], ["z"]]})
    found = scored("topfreq", train, "a")
    assert {item: int(value) for item, value in found.items()} == {"x": 3, "y": 1}
    assert scored("topfreq(scope=global, ties=id)", train, "b") == {"x": 3, "y": 2, "z": 1}


# What is missing, and edges.


TIMED = ["itemknn-decay", "tifu-knn", "sknn", "vsknn", "topfreq(ties=recent)"]


@pytest.mark.parametrize("spelling", TIMED)
def test_missing_times_are_named_with_the_remedy(spelling):
    with pytest.raises(InputError, match=r"needs .*have no(ne| times); name the column of times"):
        recommender(spelling).fit(Ratings.of(["a", "b"], ["x", "y"]))


def test_half_life_and_step_exclude_each_other():
    with pytest.raises(SettingError, match="half_life or step, not both"):
        recommender("itemknn-decay(half_life=3, step=0.5)")
    train = logged([("a", "x", 1), ("b", "x", 2)])
    assert recommender("itemknn-decay").fit(train).adapted == {"half_life": 30.0}
    assert recommender("itemknn-decay(step=0.5)").fit(train).adapted == {}


def test_old_events_keep_their_order():
    rows = [
        ("a", "x", 0),
        ("a", "y", DAY),
        ("b", "x", 9000 * DAY),
        ("b", "z", 9000 * DAY),
        ("c", "y", 5),
        ("c", "w", 5),
    ]
    found = scored("itemknn-decay(half_life=1)", logged(rows), "a")
    assert found["w"] > found["z"] > 0


def test_a_session_without_neighbours_and_one_user_alone():
    train = logged([("a", "x", 1), ("a", "y", 2)])
    assert scored("sknn", train, "a") == {}
    close(scored("tifu-knn", train, "a"), {"x": 0.7 * 0.35, "y": 0.7 * 0.5})


def test_a_matrix_has_no_order():
    model = recommender("vsknn").fit(session_log(SESSIONS))
    with pytest.raises(SettingError, match="give the profiles as Ratings with times"):
        model.score_profiles(np.ones((1, 5)))


@pytest.mark.parametrize(
    "spelling", ["topfreq(scope=both)", "topfreq(ties=recent)", "itemknn-decay", "tifu-knn(alpha=1)"]
)
def test_the_profile_of_a_training_user_has_the_scores_of_the_user(spelling):
    """Unless there are neighbours, among which a profile finds the user."""
    train = as_ratings(random_log(np.random.default_rng(4)))
    model = recommender(spelling).fit(train)
    np.testing.assert_array_equal(model.score_profiles(train), model.score(np.arange(train.n_users)))


def test_unknown_items_keep_their_places_in_a_session():
    known = session_log(SESSIONS)
    items = Vocabulary.of([*"pqrstu"])
    train = Ratings.from_codes(
        known.user_ids, items, known.users, known.items, known.values, known.times, repeated="sum/max"
    )
    model = recommender("vsknn(k=1)").fit(train)
    row = model.score_profiles(profile_of("tu", items))[0]
    np.testing.assert_allclose(row, [0.5, 0.5, np.nan, np.nan, 0.5, np.nan])  # t is the first of two


@pytest.mark.parametrize("spelling", [*TIMED, "vsknn(score_decay=true)"])
def test_an_empty_profile_has_no_scores_and_changes_no_others(spelling):
    train = as_ratings(random_log(np.random.default_rng(2)))
    model = recommender(spelling).fit(train)
    some = train.keep(~np.isin(train.users, [0, 3]))
    scores = model.score_profiles(some)
    assert np.isnan(scores[[0, 3]]).all()
    np.testing.assert_array_equal(scores[[1, 2, 4, 5, 6]], model.score_profiles(train)[[1, 2, 4, 5, 6]])
    assert np.isnan(model.score_profiles(train.keep(np.zeros(len(train), dtype=bool)))).all()


@pytest.mark.parametrize("spelling", [*TIMED, "topfreq(scope=both)", "vsknn(score_decay=true)"])
def test_what_is_kept_scores_the_same(spelling, tmp_path):
    train = as_ratings(random_log(np.random.default_rng(2)))
    model = recommender(spelling).fit(train)
    read = read_model(save_model(model, tmp_path / "model.npz"), spelling, train)
    users = np.arange(train.n_users)
    assert read.score(users).tobytes() == model.score(users).tobytes()
    np.testing.assert_array_equal(read.score_profiles(train), model.score_profiles(train))


def test_an_item_is_as_recent_as_the_last_basket_with_it():
    frame = {"user": [1, 1, 2, 2], "item": [*"xyzw"], "time": [1, 9, 4, 5], "basket": [1, 1, 2, 2]}
    assert ranked("topfreq(scope=global, ties=recent)", read(frame, basket="basket"), 1) == ["y", "x", "z", "w"]
