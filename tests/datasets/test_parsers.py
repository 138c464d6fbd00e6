"""Every parser reads a small made-up file in the form of the real one."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import InputError, datasets
from cranfield.datasets import catalogue, fetch
from cranfield.datasets.parsers import fields, films


def _parse(name, path, content, part=None):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return catalogue()[name].parse([path])


def _rows(frame):
    return frame.sort("user", "item").rows()


def test_movielens_100k_is_tab_separated(tmp_path):
    frame = _parse("ml-100k", tmp_path / "u.data", "196\t242\t3\t881250949\n186\t302\t3\t891717742\n")
    assert _rows(frame) == [(186, 302, 3.0, 891717742), (196, 242, 3.0, 881250949)]
    assert frame.columns == ["user", "item", "rating", "time"]


@pytest.mark.parametrize("name", ["ml-1m", "ml-10m"])
def test_movielens_dat_is_separated_by_two_colons(tmp_path, name):
    frame = _parse(name, tmp_path / "ratings.dat", "1::1193::5::978300760\n1::661::3.5::978302109\n")
    assert _rows(frame) == [(1, 661, 3.5, 978302109), (1, 1193, 5.0, 978300760)]


@pytest.mark.parametrize("name", ["ml-20m", "ml-25m", "ml-32m", "ml-latest-small"])
def test_newer_movielens_is_csv_with_a_header(tmp_path, name):
    frame = _parse(name, tmp_path / "ratings.csv", "userId,movieId,rating,timestamp\n1,296,5.0,1147880044\n")
    assert _rows(frame) == [(1, 296, 5.0, 1147880044)]


def test_netflix_files_name_the_film_in_their_first_line(tmp_path):
    one, two = tmp_path / "mv_0000001.txt", tmp_path / "mv_0000002.txt"
    one.write_text("1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n")
    two.write_text("2:\n1488844,4,1970-01-02\n")
    frame = catalogue()["netflix"].parse([one, two])
    assert _rows(frame) == [(822109, 1, 5.0, 1115942400), (1488844, 1, 3.0, 1125964800), (1488844, 2, 4.0, 86400)]


def test_combined_netflix_files_hold_many_films(tmp_path):
    frame = _parse(
        "netflix", tmp_path / "combined_data_1.txt", "1:\n7,3,2005-09-06\n2:\n7,5,2005-09-06\n9,1,2005-09-06\n"
    )
    assert [(user, item, rating) for user, item, rating, _ in _rows(frame)] == [(7, 1, 3.0), (7, 2, 5.0), (9, 2, 1.0)]


def test_a_netflix_film_goes_on_over_the_border_of_a_block(tmp_path, monkeypatch):
    text = "1:\n" + "".join(f"{user},3,2005-09-06\n" for user in range(1, 50)) + "2:\n7,5,2005-09-06\n"
    whole = _parse("netflix", tmp_path / "combined_data_1.txt", text)
    monkeypatch.setattr("cranfield.datasets.parsers._BLOCK", 64)
    assert _rows(_parse("netflix", tmp_path / "combined_data_1.txt", text)) == _rows(whole)
    assert len(whole) == 50


_BX = '"User-ID";"ISBN";"Book-Rating"\r\n"276725";"034545104X";"0"\r\n"276726";"01\\"5;5061é224";"5"\r\n'


def test_book_crossing_keeps_explicit_ratings_and_odd_isbns(tmp_path):
    frame = _parse("book-crossing", tmp_path / "BX-Book-Ratings.csv", _BX.encode("latin-1"))
    assert _rows(frame) == [(276726, '01\\"5;5061é224', 5.0)]


def test_implicit_book_crossing_keeps_every_pair(tmp_path):
    frame = _parse("book-crossing-implicit", tmp_path / "BX-Book-Ratings.csv", _BX.encode("latin-1"))
    assert [(user, rating) for user, _, rating in _rows(frame)] == [(276725, 1.0), (276726, 1.0)]


def test_a_broken_line_of_book_crossing_is_named(tmp_path):
    with pytest.raises(InputError, match=r"row 3.*is not user;ISBN;rating"):
        _parse("book-crossing", tmp_path / "r.csv", '"User-ID";"ISBN";"Book-Rating"\n"1";"x";"5"\n"oh"\n')


def test_renttherunway_reads_json_lines_and_leaves_out_reviews_without_rating(tmp_path):
    lines = (
        '{"fit": "fit", "user_id": "420272", "bust size": "34d", "item_id": "2260466", "rating": "10", '
        '"review_text": "An adorable \\"romper\\"", "size": 14, "review_date": "April 20, 2016"}\n'
        '{"fit": "fit", "user_id": "1", "item_id": "2", "rating": null, "review_date": "June 18, 2013"}\n'
    )
    frame = _parse("renttherunway", tmp_path / "renttherunway_final_data.json", lines)
    assert _rows(frame) == [(420272, 2260466, 10.0, 1461110400)]


def test_beeradvocate_reads_python_dictionaries(tmp_path):
    lines = (
        "{'beer/name': 'Sausa Weizen', 'beer/beerId': '47986', 'review/time': '1234817823', "
        "'review/overall': '1.5', 'review/profileName': 'stcules', 'review/text': 'A lot of \\'foam\\'.'}\n"
        "{'beer/beerId': '1', 'review/time': '5', 'review/overall': '4', 'review/profileName': \"o'neil\"}\n"
        "{'beer/beerId': '2', 'review/time': '6', 'review/overall': '3', 'review/profileName': ''}\n"
        "{'beer/beerId': '3', 'review/time': '6', 'review/profileName': 'no rating'}\n"
    )
    frame = _parse("beeradvocate", tmp_path / "beeradvocate.json", lines)
    assert _rows(frame) == [("(no name)", "2", 3.0, 6), ("o'neil", "1", 4.0, 5), ("stcules", "47986", 1.5, 1234817823)]


@given(
    st.lists(
        st.fixed_dictionaries(
            {"review/profileName": st.text(), "beer/beerId": st.text("0123456789", min_size=1)},
            optional={
                "review/overall": st.sampled_from(["0", "1.5", "5"]),
                "review/time": st.integers(0, 10**9).map(str),
                "review/text": st.text() | st.just("'review/overall': '1' ,") | st.just("\"'review/time': '7'"),
                "beer/name": st.text() | st.just(", 'review/time': '7', 'review/text': ''"),
            },
        ),
        min_size=1,
        max_size=8,
    )
)
def test_dictionaries_are_read_as_python_reads_them(reviews):
    with tempfile.TemporaryDirectory() as folder:
        frame = _parse("beeradvocate", Path(folder) / "b.json", "".join(f"{review!r}\n" for review in reviews))
    assert frame.rows() == [
        (
            review["review/profileName"] or "(no name)",
            review["beer/beerId"],
            float(review["review/overall"]),
            int(review["review/time"]),
        )
        for review in reviews
        if "review/overall" in review and "review/time" in review
    ]


def test_a_line_that_is_no_dictionary_is_named_and_never_run(tmp_path):
    with pytest.raises(InputError, match="row 2: the line is not a Python dictionary"):
        _parse("beeradvocate", tmp_path / "b.json", "{'beer/beerId': '1'}\n{'a': __import__('os').getcwd()}\n")


def test_librarything_reviews_are_assignments_to_a_dictionary(tmp_path):
    lines = (
        "reviews = {}\n"
        "reviews[('73940', 'gwyneira')] = {'comment': 'a = {b}', 'unixtime': 1210636800, 'work': '73940', "
        "'flags': [], 'user': 'gwyneira', 'stars': 4.0, 'time': 'May 13, 2008'}\n"
        "reviews[('1', 'x')] = {'comment': 'no stars', 'unixtime': 1210636800, 'work': '1', 'user': 'x'}\n"
    )
    frame = _parse("librarything-reviews", tmp_path / "reviews.txt", lines)
    assert _rows(frame) == [("gwyneira", "73940", 4.0, 1210636800)]


def test_librarything_halves_the_rating_and_repeats_it_for_each_tag(tmp_path):
    frame = _parse("librarything", tmp_path / "UI2.txt", "1 5907 9 fantasy\n1 5907 9 to read\n2 10 7 sf\n")
    assert _rows(frame) == [("1", "5907", 4.5), ("1", "5907", 4.5), ("2", "10", 3.5)]


def test_lastfm_360k_names_an_artist_without_id(tmp_path):
    lines = 'u1\tmb-1\tbetty "blowtorch\t2137\nu1\t\tdie Ärzte\t3\nu2\t\t\t5\nu3\tmb-1\tx\t0\n'
    frame = _parse("lastfm-360k", tmp_path / "usersha1-artmbid-artname-plays.tsv", lines)
    assert _rows(frame) == [("u1", "die Ärzte", 3.0), ("u1", "mb-1", 2137.0)]


def test_lastfm_1k_counts_plays_by_artist_and_keeps_the_last_time(tmp_path):
    lines = (
        "user_000001\t2009-05-04T23:08:57Z\tmb-1\tDeep Dish\t\tFuck Me Im Famous\n"
        'user_000001\t2009-05-04T13:54:10Z\tmb-1\tDeep Dish\tt-2\tanother "one\n'
        "user_000002\t1970-01-01T00:00:10Z\t\tNo Id\t\ttrack\n"
    )
    frame = _parse("lastfm-1k", tmp_path / "userid-timestamp-artid-artname-traid-traname.tsv", lines)
    assert _rows(frame) == [("user_000001", "mb-1", 2.0, 1241478537), ("user_000002", "No Id", 1.0, 10)]


def test_lastfm_1k_temporal_counts_plays_before_and_after_most_of_them(tmp_path):
    times = [f"2009-05-0{day}T00:00:00Z" for day in (5, 1, 2, 3, 4)]
    lines = "".join(f"u{k % 2}\t{time}\tmb-1\tDeep Dish\t\ttrack\n" for k, time in enumerate(times))
    frame = _parse("lastfm-1k-temporal", tmp_path / "userid-timestamp-artid-artname-traid-traname.tsv", lines)
    assert sorted(frame.rows()) == [("u0", "mb-1", 1.0, True), ("u0", "mb-1", 2.0, False), ("u1", "mb-1", 2.0, False)]


def test_amazon_2018_has_the_item_first_and_amazon_2014_the_user(tmp_path):
    newer = _parse("amazon-gift-cards", tmp_path / "Gift_Cards.csv", "B001GXRQW0,APV13CM0919JD,1.0,1229644800\n")
    older = _parse("amazon-2014-baby", tmp_path / "ratings_Baby.csv", "A28O3NP6WR5517,0188399313,5.0,1369612800\n")
    row = newer.select("user", "item", "rating", "time").row(0)
    assert row == ("APV13CM0919JD", "B001GXRQW0", 1.0, 1229644800)
    assert older.row(0) == ("A28O3NP6WR5517", "0188399313", 5.0, 1369612800)


def test_goodbooks_is_csv_without_times(tmp_path):
    frame = _parse("goodbooks-10k", tmp_path / "ratings.csv", "user_id,book_id,rating\n1,258,5\n2,4081,4\n")
    assert _rows(frame) == [(1, 258, 5.0), (2, 4081, 4.0)]


def test_movietweetings_keeps_the_zeros_of_imdb_ids(tmp_path):
    frame = _parse("movietweetings", tmp_path / "ratings.dat", "14927::0110912::9::1375657563\n")
    assert frame.row(0) == ("14927", "0110912", 9.0, 1375657563)


def test_yahoo_r3_is_three_columns(tmp_path):
    frame = _parse("yahoo-r3", tmp_path / "train.txt", "1\t14\t5\n1\t35\t1\n")
    assert _rows(frame) == [(1, 14, 5.0), (1, 35, 1.0)]


def test_coat_is_a_matrix_with_0_for_no_rating(tmp_path):
    frame = _parse("coat", tmp_path / "train.ascii", "0 4 0\n5 0 1\n")
    assert _rows(frame) == [(0, 1, 4.0), (1, 0, 5.0), (1, 2, 1.0)]


def test_cm100k_says_what_was_known_before(tmp_path):
    frame = _parse("cm100k", tmp_path / "data.txt", "7\t3\t4\t1\n7\t5\t1\t0\n")
    assert frame.rows() == [(7, 3, 4.0, True), (7, 5, 1.0, False)]


@pytest.mark.parametrize("name", ["ml-1m", "amazon-gift-cards", "netflix", "renttherunway", "coat", "cm100k"])
def test_another_kind_of_file_is_refused_in_one_line(tmp_path, name):
    with pytest.raises(InputError) as error:
        _parse(name, tmp_path / "page.html", "<html>\n<body>Not, found, here, at, all</body>\n</html>\n")
    assert "page.html" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"<html>\n<body>sign in</body>\n</html>\n", bytes(range(256)) * 10])
@pytest.mark.parametrize("name", [name for name in catalogue() if "amazon" not in name or "books" in name])
def test_fetch_refuses_any_other_kind_of_file_in_one_line(tmp_path, name, content):
    for patterns in catalogue()[name].files.values():
        (tmp_path / patterns[0].replace("*", "1")).write_bytes(content)
    with pytest.raises(InputError) as caught:
        fetch(name, from_path=tmp_path, verify=False)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("key", "value"), [("review/overall", "good"), ("review/time", "1e99")])
def test_a_review_without_a_number_where_one_belongs_is_refused(tmp_path, key, value):
    review = {"review/profileName": "ann", "beer/beerId": "1", "review/overall": "4", "review/time": "5", key: value}
    (tmp_path / "beeradvocate.json").write_text(f"{review}\n")
    with pytest.raises(InputError, match=r"beeradvocate\.json: the file is not what this dataset holds"):
        fetch("beeradvocate", from_path=tmp_path, verify=False)


# The tables that describe users and items in the known datasets: small made-up files in the form of the real ones


def _parsed(name, about, path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return catalogue()[name].features[about][1](path)


def test_users_of_movielens_have_an_age_a_gender_and_an_occupation(tmp_path):
    old = _parsed("ml-100k", "user", tmp_path / "u.user", "1|24|M|technician|85711\n2|53|F|other|94043\n")
    assert old.rows() == [(1, 24.0, "M", "technician"), (2, 53.0, "F", "other")]
    new = _parsed("ml-1m", "user", tmp_path / "users.dat", "1::F::1::10::48067\n2::M::56::16::70072\n")
    assert new.rows() == [(1, "F", 1.0, "10"), (2, "M", 56.0, "16")]


def test_films_have_their_genres_as_flags(tmp_path):
    flags = "|".join(str(int(place in (1, 5))) for place in range(19))
    old = _parsed("ml-100k", "item", tmp_path / "u.item", f"1|Caf\xe9 (1995)|01-Jan||http|{flags}\n".encode("latin-1"))
    assert old.select("item", "Action", "Comedy", "Drama").rows() == [(1, 1, 1, 0)]
    dat = _parsed("ml-1m", "item", tmp_path / "movies.dat", "1::Toy: Story (1995)::Comedy|Drama\n2::X::Drama\n")
    assert dat.rows(named=True) == [{"item": 1, "Comedy": 1, "Drama": 1}, {"item": 2, "Comedy": 0, "Drama": 1}]
    csv = 'movieId,title,genres\n7,"A, B",(no genres listed)\n8,C,War\n'
    assert _parsed("ml-25m", "item", tmp_path / "movies.csv", csv).rows() == [(7, 0), (8, 1)]


def test_book_crossing_keeps_plausible_ages_and_the_country(tmp_path):
    text = '"User-ID";"Location";"Age"\n"1";"york; x, usa";NULL\n"2";"rome, , italy";"18"\n"3";"a, b, ";"244"\n'
    frame = _parsed("book-crossing", "user", tmp_path / "BX-Users.csv", text)
    assert frame.rows() == [(1, None, "usa"), (2, 18.0, "italy"), (3, None, None)]


def test_lastfm_profiles_may_have_gaps(tmp_path):
    text = "#id\tgender\tage\tcountry\tregistered\nu1\tm\t\tJapan\tx\nu2\t\t30\t\tx\n"
    assert _parsed("lastfm-1k", "user", tmp_path / "userid-profile.tsv", text).rows() == [
        ("u1", "m", None, "Japan"),
        ("u2", None, 30.0, None),
    ]


def test_renttherunway_takes_measures_from_reviews(tmp_path):
    reviews = [
        {"user_id": "5", "item_id": "9", "height": "5' 8\"", "age": "28", "category": "gown"},
        {"user_id": "5", "item_id": "7", "weight": "137lbs", "age": "29", "body type": "pear"},
    ]
    text = "\n".join(map(json.dumps, reviews))
    users = _parsed("renttherunway", "user", tmp_path / "r.json", text)
    assert users.rows() == [(5, 28.0, 68.0, 137.0, "pear", None)]
    assert _parsed("renttherunway", "item", tmp_path / "r.json", text).rows() == [(9, "gown"), (7, None)]


def test_coat_numbers_its_features(tmp_path):
    frame = _parsed("coat", "user", tmp_path / "user_features.ascii", "0 1\n1 0\n")
    assert frame.rows() == [(0, 0.0, 1.0), (1, 1.0, 0.0)]


@pytest.mark.parametrize("name", [name for name, entry in catalogue().items() if entry.features])
def test_a_file_that_is_something_else_is_refused_in_one_line(tmp_path, name):
    for about in catalogue()[name].features:
        with pytest.raises(InputError) as refused:
            _parsed(name, about, tmp_path / "x.dat", "not at all\n\x01 what is expected\n")
        assert "\n" not in str(refused.value)


def test_features_come_with_the_ratings_from_the_archive_and_from_the_cache(tiny, make_zip, ratings_text, cache):
    import polars as pl

    content = make_zip({"tiny/ratings.dat": ratings_text, "tiny/movies.dat": "10::A::War\n20::B::Drama\n"})
    about = {"item": ("movies.dat", films), "user": ("users.dat", fields("::", {"user": (0, pl.Int64)}))}
    entry = tiny(content, features=about)
    for _ in range(2):
        ratings = datasets.load(entry)
        assert ratings.item_features.rows(ratings.item_ids).rows() == [(0.0, 1.0), (1.0, 0.0)]
        assert ratings.user_features is None


def test_a_damaged_table_of_features_is_made_anew(tiny, make_zip, ratings_text, cache):
    content = make_zip({"tiny/ratings.dat": ratings_text, "tiny/movies.dat": "10::A::War\n20::B::Drama\n"})
    entry = tiny(content, features={"item": ("movies.dat", films)})
    datasets.load(entry)
    next(cache.rglob("item_features.parquet")).write_bytes(b"damaged")
    assert datasets.load(entry).item_features is not None
