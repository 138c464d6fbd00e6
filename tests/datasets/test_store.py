"""Fetching checks and caches; loading comes from the cache, which fixes itself."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import lzma
import tarfile
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

import cranfield as cf
import cranfield.datasets as datasets
from cranfield import CranfieldError, InputError, SettingError
from cranfield._errors import DownloadError
from cranfield.datasets import Counts, catalogue, fetch, load, load_pair
from cranfield.datasets.parsers import ascii_matrix, delimited

ROWS = [(1, 10, 5.0, 100), (1, 20, 3.0, 200), (2, 10, 4.0, 300)]


def _rows(ratings):
    return ratings.frame().rows()


def test_a_dataset_is_downloaded_checked_and_parsed(tiny, cache):
    there = fetch(tiny())
    assert there.folder == cache / "tiny"
    assert there.parts["all"].counts == Counts(2, 2, 3)
    assert _rows(load(tiny())) == ROWS


def test_the_record_of_loaded_ratings_names_the_dataset(tiny):
    ratings = load(tiny())
    assert ratings.name == "tiny"
    assert ratings.history[0].action == "dataset"
    assert ratings.history[0].settings["citation"] == "Nobody (2020)"


def test_a_second_load_asks_nobody_and_parses_nothing(tiny, server):
    load(tiny())
    server.files.clear()

    def never(_):
        raise AssertionError("parsed again")

    assert _rows(load(tiny(parse=never))) == ROWS
    assert len(server.asked) == 1


def test_nothing_but_the_dataset_is_left_in_its_folder(tiny, cache):
    fetch(tiny())
    assert sorted(path.name for path in (cache / "tiny").iterdir()) == [
        ".lock",
        "ratings.parquet",
        "record.json",
        "tiny.zip",
    ]


def test_force_fetches_again(tiny, server):
    load(tiny())
    load(tiny(), force=True)
    assert len(server.asked) == 2


def test_a_broken_download_is_resumed(tiny, server):
    dataset = tiny()
    server.cuts = [50, 20]
    assert _rows(load(dataset)) == ROWS
    assert server.asked == [None, "bytes=50-", "bytes=70-"]


def test_a_checksum_is_compared(tiny, server):
    dataset = tiny()
    right = hashlib.md5(server.files["/tiny.zip"]).hexdigest()
    assert len(load(tiny(checksum=f"md5:{right}"))) == 3
    with pytest.raises(DownloadError, match=r"tiny could not be fetched: .* checksum"):
        load(tiny(checksum="md5:" + "0" * 32), force=True)
    assert _rows(load(dataset)) == ROWS, "a failed fetch leaves what was there"


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (Counts(users=3), "holds 2 users instead of 3"),
        (Counts(items=5), "holds 2 items instead of 5"),
        (Counts(ratings=4), "holds 3 ratings instead of 4"),
        (Counts(rows=4), "holds 3 rows instead of 4"),
    ],
)
def test_other_counts_than_expected_are_an_error_and_nothing_is_kept(tiny, cache, counts, message):
    with pytest.raises(DownloadError, match=message):
        fetch(tiny(counts=counts))
    assert [path.name for path in (cache / "tiny").iterdir()] == [".lock"]


def test_counts_are_not_compared_where_told_so_or_where_data_grow(tiny):
    assert len(load(tiny(counts=Counts(9, 9, 9), tolerance=None))) == 3
    assert len(load(tiny(counts=Counts(9, 9, 9)), verify=False, force=True)) == 3
    assert len(load(tiny(counts=Counts(ratings=4), tolerance=0.25), force=True)) == 3


@pytest.mark.parametrize("name", ["../evil", "/evil"])
def test_a_malicious_archive_is_refused_and_not_kept(tiny, make_zip, cache, tmp_path, name):
    with pytest.raises(InputError, match="refused"):
        fetch(tiny(make_zip({name: "x", "tiny/ratings.dat": "1::1::1::1\n"})))
    assert not list(tmp_path.rglob("evil"))
    assert [path.name for path in (cache / "tiny").iterdir()] == [".lock"]


def test_an_oversized_download_and_an_oversized_archive_are_refused(tiny, make_zip):
    with pytest.raises(DownloadError, match="more than the 100 that were expected"):
        fetch(tiny(limit=100))
    with pytest.raises(InputError, match="unpacks to more than the 5,000 bytes"):
        fetch(tiny(make_zip({"ratings.dat": "0" * 1_000_000}), limit=5000))


def test_the_users_limit_of_unpacking_holds_for_archives_of_known_datasets(tiny, make_zip):
    archive = make_zip({"ratings.dat": "".join(f"{user}::1::1::1\n" for user in range(1000))})
    cf.settings.unpack_limit = 100
    with pytest.raises(InputError, match=r"more than the 100 bytes .*unpack_limit"):
        fetch(tiny(archive))
    cf.settings.unpack_limit = 13_000
    assert fetch(tiny(archive, limit=5000), verify=False)


def test_without_network_the_page_and_the_line_to_type_are_named(make_entry):
    dataset = make_entry(address="http://127.0.0.1:9/tiny.zip")
    with pytest.raises(DownloadError) as error:
        load(dataset)
    text = str(error.value)
    assert "get it from https://example.org/tiny and run: cranfield data fetch tiny --from tiny.zip" in text
    assert "\n" not in text


@pytest.mark.parametrize("name", ["netflix", "yahoo-r3", "librarything"])
def test_what_needs_a_person_says_so(name):
    with pytest.raises(DownloadError, match=f"consent.*cranfield data fetch {name} --from PATH"):
        load(name)


def test_a_missing_page_is_said(tiny, server):
    dataset = tiny()
    server.files.clear()
    with pytest.raises(DownloadError, match=r"HTTP 404.*--from tiny.zip"):
        load(dataset)


@pytest.mark.parametrize("damage", ["cut", "flip", "gone", "record"])
def test_a_damaged_cache_is_noticed_and_made_again_without_a_download(tiny, cache, server, damage):
    fetch(tiny())
    path = cache / "tiny" / "ratings.parquet"
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[:-10])
    elif damage == "flip":
        path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    elif damage == "gone":
        path.unlink()
    else:
        (cache / "tiny" / "record.json").write_text("{")
    assert _rows(load(tiny())) == ROWS
    assert path.read_bytes() == content
    assert len(server.asked) == 1


def test_a_damaged_download_in_the_cache_comes_again(tiny, cache, server):
    fetch(tiny())
    (cache / "tiny" / "ratings.parquet").unlink()
    (cache / "tiny" / "tiny.zip").write_bytes(b"PK nonsense")
    assert _rows(load(tiny())) == ROWS
    assert len(server.asked) == 2


def test_an_entry_that_has_changed_is_parsed_anew(tiny):
    assert _rows(load(tiny(repeated="last"))) == ROWS
    parse = delimited("::", ("item", "user", "rating", "time"))
    assert _rows(load(tiny(repeated="first", parse=parse)))[0] == (10, 1, 5.0, 100)


def test_concurrent_fetches_download_once_and_agree(tiny, server):
    dataset, found = tiny(), []
    threads = [threading.Thread(target=lambda: found.append(_rows(load(dataset)))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [ROWS] * 6
    assert len(server.asked) == 1


def _make_sources(folder, make_zip, text):
    folder.mkdir()
    (folder / "plain").mkdir()
    (folder / "plain" / "ratings.dat").write_text(text)
    (folder / "deep" / "ml" / "x").mkdir(parents=True)
    (folder / "deep" / "ml" / "ratings.dat").write_text(text)
    (folder / "deep" / "ml" / "x" / "ratings.dat").write_text("a sample, deeper down")
    (folder / "file.txt").write_text(text)
    (folder / "any.zip").write_bytes(make_zip({"ratings.dat": text}))
    (folder / "file.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "packed").mkdir()
    (folder / "packed" / "ratings.dat.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "packed-xz").mkdir()
    (folder / "packed-xz" / "ratings.dat.xz").write_bytes(lzma.compress(text.encode()))
    (folder / "archive").mkdir()
    (folder / "archive" / "tiny.zip").write_bytes(make_zip({"t/ratings.dat": text}))
    with tarfile.open(folder / "x.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("tiny/ratings.dat")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text.encode()))
    return folder


@pytest.mark.parametrize(
    "source",
    [
        "plain",
        "deep",
        "file.txt",
        "any.zip",
        "file.gz",
        "packed",
        "packed-xz",
        "archive",
        "x.tar.gz",
        "plain/ratings.dat",
    ],
)
def test_from_takes_a_file_an_archive_or_a_folder(make_entry, make_zip, ratings_text, tmp_path, source):
    folder = _make_sources(tmp_path / "mine", make_zip, ratings_text)
    dataset = make_entry(address="http://127.0.0.1:9/tiny.zip")
    assert _rows(load(dataset, from_path=folder / source)) == ROWS
    assert _rows(load(dataset)) == ROWS, "it is in the cache now"


def test_what_came_from_disk_is_made_again_from_there(make_entry, ratings_text, tmp_path, cache):
    mine = tmp_path / "mine.txt"
    mine.write_text(ratings_text)
    dataset = make_entry()
    load(dataset, from_path=mine)
    (cache / "tiny" / "ratings.parquet").write_bytes(b"damaged")
    assert _rows(load(dataset)) == ROWS
    (cache / "tiny" / "ratings.parquet").write_bytes(b"damaged")
    mine.unlink()
    with pytest.raises(DownloadError, match=r"damaged, and .*mine.txt, where they came from, no longer exists"):
        load(dataset)


def test_from_a_wrong_place_is_said(make_entry, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="there is no such file or folder"):
        load(make_entry(), from_path=tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"it holds no file of tiny \(ratings.dat\)"):
        load(make_entry(), from_path=tmp_path / "empty")


@pytest.fixture
def pair(make_entry, make_zip, tmp_path):
    """A dataset in two parts, of which the test part has a user and an item that the training part lacks."""
    (tmp_path / "pair.zip").write_bytes(
        make_zip({"c/train.ascii": "5 0 1\n0 2 0\n", "c/test.ascii": "0 3 0 4\n0 0 0 0\n1 0 0 0\n"})
    )
    return make_entry(
        parse=ascii_matrix,
        files={"train": ("train.ascii",), "test": ("test.ascii",)},
        counts=Counts(2, 3, 3),
        test_counts=Counts(2, 3, 3),
    ), tmp_path / "pair.zip"


def test_published_parts_share_their_vocabularies(pair):
    dataset, path = pair
    train, test = load_pair(dataset, from_path=path)
    assert train.user_ids == test.user_ids
    assert train.item_ids == test.item_ids
    assert train.frame().rows() == [(0, 0, 5.0), (0, 2, 1.0), (1, 1, 2.0)]
    assert test.frame().rows() == [(0, 1, 3.0), (0, 3, 4.0), (2, 0, 1.0)]
    assert np.array_equal(load(dataset).items, train.items)
    assert load(dataset, part="test").fingerprint == test.fingerprint


def test_the_counts_of_the_test_part_are_checked_too(pair):
    dataset, path = pair
    wrong = type(dataset)(**{**vars(dataset), "test_counts": Counts(ratings=4)})
    with pytest.raises(DownloadError, match="3 ratings in its test part instead of 4"):
        load(wrong, from_path=path)


def test_parts_that_are_not_there_are_said(pair, make_entry):
    dataset, path = pair
    with pytest.raises(SettingError, match="no part 'valid' of tiny: it is published in the parts train and test"):
        load(dataset, part="valid", from_path=path)
    with pytest.raises(SettingError, match="published in no parts"):
        load(make_entry(), part="test")
    with pytest.raises(SettingError, match="split it instead"):
        load_pair("ml-1m")
    (path.parent / "train.ascii").write_text("1 0\n")
    with pytest.raises(InputError, match="consists of several files"):
        load(dataset, from_path=path.parent / "train.ascii")


def test_repeated_pairs_follow_the_policy_of_the_entry(make_entry, tmp_path):
    (tmp_path / "r.dat").write_text("1::10::5::100\n1::10::3::200\n")
    counts = Counts(1, 1, 1, rows=2)
    assert load(make_entry(repeated="last", counts=counts), from_path=tmp_path / "r.dat").values.tolist() == [3.0]
    assert load(make_entry(repeated="sum", counts=counts), from_path=tmp_path / "r.dat").values.tolist() == [8.0]
    with pytest.raises(InputError):
        load(make_entry(counts=counts), from_path=tmp_path / "r.dat")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1::20", "column 'rating': rating 4 of it cannot be used: the rating is missing"),
        ("::20::3::4", "column 'user': rating 4 of it cannot be used: the user is missing"),
        ("1::20::NaN::4", "column 'rating': rating 4 of it cannot be used: nan is not a finite number"),
        ("1::10::3::4", "rating 4 of it cannot be used: user 1 rates item 10 more than once"),
    ],
)
def test_a_rating_that_cannot_be_used_is_named_with_the_file(make_entry, ratings_text, tmp_path, row, said):
    (tmp_path / "r.dat").write_text(ratings_text + row + "\n")
    with pytest.raises(
        InputError, match=rf"r\.dat(: |, ){said}.*check that it is what https://example.org/tiny offers"
    ):
        load(make_entry(), from_path=tmp_path / "r.dat")


def test_a_file_that_cannot_be_read_is_named_and_not_the_cache(make_entry, tmp_path, monkeypatch):
    def forbidden(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    (tmp_path / "r.dat").touch()
    monkeypatch.setattr("cranfield.datasets.store.is_archive", forbidden)
    with pytest.raises(InputError, match=r"r\.dat: it cannot be read \(Permission denied\); check its permissions"):
        load(make_entry(), from_path=tmp_path / "r.dat")


def test_what_others_would_unpack_without_a_limit_is_refused(make_entry, make_zip, tmp_path):
    bomb = zlib.compress(b"1\t2\t3\n" * 1_000_000)
    (tmp_path / "r.tsv").write_bytes(bomb)
    (tmp_path / "r.zip").write_bytes(make_zip({"ratings.dat": bomb}))
    dataset = make_entry(parse=delimited("\t", ("user", "item", "rating")), repeated="last", counts=Counts())
    for name in ("r.tsv", "r.zip"):
        with pytest.raises(InputError, match="compressed with Zstandard or zlib, which is not known here; unpack it"):
            load(dataset, from_path=tmp_path / name)


def test_an_empty_file_is_named(make_entry, tmp_path):
    (tmp_path / "r.dat").touch()
    with pytest.raises(InputError, match=r"r\.dat: the file is empty; download it again"):
        load(make_entry(), from_path=tmp_path / "r.dat")


def test_what_went_wrong_is_told_in_one_line(make_entry):
    assert "\n" not in str(make_entry().failed("one\ntwo"))


def test_a_cache_that_cannot_be_written_is_said(tiny, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CRANFIELD_CACHE", str(tmp_path / "file"))
    with pytest.raises(CranfieldError, match="set CRANFIELD_CACHE to another folder"):
        load(tiny())


def test_the_cache_folder_follows_the_customs(monkeypatch, tmp_path):
    assert datasets.cache_folder() == tmp_path / "cache" / "datasets"
    monkeypatch.delenv("CRANFIELD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert datasets.cache_folder() == tmp_path / "xdg" / "cranfield" / "datasets"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("sys.platform", "linux")
    assert datasets.cache_folder().parts[-3:] == (".cache", "cranfield", "datasets")
    monkeypatch.setattr("sys.platform", "darwin")
    assert datasets.cache_folder().parts[-4:] == ("Library", "Caches", "cranfield", "datasets")


def test_the_catalogue_is_complete_and_consistent():
    asked = "ml-100k ml-1m ml-10m ml-25m ml-32m ml-latest-small netflix librarything beeradvocate lastfm-1k lastfm-360k"
    asked += " book-crossing renttherunway amazon-books goodbooks-10k movietweetings yahoo-r3 coat"
    assert set(asked.split()) <= set(catalogue())
    for name, one in catalogue().items():
        assert name == one.name
        assert one.home.startswith("http")
        assert one.licence
        assert one.citation
        assert one.title
        assert any(count is not None for count in (one.counts.users, one.counts.ratings, one.counts.rows))
        assert one.address is None or one.address.startswith(("https://", "http://www2."))
        assert one.address is not None or one.note
        assert one.repeated in ("error", "first", "last", "mean", "max", "sum")
        assert (one.test_counts is None) == (one.parts == ("all",))


def test_real_renttherunway_counts_are_those_of_the_catalogue(real_data):
    from cranfield.data import read

    path = real_data("renttherunway.parquet")
    ratings = read(path, time="timestamp", repeated="last")
    counts = catalogue()["renttherunway"].counts
    assert (ratings.n_users, ratings.n_items, len(ratings)) == (counts.users, counts.items, counts.ratings)


def test_real_coat_in_its_own_format_loads_as_published(real_data, make_zip, tmp_path):
    import polars as pl

    frame = pl.read_parquet(real_data("coat.parquet"))
    files = {}
    for (part,), rows in frame.group_by("split"):
        matrix = np.zeros((290, 300), dtype=int)
        matrix[rows["user"], rows["item"]] = rows["rating"]
        files[f"coat/{part}.ascii"] = "\n".join(" ".join(map(str, row)) for row in matrix)
    (tmp_path / "coat.zip").write_bytes(make_zip(files))
    train, test = load_pair("coat", from_path=tmp_path / "coat.zip")
    assert (len(train), len(test)) == (6960, 4640)
    assert (train.n_users, train.n_items) == (290, 300)


@pytest.mark.parametrize("ending", ["txt", "parquet"])
def test_one_file_with_both_parts_of_cm100k_gives_what_was_known_and_all_that_was_rated(tmp_path, ending):
    import polars as pl

    rows = pl.DataFrame({"user": [1, 1, 2], "item": [5, 6, 5], "rating": [4, 1, 3], "known": [1, 0, 0]})
    path = tmp_path / f"mine.{ending}"
    if ending == "txt":
        rows.write_csv(path, separator="\t", include_header=False)
    else:
        rows.with_columns(pl.col("known").cast(pl.Boolean)).write_parquet(path)
    known, judged = load_pair("cm100k", from_path=path, verify=False)
    assert known.frame().rows() == [(1, 5, 4.0)]
    assert judged.frame().rows() == [(1, 5, 4.0), (1, 6, 1.0), (2, 5, 3.0)]
    assert known.user_ids is judged.user_ids


def test_a_parquet_file_without_the_column_known_is_not_cm100k(tmp_path):
    import polars as pl

    pl.DataFrame({"user": [1], "item": [5], "rating": [4]}).write_parquet(tmp_path / "mine.parquet")
    with pytest.raises(InputError, match="it has no column known"):
        load_pair("cm100k", from_path=tmp_path / "mine.parquet", verify=False)


def test_real_cm100k_loads_as_published(real_data):
    known, judged = load_pair("cm100k", from_path=real_data("cm100k.parquet"))
    assert (len(known), len(judged)) == (11_594, 103_584)
    assert (judged.n_users, judged.n_items) == (1054, 1084)


def test_real_movielens_1m_in_its_own_format_loads_as_published(real_data, tmp_path):
    import polars as pl

    frame = pl.read_parquet(real_data("ml-1m.parquet")).select("user", "item", "rating", time=pl.lit(978300760))
    text = frame.write_csv(include_header=False, separator=":").replace(":", "::")
    (tmp_path / "ratings.dat").write_text(text)
    ratings = load("ml-1m", from_path=tmp_path)
    assert (ratings.n_users, ratings.n_items, len(ratings)) == (6040, 3706, 1_000_209)


def test_the_page_on_datasets_tells_what_the_catalogue_holds():
    page = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    for name, one in catalogue().items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        counts = (one.counts.users, one.counts.items, one.counts.ratings)
        assert " | ".join("?" if count is None else f"{count:,}" for count in counts) in row
        assert name.startswith("amazon-") or (one.home in row and one.licence in row and one.citation in page)


@pytest.mark.parametrize("name", ["d[1]", "d?", "d*", "{d,e}", "~", "#1 d", "d\ne"])
@pytest.mark.parametrize(
    ("dataset", "file", "row"),
    [
        ("ml-100k", "u.data", "{}\t10\t4\t881250949\n"),
        (
            "renttherunway",
            "renttherunway_final_data.json",
            '{{"user_id": "{}", "item_id": "10", "rating": "4", "review_date": "April 20, 2016"}}\n',
        ),
    ],
)
def test_folders_and_caches_of_any_name_are_read(tmp_path, monkeypatch, name, dataset, file, row):
    monkeypatch.chdir(tmp_path)
    for user, home in ((1, "d1"), (2, "d"), (3, name)):
        (tmp_path / home).mkdir()
        (tmp_path / home / file).write_text(row.format(user))
        monkeypatch.setenv("CRANFIELD_CACHE", str(tmp_path / home))
        loaded = load(dataset, from_path=Path(home), verify=False)
        assert loaded.user_ids.all.to_list() == [user]
        assert load(dataset).user_ids.all.to_list() == [user]
