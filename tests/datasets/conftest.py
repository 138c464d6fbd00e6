"""A cache of its own for each test, a server on this machine, and a small dataset to fetch from it."""

from __future__ import annotations

import io
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cranfield.datasets import Counts, Dataset
from cranfield.datasets.parsers import delimited

_RATINGS = "1::10::5::100\n1::20::3::200\n2::10::4::300\n"


def _zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _entry(**changes):
    settings = {
        "name": "tiny",
        "title": "Three ratings",
        "home": "https://example.org/tiny",
        "licence": "none",
        "citation": "Nobody (2020)",
        "counts": Counts(2, 2, 3),
        "parse": delimited("::", ("user", "item", "rating", "time")),
        "files": {"all": ("ratings.dat",)},
        "limit": 1_000_000,
    }
    return Dataset(**(settings | changes))


class _Server:
    """Serves ``files`` by path; a text is where to go instead.

    ``cuts`` are the bytes after which the next answers break off, or first ``stall``.
    """

    def __init__(self):
        self.files, self.cuts, self.asked = {}, [], []
        self.ranges, self.etag, self.stall, self.told = True, '"v1"', 0.0, True
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, request):
        asked = request.headers.get("Range")
        self.asked.append(asked)
        content = self.files.get(request.path)
        if isinstance(content, str):
            request.send_response(302)
            request.send_header("Location", content)
            request.end_headers()
            return
        if content is None or isinstance(content, int):
            request.send_error(content or 404)
            return
        start = 0
        if asked and self.ranges and request.headers.get("If-Range") == self.etag:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            request.send_response(206)
            total = len(content) if self.told else "*"
            request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{total}")
        else:
            request.send_response(200)
        if self.etag:
            request.send_header("ETag", self.etag)
        if self.told or not start:
            request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        end = start + self.cuts.pop(0) if self.cuts else None
        request.wfile.write(content[start:end])
        time.sleep(self.stall if end else 0)

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server():
    server = _Server()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CRANFIELD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("cranfield.datasets.download._PAUSE", 0.0)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache" / "datasets"


@pytest.fixture
def tiny(server):
    """Return a function that serves an archive and makes the entry that downloads it."""

    def make(content=None, **changes):
        server.files["/tiny.zip"] = _zipped({"tiny/ratings.dat": _RATINGS}) if content is None else content
        return _entry(address=f"{server.address}/tiny.zip", **changes)

    return make


@pytest.fixture
def make_zip():
    """Return a function from names and contents to the bytes of a zip."""
    return _zipped


@pytest.fixture
def make_entry():
    """Return a function that makes the entry of the tiny dataset, without an address, changed as told."""
    return _entry


@pytest.fixture
def ratings_text():
    """Return the tiny dataset as text."""
    return _RATINGS
