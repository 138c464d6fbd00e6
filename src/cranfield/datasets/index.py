"""The known datasets, one entry each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import polars as pl

from cranfield._errors import SettingError, suggestion
from cranfield.data import About
from cranfield.datasets import parsers
from cranfield.datasets.entry import Counts, Dataset, FeaturesParser

_GROUPLENS = "https://files.grouplens.org/datasets/movielens/"
_MOVIELENS_LICENCE = "GroupLens: research, no redistribution, no commercial use"
_MOVIELENS_PAPER = "Harper and Konstan (2015), The MovieLens datasets: history and context, ACM TiiS 5(4)"
_UCSD = "https://mcauleylab.ucsd.edu/public_datasets/data/"
_UCSD_HOME = "https://cseweb.ucsd.edu/~jmcauley/datasets.html"
_NO_LICENCE = "for research; no licence is stated"
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
            "user": ("u.user", parsers.fields("|", users_100k)),
            "item": ("u.item", parsers.films_100k),
        },
        "1m": {
            "user": ("users.dat", parsers.fields("::", users_1m)),
            "item": ("movies.dat", parsers.films),
        },
        "10m": {"item": ("movies.dat", parsers.films)},
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
            features=features.get(size, {"item": ("movies.csv", parsers.films)}),
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
    book_crossing: dict[str, Any] = {
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
            features={"user": ("*Users.csv", parsers.book_crossing_users)},
            # Published counts differ by a handful, depending on how an ISBN with stray characters is read.
            tolerance=0.0001,
            **book_crossing,
        ),
        Dataset(
            name="book-crossing-implicit",
            title="Book-Crossing: every book that a user has touched",
            counts=Counts(105_283, 340_556, 1_149_780),
            parse=parsers.book_crossing_implicit,
            scale="1 (implicit)",
            tolerance=0.0001,
            **book_crossing,
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
            licence=_NO_LICENCE,
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
            licence=_NO_LICENCE,
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
    lastfm: dict[str, Any] = {
        "home": zenodo,
        "licence": "non-commercial use, by permission of Last.fm",
        "citation": "Celma (2010), Music recommendation and discovery in the long tail, Springer",
        "repeated": "sum",
        "scale": "play counts",
    }
    plays = ("userid-timestamp-artid-artname-traid-traname.tsv",)
    listeners = {"user": (0, pl.String), "gender": (1, pl.String), "age": (2, pl.Float64), "country": (3, pl.String)}
    return [
        Dataset(
            name="lastfm-1k",
            title="Last.fm 1K: plays counted by artist",
            counts=Counts(992, 176_948),
            parse=parsers.lastfm_1k,
            files={"all": plays},
            address=f"{zenodo}/files/lastfm-dataset-1K.tar.gz",
            times=True,
            # The authors count artists with and without an id; a few names are both.
            tolerance=0.001,
            features={"user": ("userid-profile.tsv", parsers.fields("\t", listeners, skip=1))},
            note="19,150,868 plays; the time of a count is that of the last play.",
            **lastfm,
        ),
        Dataset(
            name="lastfm-1k-temporal",
            title="Last.fm 1K: plays counted by artist, the first 80 % of all plays and the others",
            counts=Counts(992),
            test_counts=Counts(992),
            parse=parsers.lastfm_1k_temporal,
            files=dict.fromkeys(("train", "test"), plays),
            rows={"train": ~pl.col("late"), "test": pl.col("late")},
            address=f"{zenodo}/files/lastfm-dataset-1K.tar.gz",
            # Not every user has plays before the moment of the split.
            tolerance=0.2,
            note="The temporal split of Bellogín et al. (2017); an artist can be in both parts.",
            **lastfm,
        ),
        Dataset(
            name="lastfm-360k",
            title="Last.fm 360K: plays of each user's top artists",
            counts=Counts(359_347, rows=17_559_530),
            parse=parsers.lastfm_360k,
            files={"all": ("usersha1-artmbid-artname-plays.tsv",)},
            address=f"{zenodo}/files/lastfm-dataset-360K.tar.gz",
            # A few rows have no artist or no plays.
            tolerance=0.01,
            features={"user": ("usersha1-profile.tsv", parsers.fields("\t", listeners))},
            **lastfm,
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
            licence=_NO_LICENCE,
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
            licence=_NO_LICENCE,
            citation="Schnabel, Swaminathan, Singh, Chandak and Joachims (2016), Recommendations as treatments: "
            "debiasing learning and evaluation, ICML",
            counts=Counts(290, 300, 6960),
            test_counts=Counts(290, 300, 4640),
            parse=parsers.ascii_matrix,
            files={"train": ("train.ascii",), "test": ("test.ascii",)},
            address="https://www.cs.cornell.edu/~schnabts/mnar/coat.zip",
            features={
                "user": ("user_features.ascii", parsers.ascii_features),
                "item": ("item_features.ascii", parsers.ascii_features),
            },
        ),
        Dataset(
            name="renttherunway",
            title="RentTheRunway: ratings of rented clothes",
            home=f"{_UCSD_HOME}#clothing_fit",
            licence=_NO_LICENCE,
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
                "user": ("renttherunway_final_data.json", parsers.renttherunway_users),
                "item": ("renttherunway_final_data.json", parsers.renttherunway_items),
            },
        ),
        Dataset(
            name="beeradvocate",
            title="BeerAdvocate: overall ratings of beers",
            home=f"{_UCSD_HOME}#multi_aspect",
            licence=_NO_LICENCE,
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


# The Amazon review datasets: the ratings-only files, one dataset per category.
# Category: users, items, ratings, and rows before repeated pairs are merged.
_AMAZON_2018 = {
    "All_Beauty": (324_038, 32_586, 361_605, 371_345),
    "AMAZON_FASHION": (749_233, 186_189, 875_121, 883_636),
    "Appliances": (515_650, 30_252, 590_844, 602_777),
    "Arts_Crafts_and_Sewing": (1_579_230, 302_809, 2_733_842, 2_875_917),
    "Automotive": (3_873_247, 925_387, 7_815_540, 7_990_166),
    "Books": (15_362_619, 2_930_451, 51_062_224, 51_311_621),
    "CDs_and_Vinyl": (1_944_316, 434_060, 4_458_901, 4_543_369),
    "Cell_Phones_and_Accessories": (6_211_701, 589_534, 10_034_040, 10_063_255),
    "Clothing_Shoes_and_Jewelry": (12_483_678, 2_681_297, 31_663_536, 32_292_099),
    "Digital_Music": (840_372, 456_992, 1_516_551, 1_584_082),
    "Electronics": (9_838_676, 756_489, 20_553_480, 20_994_353),
    "Gift_Cards": (128_877, 1_548, 147_136, 147_194),
    "Grocery_and_Gourmet_Food": (2_695_974, 283_507, 4_889_624, 5_074_160),
    "Home_and_Kitchen": (9_767_606, 1_286_050, 21_386_322, 21_928_568),
    "Industrial_and_Scientific": (1_246_131, 165_764, 1_711_995, 1_758_333),
    "Kindle_Store": (2_409_262, 493_849, 5_704_334, 5_722_988),
    "Luxury_Beauty": (416_174, 12_120, 535_310, 574_628),
    "Magazine_Subscriptions": (72_098, 2_428, 88_318, 89_689),
    "Movies_and_TV": (3_826_085, 182_032, 8_506_849, 8_765_568),
    "Musical_Instruments": (903_330, 112_222, 1_470_564, 1_512_530),
    "Office_Products": (3_404_914, 306_800, 5_387_582, 5_581_313),
    "Patio_Lawn_and_Garden": (3_097_405, 276_563, 5_053_304, 5_236_058),
    "Pet_Supplies": (3_085_591, 198_402, 6_254_167, 6_542_483),
    "Prime_Pantry": (247_659, 10_814, 447_399, 471_614),
    "Software": (375_147, 21_663, 450_578, 459_436),
    "Sports_and_Outdoors": (6_703_391, 957_764, 12_601_954, 12_980_837),
    "Tools_and_Home_Improvement": (4_704_014, 559_775, 8_730_382, 9_015_203),
    "Toys_and_Games": (4_204_994, 624_792, 7_998_969, 8_201_231),
    "Video_Games": (1_540_618, 71_982, 2_489_395, 2_565_349),
}

# Category: users, items and ratings; no pair is repeated.
_AMAZON_2014 = {
    "Amazon_Instant_Video": (426_922, 23_965, 583_933),
    "Apps_for_Android": (1_323_884, 61_275, 2_638_172),
    "Automotive": (851_418, 320_112, 1_373_768),
    "Baby": (531_890, 64_426, 915_446),
    "Beauty": (1_210_271, 249_274, 2_023_070),
    "Books": (8_026_324, 2_330_066, 22_507_155),
    "CDs_and_Vinyl": (1_578_597, 486_360, 3_749_004),
    "Cell_Phones_and_Accessories": (2_261_045, 319_678, 3_447_249),
    "Clothing_Shoes_and_Jewelry": (3_117_268, 1_136_004, 5_748_920),
    "Digital_Music": (478_235, 266_414, 836_006),
    "Electronics": (4_201_696, 476_002, 7_824_482),
    "Grocery_and_Gourmet_Food": (768_438, 166_049, 1_297_156),
    "Health_and_Personal_Care": (1_851_132, 252_331, 2_982_326),
    "Home_and_Kitchen": (2_511_610, 410_243, 4_253_926),
    "Kindle_Store": (1_406_890, 430_530, 3_205_467),
    "Movies_and_TV": (2_088_620, 200_941, 4_607_047),
    "Musical_Instruments": (339_231, 83_046, 500_176),
    "Office_Products": (909_314, 130_006, 1_243_186),
    "Patio_Lawn_and_Garden": (714_791, 105_984, 993_490),
    "Pet_Supplies": (740_985, 103_288, 1_235_316),
    "Sports_and_Outdoors": (1_990_521, 478_898, 3_268_695),
    "Tools_and_Home_Improvement": (1_212_468, 260_659, 1_926_047),
    "Toys_and_Games": (1_342_911, 327_698, 2_252_771),
    "Video_Games": (826_767, 50_210, 1_324_753),
}


def _amazon() -> list[Dataset]:
    """Return ``amazon-CATEGORY`` (reviews up to 2018) and ``amazon-2014-CATEGORY`` for every category."""
    newer = {
        "home": "https://nijianmo.github.io/amazon/index.html",
        "citation": "Ni, Li and McAuley (2019), Justifying recommendations using distantly-labeled reviews and "
        "fine-grained aspects, EMNLP-IJCNLP",
        # The two releases order their columns differently.
        "parse": parsers.delimited(",", ("item", "user", "rating", "time"), text_ids=True),
    }
    older = {
        "home": "https://cseweb.ucsd.edu/~jmcauley/datasets/amazon/links.html",
        "citation": "He and McAuley (2016), Ups and downs: modeling the visual evolution of fashion trends with "
        "one-class collaborative filtering, WWW",
        "parse": parsers.delimited(",", ("user", "item", "rating", "time"), text_ids=True),
    }
    snap = "https://snap.stanford.edu/data/amazon/productGraph/categoryFiles/ratings_"
    releases: list[tuple[str, str, Mapping[str, tuple[int, ...]], str, dict[str, Any]]] = [
        ("amazon", "2018", _AMAZON_2018, f"{_UCSD}amazon_v2/categoryFilesSmall/", newer),
        ("amazon-2014", "2014", _AMAZON_2014, snap, older),
    ]
    return [
        Dataset(
            name=f"{prefix}-{words.replace(' ', '-')}",
            title=f"Amazon reviews to {year}, {words}: stars of products",
            licence=_NO_LICENCE,
            counts=Counts(*counts),
            files={"all": (f"{address.rsplit('/', 1)[1]}{category}.csv",)},
            address=f"{address}{category}.csv",
            repeated="last",
            times=True,
            # The publishers count rows; others counted users, items and distinct pairs.
            tolerance=0.001,
            **about,
        )
        for prefix, year, categories, address, about in releases
        for category, counts in categories.items()
        for words in [category.lower().removeprefix("amazon_").replace("_", " ")]
    ]


@cache
def catalogue() -> Mapping[str, Dataset]:
    """Return every known dataset by name."""
    entries = [*_movielens(), *_films(), *_books(), *_music(), *_shopping(), *_amazon()]
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
