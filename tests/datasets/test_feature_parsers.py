"""The tables that describe users and items in the known datasets: small made-up files in the form of the real ones."""

from __future__ import annotations

import json

import pytest

from cranfield import InputError, datasets
from cranfield.datasets import catalogue
from cranfield.datasets.feature_parsers import fields, films


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
