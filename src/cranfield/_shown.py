"""Text from files, names and servers, made safe to show: it cannot control a terminal or break a line."""

from __future__ import annotations

import re

_BREAKS = re.compile("[\t-\r\x85\u2028\u2029]")
# Control characters, surrogates, marks that change the direction of writing, and code points that are not characters.
_COMMANDS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


def shown(text: object) -> str:
    r"""Return text without line breaks, terminal control characters and marks that change the direction of writing.

    Examples
    --------
    >>> shown("mine\x1b[31m"), shown("mine\u202e"), shown("two\nlines")
    ('mine�[31m', 'mine�', 'two lines')
    """
    text = str(text)
    if text.isascii() and text.isprintable():
        return text  # nearly all text, even in tables of a million rows
    return _COMMANDS.sub("\ufffd", _BREAKS.sub(" ", text))


def one_line(text: object) -> str:
    r"""Return text as `shown`, with runs of spaces made one space.

    Examples
    --------
    >>> one_line("two\n  lines ")
    'two lines'
    """
    return " ".join(shown(text).split())


def shown_lines(text: object) -> str:
    r"""Return text of several lines, each as `shown` but with its tabs.

    Examples
    --------
    >>> shown_lines("a\tb\x1b[2J\nc")
    'a\tb�[2J\nc'
    """
    return "\n".join("\t".join(map(shown, line.split("\t"))) for line in str(text).split("\n"))
