"""The known datasets, one entry each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import polars as pl

from cranfield._errors import SettingError, suggestion
from cranfield.data import About
from cranfield.datasets import feature_parsers, parsers
from cranfield.datasets.amazon import amazon
from cranfield.datasets.entry import Counts, Dataset, FeaturesParser

_GROUPLENS = "https://files.grouplens.org/datasets/movielens/"
_MOVIELENS_LICENCE = "GroupLens: research, no redistribution, no commercial use"
_MOVIELENS_PAPER = "Harper and Konstan (2015), The MovieLens datasets: history and context, ACM TiiS 5(4)"
_UCSD = "https://mcauleylab.ucsd.edu/public_datasets/data/"
_UCSD_HOME = "https://cseweb.ucsd.edu/~jmcauley/datasets.html"
_FOUR = ("user", "item", "rating", "time")


def _movielens() -> list[Dataset]:
    tabs = parsers.delimited("\t", _FOUR)
    colons = parsers.delimited("::", _FOUR)
    commas = parsers.delimited(",", _FOUR, header=True)
    half = "0.5 to 5"
    # The checksums are those that GroupLens publishes next to its archives.
    rows = (
        ("100k", (943, 1682, 100_000), tabs, "u.data", "1 to 5", "0e33842e24a9c977be4e0107933c0723"),
        ("1m", (6040, 3706, 1_000_209), colons, "ratings.dat", "1 to 5", "c4d9eecfca2ab87c1945afe126590906"),
        ("10m", (69_878, 10_677, 10_000_054), colons, "ratings.dat", half, "ce571fd55effeba0271552578f2648bd"),
        ("20m", (138_493, 26_744, 20_000_263), commas, "ratings.csv", half, "cd245b17a1ae2cc31bb14903e1204af3"),
        ("25m", (162_541, 59_047, 25_000_095), commas, "ratings.csv", half, "6b51fb2759a8657d3bfcbfc42b592ada"),
        ("32m", (200_948, 84_432, 32_000_204), commas, "ratings.csv", half, "d472be332d4daa821edc399621853b57"),
        ("latest-small", (610, 9724, 100_836), commas, "ratings.csv", half, None),
    )
    users_100k = {"user": (0, pl.Int64), "age": (1, pl.Float64), "gender": (2, pl.String), "occupation": (3, pl.String)}
    users_1m = {"user": (0, pl.Int64), "gender": (1, pl.String), "age": (2, pl.Float64), "occupation": (3, pl.String)}
    features: dict[str, dict[About, tuple[str, FeaturesParser]]] = {
        "100k": {
            "user": ("u.user", feature_parsers.fields("|", users_100k)),
            "item": ("u.item", feature_parsers.films_100k),
        },
        "1m": {
            "user": ("users.dat", feature_parsers.fields("::", users_1m)),
            "item": ("movies.dat", feature_parsers.films),
        },
        "10m": {"item": ("movies.dat", feature_parsers.films)},
    }
    return [
        Dataset(
            name=f"ml-{size}",
            title=f"MovieLens {size if 'latest' in size else size.upper()}: stars of films",
            home=f"https://grouplens.org/datasets/movielens/{size.removesuffix('-small')}/",
            licence=_MOVIELENS_LICENCE,
            citation=_MOVIELENS_PAPER,
            counts=Counts(*counts),
            parse=parse,
            files={"all": (file,)},
            address=f"{_GROUPLENS}ml-{size}.zip",
            checksum=None if md5 is None else f"md5:{md5}",
            scale=scale,
            times=True,
            # GroupLens updates "latest" from time to time: these are the counts of September 2018.
            tolerance=None if md5 is None else 0.0,
            features=features.get(size, {"item": ("movies.csv", feature_parsers.films)}),
        )
        for size, counts, parse, file, scale, md5 in rows
    ]


def _films() -> list[Dataset]:
    return [
        Dataset(
            name="netflix",
            title="Netflix Prize: stars of films, 1998 to 2005 (the training set)",
            home="https://www.kaggle.com/datasets/netflix-inc/netflix-prize-data",
            licence="Netflix Prize rules: research, no redistribution",
            citation="Bennett and Lanning (2007), The Netflix Prize, KDD Cup and Workshop",
            counts=Counts(480_189, 17_770, 100_480_507),
            parse=parsers.netflix,
            files={"all": ("mv_*.txt", "combined_data_*.txt")},
            nested=("training_set.tar",),
            times=True,
            note="Netflix has withdrawn it; a copy needs a Kaggle account. Both forms of it are read: the mv_*.txt "
            "files of nf_prize_dataset.tar.gz and combined_data_*.txt.",
        ),
        Dataset(
            name="movietweetings",
            title="MovieTweetings: ratings of films, from tweets",
            home="https://github.com/sidooms/MovieTweetings",
            licence="MIT",
            citation="Dooms, De Pessemier and Martens (2013), MovieTweetings: a movie rating dataset collected from "
            "Twitter, CrowdRec at RecSys",
            counts=Counts(71_707, 38_018, 921_398),
            parse=parsers.delimited("::", _FOUR, text_ids=True),
            files={"all": ("ratings.dat",)},
            address="https://raw.githubusercontent.com/sidooms/MovieTweetings/master/latest/ratings.dat",
            repeated="last",
            scale="0 to 10",
            times=True,
            tolerance=None,
            note="It has grown from day to day; the counts are those of its last large revision.",
        ),
    ]


def _books() -> list[Dataset]:
    book_crossing = {
        "home": "https://grouplens.org/datasets/book-crossing/",
        "licence": "free for research, with the citation",
        "citation": "Ziegler, McNee, Konstan and Lausen (2005), Improving recommendation lists through topic "
        "diversification, WWW",
        "files": {"all": ("BX-Book-Ratings.csv", "Ratings.csv")},
        "address": "http://www2.informatik.uni-freiburg.de/~cziegler/BX/BX-CSV-Dump.zip",
        "repeated": "last",
        "note": "The original server is often unavailable; any copy of BX-CSV-Dump.zip will do.",
    }
    return [
        Dataset(
            name="book-crossing",
            title="Book-Crossing: ratings of books (the explicit ones)",
            counts=Counts(77_805, 185_973, 433_671),
            parse=parsers.book_crossing,
            scale="1 to 10",
            features={"user": ("*Users.csv", feature_parsers.book_crossing_users)},
            # Published counts differ by a handful, depending on how an ISBN with stray characters is read.
            tolerance=0.0001,
            **book_crossing,  # type: ignore[arg-type]
        ),
        Dataset(
            name="book-crossing-implicit",
            title="Book-Crossing: every book that a user has touched",
            counts=Counts(105_283, 340_556, 1_149_780),
            parse=parsers.book_crossing_implicit,
            scale="1 (implicit)",
            tolerance=0.0001,
            **book_crossing,  # type: ignore[arg-type]
        ),
        Dataset(
            name="goodbooks-10k",
            title="Goodbooks-10k: stars of the ten thousand most rated books of Goodreads",
            home="https://github.com/zygmuntz/goodbooks-10k",
            licence="CC BY-SA 4.0",
            citation="Zajac (2017), Goodbooks-10k: a new dataset for book recommendations, FastML",
            counts=Counts(53_424, 10_000, 5_976_479),
            parse=parsers.delimited(",", ("user", "item", "rating"), header=True),
            files={"all": ("ratings.csv",)},
            address="https://raw.githubusercontent.com/zygmuntz/goodbooks-10k/master/ratings.csv",
        ),
        Dataset(
            name="librarything",
            title="LibraryThing: ratings of books, with tags (the data of the papers on ranking metrics)",
            home="http://www.macle.nl/tud/LT/",
            licence="for research; no licence is stated",
            citation="Clements, de Vries and Reinders (2008), Optimizing single term queries using a personalized "
            "Markov random walk over the social graph, ESAIR",
            counts=Counts(7279, 37_232, 749_401, rows=2_056_487),
            parse=parsers.librarything,
            files={"all": ("UI2.txt",)},
            repeated="last",
            scale="0.5 to 5",
            note="Its page no longer exists; ask its authors, or those of a paper that uses it, for UI2.txt.",
        ),
        Dataset(
            name="librarything-reviews",
            title="LibraryThing: stars of books, from reviews",
            home=f"{_UCSD_HOME}#social_data",
            licence="for research; no licence is stated",
            citation="Cai, He and McAuley (2017), SPMC: socially-aware personalized Markov chains for sparse "
            "sequential recommendation, IJCAI",
            counts=Counts(70_618, 385_251, 1_387_125),
            parse=parsers.librarything_reviews,
            files={"all": ("reviews.txt",)},
            address=f"{_UCSD}librarything/lthing_data.tar.gz",
            repeated="last",
            scale="0.5 to 5",
            times=True,
            tolerance=0.01,
        ),
    ]


def _music() -> list[Dataset]:
    zenodo = "https://zenodo.org/records/6090214"
    licence = "non-commercial use, by permission of Last.fm"
    citation = "Celma (2010), Music recommendation and discovery in the long tail, Springer"
    listeners = {"user": (0, pl.String), "gender": (1, pl.String), "age": (2, pl.Float64), "country": (3, pl.String)}
    return [
        Dataset(
            name="lastfm-1k",
            title="Last.fm 1K: plays counted by artist",
            home=zenodo,
            licence=licence,
            citation=citation,
            counts=Counts(992, 176_948),
            parse=parsers.lastfm_1k,
            files={"all": ("userid-timestamp-artid-artname-traid-traname.tsv",)},
            address=f"{zenodo}/files/lastfm-dataset-1K.tar.gz",
            repeated="sum",
            scale="play counts",
            times=True,
            # The authors count artists with and without an id; a few names are both.
            tolerance=0.001,
            features={"user": ("userid-profile.tsv", feature_parsers.fields("\t", listeners, skip=1))},
            note="19,150,868 plays; the time of a count is that of the last play.",
        ),
        Dataset(
            name="lastfm-1k-temporal",
            title="Last.fm 1K: plays counted by artist, the first 80 % of all plays and the others",
            home=zenodo,
            licence=licence,
            citation=citation,
            counts=Counts(992),
            test_counts=Counts(992),
            parse=parsers.lastfm_1k_temporal,
            files=dict.fromkeys(("train", "test"), ("userid-timestamp-artid-artname-traid-traname.tsv",)),
            rows={"train": ~pl.col("late"), "test": pl.col("late")},
            address=f"{zenodo}/files/lastfm-dataset-1K.tar.gz",
            repeated="sum",
            scale="play counts",
            # Not every user has plays before the moment of the split.
            tolerance=0.2,
            note="The temporal split of Bellogín et al. (2017); an artist can be in both parts.",
        ),
        Dataset(
            name="lastfm-360k",
            title="Last.fm 360K: plays of each user's top artists",
            home=zenodo,
            licence=licence,
            citation=citation,
            counts=Counts(359_347, rows=17_559_530),
            parse=parsers.lastfm_360k,
            files={"all": ("usersha1-artmbid-artname-plays.tsv",)},
            address=f"{zenodo}/files/lastfm-dataset-360K.tar.gz",
            repeated="sum",
            scale="play counts",
            # A few rows have no artist or no plays.
            tolerance=0.01,
            features={"user": ("usersha1-profile.tsv", feature_parsers.fields("\t", listeners))},
        ),
        Dataset(
            name="yahoo-r3",
            title="Yahoo! Music R3: ratings of songs, with a test part of songs drawn at random",
            home="https://webscope.sandbox.yahoo.com/catalog.php?datatype=r",
            licence="Yahoo Webscope: academic, by request, no redistribution",
            citation="Marlin and Zemel (2009), Collaborative prediction and ranking with non-random missing data, "
            "RecSys",
            counts=Counts(15_400, 1000, 311_704),
            test_counts=Counts(5400, 1000, 54_000),
            parse=parsers.delimited("\t", ("user", "item", "rating")),
            files={
                "train": ("ydata-ymusic-rating-study-v1_0-train.txt", "train.txt", "user.txt"),
                "test": ("ydata-ymusic-rating-study-v1_0-test.txt", "test.txt", "random.txt"),
            },
            note="Ask for it at Yahoo Webscope.",
        ),
        Dataset(
            name="cm100k",
            title="CM100k: ratings of tracks drawn at random, and which of them people had known before",
            home="http://ir.ii.uam.es/cm100k",
            licence="for research; no licence is stated",
            citation="Cañamares and Castells (2018), Should I follow the crowd? A probabilistic analysis of the "
            "effectiveness of popularity in recommender systems, SIGIR",
            counts=Counts(1027, 1054, 11_594),
            test_counts=Counts(1054, 1084, 103_584),
            parse=parsers.cm100k,
            files=dict.fromkeys(("train", "test"), ("data.txt", "cm100k.parquet", "cm100k.txt")),
            rows={"train": pl.col("known"), "test": pl.lit(True)},
            # The authors publish it with the code for their paper.
            address="https://raw.githubusercontent.com/ir-uam/SIGIR2018/a45528ec5a4bd2a7c338000e078b282ad6a84424/"
            "datasets/cm100k/data.txt",
            checksum="sha256:d8d5f446a9ec6df158bf172426088e609a5c3f63eb87df7b805dd19b7dfa4402",
            scale="1 to 4",
            note="The test part holds all ratings, including the training part: the tracks known before.",
        ),
    ]


def _shopping() -> list[Dataset]:
    return [
        Dataset(
            name="coat",
            title="Coat: ratings of coats, with a test part of coats drawn at random",
            home="https://www.cs.cornell.edu/~schnabts/mnar/",
            licence="for research; no licence is stated",
            citation="Schnabel, Swaminathan, Singh, Chandak and Joachims (2016), Recommendations as treatments: "
            "debiasing learning and evaluation, ICML",
            counts=Counts(290, 300, 6960),
            test_counts=Counts(290, 300, 4640),
            parse=parsers.ascii_matrix,
            files={"train": ("train.ascii",), "test": ("test.ascii",)},
            address="https://www.cs.cornell.edu/~schnabts/mnar/coat.zip",
            features={
                "user": ("user_features.ascii", feature_parsers.ascii_features),
                "item": ("item_features.ascii", feature_parsers.ascii_features),
            },
        ),
        Dataset(
            name="renttherunway",
            title="RentTheRunway: ratings of rented clothes",
            home=f"{_UCSD_HOME}#clothing_fit",
            licence="for research; no licence is stated",
            citation="Misra, Wan and McAuley (2018), Decomposing fit semantics for product size recommendation in "
            "metric spaces, RecSys",
            counts=Counts(105_508, 5850, 192_198, rows=192_462),
            parse=parsers.renttherunway,
            files={"all": ("renttherunway_final_data.json",)},
            address=f"{_UCSD}renttherunway/renttherunway_final_data.json.gz",
            repeated="last",
            scale="2 to 10",
            times=True,
            features={
                "user": ("renttherunway_final_data.json", feature_parsers.renttherunway_users),
                "item": ("renttherunway_final_data.json", feature_parsers.renttherunway_items),
            },
        ),
        Dataset(
            name="beeradvocate",
            title="BeerAdvocate: overall ratings of beers",
            home=f"{_UCSD_HOME}#multi_aspect",
            licence="for research; no licence is stated",
            citation="McAuley, Leskovec and Jurafsky (2012), Learning attitudes and attributes from multi-aspect "
            "reviews, ICDM",
            counts=Counts(33_388, 66_055, 1_571_808, rows=1_586_614),
            parse=parsers.beeradvocate,
            files={"all": ("beeradvocate.json",)},
            address=f"{_UCSD}beer/beeradvocate.json.gz",
            repeated="last",
            scale="0 to 5",
            times=True,
            tolerance=0.001,
        ),
    ]


@cache
def catalogue() -> Mapping[str, Dataset]:
    """Return every known dataset by name.

    Examples
    --------
    >>> catalogue()["ml-1m"]
    Dataset(ml-1m: MovieLens 1M: stars of films; 6,040 users, 3,706 items, 1,000,209 ratings)
    """
    entries = [*_movielens(), *_films(), *_books(), *_music(), *_shopping(), *amazon()]
    return MappingProxyType({entry.name: entry for entry in entries})


def find(name: str | Dataset) -> Dataset:
    """Return the entry of a name; an entry made by hand is returned unchanged.

    Examples
    --------
    >>> find("ml-1n")
    Traceback (most recent call last):
    cranfield._errors.SettingError: there is no dataset 'ml-1n'; see: cranfield data list; did you mean 'ml-1m'?
    """
    if isinstance(name, Dataset):
        return name
    known = catalogue()
    if name.lower() not in known:
        raise SettingError(f"there is no dataset {name!r}; see: cranfield data list{suggestion(name, known)}")
    return known[name.lower()]
