"""Downloads come whole or not at all, and go on where they broke off."""

from __future__ import annotations

import hashlib

import pytest

from cranfield._errors import DownloadError
from cranfield.datasets.download import download

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def get(server, tmp_path):
    def run(path="/file", **settings):
        target = tmp_path / "file"
        download(server.address + path, target, **({"limit": 1 << 20, "what": "file"} | settings))
        return target

    server.files["/file"] = CONTENT
    return run


def _left(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir())


def test_a_file_comes_whole_and_leaves_nothing_beside_it(get, tmp_path):
    assert get().read_bytes() == CONTENT
    assert _left(tmp_path) == ["file"]


def test_a_broken_download_goes_on_where_it_stopped(get, server):
    server.cuts = [1000, 500]
    assert get().read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-", "bytes=1500-"]


def test_what_came_before_a_connection_stalled_is_kept(get, server, monkeypatch):
    monkeypatch.setattr("cranfield.datasets.download._TIMEOUT", 0.1)
    server.cuts, server.stall = [1000], 0.3
    assert get().read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-"]


def test_a_rest_that_breaks_off_is_noticed_though_the_server_does_not_tell_its_length(get, server):
    server.cuts, server.told = [1000, 500], False
    assert get().read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-", "bytes=1500-"]


def test_a_later_call_takes_up_what_an_earlier_one_left(get, server, monkeypatch):
    monkeypatch.setattr("cranfield.datasets.download._ATTEMPTS", 1)
    server.cuts = [1000]
    with pytest.raises(DownloadError, match="broke 1 times"):
        get()
    assert get().read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-"]


def test_a_file_that_changed_in_between_comes_anew(get, server, monkeypatch):
    monkeypatch.setattr("cranfield.datasets.download._ATTEMPTS", 1)
    server.cuts = [1000]
    with pytest.raises(DownloadError):
        get()
    server.files["/file"], server.etag = b"new" * 1000, '"v2"'
    assert get().read_bytes() == b"new" * 1000


def test_a_server_without_ranges_sends_the_whole_file_again(get, server):
    server.ranges = False
    server.cuts = [1000]
    assert get().read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-"]


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_a_strong_mark_of_the_version_nothing_is_resumed(get, server, etag):
    server.etag = etag
    server.cuts = [1000]
    assert get().read_bytes() == CONTENT
    assert server.asked == [None, None]


def test_a_connection_that_always_breaks_is_given_up(get, server):
    server.cuts = [10] * 5
    with pytest.raises(DownloadError, match=r"broke 5 times .50 of 10,240 bytes"):
        get()


def test_a_right_checksum_passes_and_a_wrong_one_leaves_nothing(get, tmp_path):
    get(checksum="md5:" + hashlib.md5(CONTENT).hexdigest())
    get(checksum="sha256:" + hashlib.sha256(CONTENT).hexdigest()).unlink()
    with pytest.raises(DownloadError, match=r"has the md5 checksum .* instead of 0000"):
        get(checksum="md5:" + "0" * 32)
    assert _left(tmp_path) == []


def test_a_file_larger_than_agreed_is_refused_before_it_comes(get, tmp_path):
    with pytest.raises(DownloadError, match="10,240 bytes, more than the 5,000"):
        get(limit=5000)


@pytest.mark.parametrize(("path", "code"), [("/none", 404), ("/secret", 403)])
def test_what_the_server_refuses_is_said_at_once(get, server, path, code):
    server.files["/secret"] = 403
    with pytest.raises(DownloadError, match=f"answers HTTP {code}"):
        get(path)
    assert len(server.asked) == 1


def test_a_server_in_trouble_is_asked_again(get, server):
    server.files["/busy"] = 503
    with pytest.raises(DownloadError, match=r"broke 5 times .HTTP 503"):
        get("/busy")
    assert len(server.asked) == 5


def test_a_server_that_is_not_there_is_said_to_be_out_of_reach(tmp_path):
    with pytest.raises(DownloadError, match="cannot be reached"):
        download("http://127.0.0.1:9/file", tmp_path / "file", limit=10, what="file")


@pytest.mark.parametrize("address", ["http://[::1/file", "http://127.0.0.1:9/a file"])
def test_what_is_no_address_is_said_at_once(tmp_path, address):
    with pytest.raises(DownloadError, match="is not an address"):
        download(address, tmp_path / "file", limit=10, what="file")


def test_only_the_web_is_asked(tmp_path):
    with pytest.raises(DownloadError, match="is not an http or https address"):
        download("file:///etc/hostname", tmp_path / "file", limit=10, what="file")


def test_a_server_may_lead_to_another_address_of_the_web(get, server):
    server.files["/moved"] = f"{server.address}/file"
    assert get("/moved").read_bytes() == CONTENT


@pytest.mark.parametrize("place", ["file:///etc/hostname", "ftp://127.0.0.1/file", "data:text/plain,x", "gopher://x/"])
def test_a_server_that_leads_out_of_the_web_is_not_followed(get, server, tmp_path, place):
    server.files["/moved"] = place
    with pytest.raises(DownloadError, match=r"not an http or https address|is not allowed"):
        get("/moved")
    assert not (tmp_path / "file").exists()
    assert len(server.asked) == 1


def test_what_a_server_says_does_not_command_the_terminal(get, server):
    server.files["/moved"] = "ftp://127.0.0.1/\x1b]0;owned\x07"
    with pytest.raises(DownloadError) as caught:
        get("/moved")
    assert str(caught.value).isprintable()
