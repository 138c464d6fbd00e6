"""Numbers in one option, separated by commas."""

from __future__ import annotations

from cranfield._errors import SettingError


def numbers(option: str, text: str) -> list[float]:
    """Return the numbers of an option, as in ``1,0.5,0.1``.

    Examples
    --------
    >>> numbers("--sizes", "1,0.5")
    [1.0, 0.5]
    """
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise SettingError(f"{option} {text!r} cannot be read; write numbers separated by commas") from error
