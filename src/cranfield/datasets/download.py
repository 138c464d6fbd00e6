"""Downloads that survive a broken connection, and are complete or not there at all."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from cranfield._errors import DownloadError
from cranfield._record import file_checksum
from cranfield._terminal import progress
from cranfield._version import __version__

_TIMEOUT = 30.0
_ATTEMPTS = 5
_PAUSE = 1.0
_BLOCK = 1 << 18
_MIB = 1 << 20


class _WebOnly(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https addresses only."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urllib.parse.urlsplit(newurl).scheme.lower() not in ("http", "https"):
            raise DownloadError(f"{req.full_url} redirects to {newurl}, which is not an http or https address")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener of http and https addresses only: urllib's own also opens files and FTP."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        _WebOnly,
    ):
        opener.add_handler(handler())
    return opener


class _BrokenError(Exception):
    """The connection ended before the file did; the bytes received so far are kept."""


def download(address: str, target: Path, *, checksum: str | None = None, limit: int, what: str) -> None:
    """Download ``address`` to ``target``, continuing where an earlier attempt stopped.

    A download is written to ``target`` + ``.part``, which is renamed when it is complete. It is resumed with an HTTP
    range request only if the server says that the file has not changed since (``If-Range``); a server that cannot do
    that sends the whole file again. A ``checksum`` is ``"md5:..."`` or ``"sha256:..."``, ``limit`` the most bytes
    accepted, and ``what`` the name in the progress bar.
    """
    if not address.startswith(("http://", "https://")):
        raise DownloadError(f"{address} is not an http or https address")
    part = target.with_name(target.name + ".part")
    for attempt in range(_ATTEMPTS):
        before = _size(part)
        try:
            _continue(address, part, limit, what)
            break
        except _BrokenError as error:
            if attempt + 1 == _ATTEMPTS:
                raise DownloadError(f"the connection to {address} broke {_ATTEMPTS} times ({error})") from error
            # If the server sends something each time, no long pause is needed.
            time.sleep(_PAUSE if _size(part) > before else _PAUSE * 2**attempt)
    if checksum is not None:
        algorithm, _, wanted = checksum.partition(":")
        actual = file_checksum(part, algorithm)
        if actual != wanted.lower():
            _forget(part)
            raise DownloadError(f"{address} has the {algorithm} checksum {actual} instead of {wanted}")
    part.replace(target)
    _forget(part)


def _continue(address: str, part: Path, limit: int, what: str) -> None:
    """Request the missing rest of ``part`` and append it, or start again if that is not possible."""
    have, validator = _left_by_earlier(address, part)
    headers = {"User-Agent": f"cranfield/{__version__}", "Accept-Encoding": "identity"}
    if validator is not None:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    try:
        with _opener().open(urllib.request.Request(address, headers=headers), timeout=_TIMEOUT) as answer:
            if answer.status == http.client.PARTIAL_CONTENT:
                start, total = _range(answer.headers.get("Content-Range"))
                if start != have:
                    _forget(part)
                    raise _BrokenError("the server sent a different range from the one requested")
            else:
                have, total = 0, _number(answer.headers.get("Content-Length"))
                _remember(address, part, answer)
            _append(answer, part, have, total, limit, what)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            _forget(part)
            raise _BrokenError("the file on the server has changed") from error
        if error.code >= 500 or error.code == http.client.TOO_MANY_REQUESTS:
            raise _BrokenError(f"HTTP {error.code} {error.reason}") from error
        raise DownloadError(f"{address} answers HTTP {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, (TimeoutError, ConnectionResetError)):
            raise _BrokenError(error.reason) from error
        raise DownloadError(f"{address} cannot be reached ({error.reason})") from error
    except (http.client.InvalidURL, ValueError) as error:
        raise DownloadError(f"{address} is not an address ({error})") from error
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise _BrokenError(str(error) or type(error).__name__) from error


def _append(answer: Any, part: Path, have: int, total: int | None, limit: int, what: str) -> None:
    if (total or 0) > limit:
        raise DownloadError(f"it has {total:,} bytes, more than the {limit:,} that were expected")
    with (
        part.open("ab" if have else "wb") as file,
        progress(f"Downloading {what}", total=None if total is None else round(total / _MIB, 1), unit="MiB") as bar,
    ):
        bar.advance(round(have / _MIB, 1))
        # `read1` returns what has arrived, not a whole block: a broken connection loses nothing, and the bar moves.
        while block := answer.read1(_BLOCK):
            have += len(block)
            if have > limit:
                break
            file.write(block)
            bar.advance(len(block) / _MIB)
    if have > limit:
        _forget(part)
        raise DownloadError(f"it has more than the {limit:,} bytes that were expected")
    if total is not None and have < total:
        raise _BrokenError(f"{have:,} of {total:,} bytes were received")


def _left_by_earlier(address: str, part: Path) -> tuple[int, str | None]:
    """Return how many bytes an earlier attempt left, and the validator of their version on the server."""
    try:
        left = json.loads(_note(part).read_text(encoding="utf-8"))
        if left["address"] == address and left["validator"] and _size(part):
            return _size(part), str(left["validator"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    return 0, None


def _remember(address: str, part: Path, answer: Any) -> None:
    # A weak ETag does not promise the same bytes, so it cannot be used to continue (RFC 9110, 13.1.5).
    etag = answer.headers.get("ETag")
    validator = etag if etag and not etag.startswith("W/") else answer.headers.get("Last-Modified")
    part.unlink(missing_ok=True)
    _note(part).write_text(json.dumps({"address": address, "validator": validator}), encoding="utf-8")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _note(part).unlink(missing_ok=True)


def _note(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _range(text: str | None) -> tuple[int | None, int | None]:
    """Return where a partial response starts and how long the whole file is: ``bytes 100-199/200``."""
    form = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", text or "")
    if form is None:
        return None, None
    # The request was for the rest of the file, so the file ends where the response does.
    return int(form[1]), _number(form[3]) or int(form[2]) + 1


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
