"""The roles of the columns of a run (user, item, score, rank), by the names that tools give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cranfield._errors import nearest
from cranfield.tables import MissingColumnError, place_by_name

# Names in lower case without separators, the most specific first. LensKit and RecTools write user_id, item_id, score,
# rank; RecBole the same with types (user_id:token); RePlay query_id and rating; recommenders userID, itemID,
# prediction; ranx q_id, doc_id; Spark's ALS a column of recommendations. Users and items have these names and those of
# ratings.
_NAMES: Mapping[str, Sequence[str]] = {
    role: names.split()
    for role, names in {
        "user": "query queryid qid topic topicid targetitemid",
        "item": "docno itemids recommendations recs",
        "score": "score scores relevance value",
        "rank": "rank ranks position pos ranking",
        "prediction": "prediction predictions predictedrating predicted pred rhat est rating",
        "system": "system model run runid tag algorithm algo recommender method",
        "group": "group",
    }.items()
}


def find_roles(names: Sequence[str], given: Mapping[str, str | int | None], source: str) -> dict[str, str]:
    """Return the column of each role: the one the user named, otherwise the one with a known name.

    Examples
    --------
    >>> find_roles(["user_id:token", "item_id:token", "score:float"], {}, "r.csv")
    {'user': 'user_id:token', 'item': 'item_id:token', 'score': 'score:float'}
    """
    roles = {role: _given(column, role, names, source) for role, column in given.items() if column is not None}
    for role in _NAMES:
        if role not in roles:
            free = [name for name in names if name not in roles.values()]
            place = _place(free, role)
            if place is not None:
                roles[role] = free[place]
    return roles


def _place(names: Sequence[str], role: str) -> int | None:
    if role in ("user", "item"):
        place = place_by_name(names, "user" if role == "user" else "item")
        if place is not None:
            return place
    plain = [_plain(name) for name in names]
    return next((plain.index(name) for name in _NAMES[role] if name in plain), None)


def _plain(name: str) -> str:
    """Normalise a name, so that ``q_id``, ``Q ID``, ``qId`` and RecBole's ``q_id:token`` are equal."""
    return "".join(letter for letter in name.partition(":")[0].lower() if letter.isalnum())


def _given(column: str | int, role: str, names: Sequence[str], source: str) -> str:
    if column in names:
        return str(column)
    if str(column).isdecimal() and 1 <= int(column) <= len(names):
        return names[int(column) - 1]
    raise MissingColumnError(
        role, f"there is no column {column!r} to take the {role} from{nearest(str(column), names)}", source=source
    )
