"""Which column is which: by name, by the usual names in the field, or by position."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from cranfield._errors import InputError, SettingError, nearest

Role = Literal["user", "item", "rating", "time", "basket", "type"]
ROLES: tuple[Role, ...] = ("user", "item", "rating", "time")
_NAMED_ONLY: tuple[Role, ...] = ("basket", "type")  # roles of events, never guessed

# Names without case, spaces and punctuation; if several columns match, the name listed first wins.
_HABITS: Mapping[Role, str] = {
    "user": (
        "userid user users u uid useridx usercode userno userhash usersha1 reviewerid reviewer reviewuserid "
        "customerid customer visitorid visitor memberid member accountid account personid person raterid rater "
        "clientid client consumerid consumer shopperid sessionid username profilename reviewprofilename"
    ),
    "item": (
        "itemid item items i iid itemidx itemcode movieid movie movies filmid film parentasin asin isbn bookid book "
        "productid product artistid artist musicbrainzartistid trackid track songid song albumid album beerid "
        "beerbeerid beer restaurantid restaurant businessid business gmapid animeid anime gameid game appid app "
        "newsid news articleid article videoid video jokeid joke recipeid recipe workid work placeid place poiid poi "
        "locationid location venueid venue eventid event contentid content docid doc documentid document "
        "artistname trackname itemname productname moviename booktitle movietitle title"
    ),
    "rating": (
        "rating ratings r ratingvalue overallrating bookrating userrating starrating reviewoverall overall score "
        "scores userscore reviewscore reviewrating stars star grade vote preference pref value weight plays playcount "
        "listencount listens scrobbles count counts frequency clicks views purchases quantity feedback relevance "
        "label target"
    ),
    "time": (
        "timestamp ts time t unixtime unixtimestamp unixreviewtime reviewtimestamp ratingtimestamp epoch datetime "
        "reviewtime ratingtime date reviewdate ratingdate createdat ratedat updatedat watchedat listenedat playedat "
        "dateadded lastupdated timecreated"
    ),
}

ColumnChoice = str | int | bool | None


class MissingColumnError(InputError):
    """A named column that the data do not have; ``role`` is what it was meant for."""

    def __init__(self, role: str, problem: str, *, source: str, remedy: str | None = None) -> None:
        super().__init__(problem, source=source, remedy=remedy)
        self.role = role


def place_by_name(names: Sequence[str], role: Role, taken: Collection[int] = ()) -> int | None:
    """Return the position in ``names`` of a usual name of ``role``, ignoring positions that are taken."""
    place_of = {_plain(name): place for place, name in reversed(list(enumerate(names))) if place not in taken}
    return next((place_of[habit] for habit in _HABITS[role].split() if habit in place_of), None)


def find_columns(
    names: Sequence[str] | None, width: int, chosen: Mapping[Role, ColumnChoice], guess: Mapping[Role, int], label: str
) -> dict[Role, int]:
    """Return the position of the column of each role that the data have; ``names`` are None if columns have none.

    The caller has ``chosen`` for each role a name, a position counted from 1, False for "there is none", or None. The
    last are found by their usual names; if the columns have no names, their positions are a ``guess``.
    """
    places: dict[Role, int] = {}
    for role in (*ROLES, *_NAMED_ONLY):
        choice = chosen.get(role)
        if choice is None or choice is False:
            continue
        place = _named(names, width, role, choice, label)
        if twins := [other for other, taken in places.items() if taken == place]:
            both = f"{twins[0]} and {role}"
            raise SettingError(f"{label}: column {choice!r} cannot be both {both}; choose another for one")
        places[role] = place
    for role in ROLES:
        if chosen[role] is None:
            guessed = guess.get(role) if names is None else place_by_name(names, role, taken=places.values())
            if guessed is not None and guessed not in places.values():
                places[role] = guessed
    for role in ("user", "item"):
        if role not in places:
            there = ", ".join(repr(name) for name in names) if names is not None else f"{width} without names"
            problem = f"no column is known to hold the {role}s (columns: {there})"
            remedy = f"say which one does with {role}=NAME"
            raise InputError(problem, source=label, remedy=remedy)
    return {role: places[role] for role in (*ROLES, *_NAMED_ONLY) if role in places}


def _named(names: Sequence[str] | None, width: int, role: Role, choice: str | int | bool, label: str) -> int:
    if isinstance(choice, str) and names is not None and choice in names:
        return names.index(choice)
    if isinstance(choice, bool) or not str(choice).isdecimal():
        if names is None:
            problem = f"there is no column {choice!r}: the columns have no names"
            remedy = f"give {role} as a position counted from 1, or header=True if the first row holds the names"
            raise MissingColumnError(role, problem, source=label, remedy=remedy)
        raise MissingColumnError(role, f"there is no column {choice!r}{nearest(str(choice), names)}", source=label)
    position = int(choice)
    if not 1 <= position <= width:
        problem = f"there is no column {position} for the {role}: there are {width}"
        raise InputError(problem, source=label, remedy="count from 1")
    return position - 1


def _plain(name: str) -> str:
    # RecBole's atomic files write the type after the name: user_id:token.
    name = re.sub(r":(token|float|token_seq|float_seq)$", "", name.strip())
    return re.sub(r"[\W_]+", "", name).lower()
