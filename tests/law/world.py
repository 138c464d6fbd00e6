"""Small worlds for the law: ratings and ranked lists with everything that real files have planted in them."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field

SCALES = {
    "stars": [1, 2, 3, 4, 5],
    "ten": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    "clicks": [1],
    "counts": [1, 2, 3, 7, 14, 30],
    "grades": [0, 1, 2],
    "signed": [-1, 0, 1],
}
"""Kinds of ratings, each with another automatic threshold."""

FORMS = ("scores", "ranks", "order")
"""What orders the lists: scores, ranks that leave places out, or the order of the rows."""


@dataclass
class World:
    """Ratings and lists as rows, before anything is merged, ordered or joined.

    ``lists`` are, by system, rows of (user, item, score, rank, prediction); what the form does not have is None.
    """

    form: str
    scale: str
    ids: str
    repeats: bool
    test: list[tuple] = field(default_factory=list)
    train: list[tuple] = field(default_factory=list)
    lists: dict[str, list[tuple]] = field(default_factory=dict)
    segment: dict = field(default_factory=dict)
    catalogue: list = field(default_factory=list)


def draw_world(seed: int, form: str, scale: str, repeats: bool, most_users: int = 40) -> World:
    """Draw a world of 5 to 40 users, small ones more often.

    Some users have no list, some lists have no test user, some listed items have no rating, some are not in the
    catalogue, scores and ranks tie, ranks leave places out, items and (with ``repeats``) ratings occur twice, and some
    scores are missing.
    """
    draw = random.Random(f"{seed} {form} {scale} {repeats}")
    ids = draw.choice(["number", "text"])
    n_users, n_items = min(*(draw.randint(5, 40) for _ in range(3)), most_users), draw.randint(12, 30)
    users = [_id(ids, "u", 3 + 2 * place) for place in range(n_users)]
    items = [_id(ids, "i", place) for place in range(n_items)]
    ghosts = [_id(ids, "g", 900 + place) for place in range(3)]
    world = World(form, scale, ids, repeats)
    for user in users:
        known = draw.sample(items, draw.randint(4, 9))
        cut = draw.randint(1, 3)
        world.train += _ratings(draw, user, known[cut:], scale, repeats)
        world.test += _ratings(draw, user, known[:cut], scale, repeats)
    world.test += [(users[0], items[0], max(SCALES[scale]))] if (users[0], items[0]) not in _pairs(world) else []
    draw.shuffle(world.test)
    draw.shuffle(world.train)
    liked = {user: list(dict.fromkeys(item for who, item, _ in world.test if who == user)) for user in users}
    strangers = [_id(ids, "u", 2 * place) for place in range(40, 42)]
    for name in ("alpha", "beta", "gamma")[: draw.choice([2, 2, 3])]:
        served = [user for user in users if draw.random() < 0.9] or users
        for user in [*served, *strangers[: draw.randint(0, 2)]]:
            world.lists.setdefault(name, []).extend(_list(draw, form, user, items, ghosts, liked.get(user, [])))
        if form != "order":
            draw.shuffle(world.lists[name])
    world.segment = {user: draw.choice(["east", "west"]) for user in users} | {users[0]: "east", users[-1]: "west"}
    world.catalogue = items[: n_items - draw.randint(1, 4)]
    return world


def _id(kind: str, letter: str, number: int) -> int | str:
    return number if kind == "number" else f"{letter}{number}"


def _pairs(world: World) -> set[tuple]:
    return {row[:2] for row in [*world.test, *world.train]}


def _ratings(draw: random.Random, user: object, items: list, scale: str, repeats: bool) -> list[tuple]:
    rows = []
    for item in items:
        for _ in range(draw.choice([1, 1, 2, 3]) if repeats else 1):
            rows.append((user, item, draw.choice(SCALES[scale])))
    return rows


def _list(draw: random.Random, form: str, user: object, items: list, ghosts: list, liked: list) -> list[tuple]:
    """Return the rows of one list; liked items are more frequent, so that systems differ."""
    listed = [item for item in liked if draw.random() < 0.6]
    listed += [item for item in draw.sample([*items, *ghosts], draw.randint(1, 7)) if item not in listed]
    draw.shuffle(listed)
    if draw.random() < 0.3:
        listed.append(draw.choice(listed))  # an item that occurs twice
    while True:
        rows, rank = [], draw.choice([1, 1, 1, 2])
        for item in listed:
            score = None if draw.random() < 0.04 and rows else draw.choice([5, 4.75, 4, 4, 3.5, 3, 2.5, 2, 1.5, 1.25])
            given = {"scores": (score, None), "ranks": (None, rank), "order": (None, None)}[form]
            rows.append((user, item, *given, score or 2.5))
            rank += draw.choice([0, 1, 1, 1, 1, 2, 4])
        tied = Counter(row[2:4] for row in rows)
        if form == "order" or math.prod(math.factorial(count) for count in tied.values()) <= 24:
            return rows  # the reference goes through every order of tied items
