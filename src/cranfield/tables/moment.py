"""Dates and times given by a user, as seconds since 1970."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from numbers import Real

from cranfield._errors import SettingError

# Seconds that do not fit in 64 bits.
_TOO_FAR = 2**63


def seconds(name: str, moment: object) -> int:
    """Return a date, a datetime, an ISO text or a number of seconds as whole seconds since 1970.

    Without a time zone it is UTC, and a date alone is its first second. A fraction of a second is rounded up: among
    times in whole seconds, those before 2.5 are those before 3.

    Examples
    --------
    >>> seconds("start", "2001-01-01")
    978307200
    """
    if isinstance(moment, int) and abs(moment) >= _TOO_FAR:
        raise SettingError(f"{name} is out of range; give a date, an ISO text or seconds since 1970")
    if not isinstance(moment, bool) and isinstance(moment, Real) and abs(float(moment)) < _TOO_FAR:
        return math.ceil(float(moment))
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError as error:
            raise SettingError(
                f"{name}={moment!r} is not a moment; write a date such as 2001-12-31, or 2001-12-31T18:00, "
                "or seconds since 1970"
            ) from error
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if not isinstance(moment, datetime):
        raise SettingError(f"{name}={moment!r} is not a moment; give a date, an ISO text or seconds since 1970")
    return math.ceil((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def day(moment: float) -> str:
    """Return seconds since 1970 as a readable UTC date and time.

    Examples
    --------
    >>> day(978307200)
    '2001-01-01 00:00:00'
    """
    try:
        return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return f"second {int(moment)}"
