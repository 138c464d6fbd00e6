"""The Amazon review datasets of 2014 and 2018: the ratings-only files, one dataset per category."""

from __future__ import annotations

from cranfield.datasets.entry import Counts, Dataset
from cranfield.datasets.parsers import delimited

# Category: users, items, ratings, and rows before repeated pairs are merged.
_2018 = {
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
_2014 = {
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

# The publishers count rows; others counted users, items and distinct pairs.
_TOLERANCE = 0.001
_LICENCE = "for research; no licence is stated"


def amazon() -> list[Dataset]:
    """Return ``amazon-CATEGORY`` (reviews up to 2018) and ``amazon-2014-CATEGORY`` for every category."""
    newer = [
        Dataset(
            name=f"amazon-{_slug(category)}",
            title=f"Amazon reviews to 2018, {_words(category)}: stars of products",
            home="https://nijianmo.github.io/amazon/index.html",
            licence=_LICENCE,
            citation="Ni, Li and McAuley (2019), Justifying recommendations using distantly-labeled reviews and "
            "fine-grained aspects, EMNLP-IJCNLP",
            counts=Counts(*counts),
            # The two releases order their columns differently.
            parse=delimited(",", ("item", "user", "rating", "time"), text_ids=True),
            files={"all": (f"{category}.csv",)},
            address=f"https://mcauleylab.ucsd.edu/public_datasets/data/amazon_v2/categoryFilesSmall/{category}.csv",
            repeated="last",
            times=True,
            tolerance=_TOLERANCE,
        )
        for category, counts in _2018.items()
    ]
    older = [
        Dataset(
            name=f"amazon-2014-{_slug(category)}",
            title=f"Amazon reviews to 2014, {_words(category)}: stars of products",
            home="https://cseweb.ucsd.edu/~jmcauley/datasets/amazon/links.html",
            licence=_LICENCE,
            citation="He and McAuley (2016), Ups and downs: modeling the visual evolution of fashion trends with "
            "one-class collaborative filtering, WWW",
            counts=Counts(*counts),
            parse=delimited(",", ("user", "item", "rating", "time"), text_ids=True),
            files={"all": (f"ratings_{category}.csv",)},
            address=f"https://snap.stanford.edu/data/amazon/productGraph/categoryFiles/ratings_{category}.csv",
            repeated="last",
            times=True,
            tolerance=_TOLERANCE,
        )
        for category, counts in _2014.items()
    ]
    return newer + older


def _slug(category: str) -> str:
    return category.lower().removeprefix("amazon_").replace("_", "-")


def _words(category: str) -> str:
    return category.lower().removeprefix("amazon_").replace("_", " ")
