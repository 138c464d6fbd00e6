from __future__ import annotations

from pathlib import Path

from cranfield import _fonts

FOLDER = Path(_fonts.__file__).parent


def test_every_character_that_the_fonts_lack_has_a_stand_in_of_its_own():
    text = "nDCG@10 τ ≥ − … \u2060 \ufffd 推薦 システム 👍🏽 नम\u093f \ue000"
    table = _fonts.stand_ins(text)
    assert set("推薦システム👍🏽नम\u093f\ue000") == set(map(chr, table))
    assert len(set(table.values())) == len(table)
    back = {stand_in: code for code, stand_in in table.items()}
    assert text.translate(table).translate(back) == text


def test_stand_ins_are_as_wide_as_what_they_stand_for_may_be():
    table = _fonts.stand_ins("薦न\U000e0100")
    assert [hex(table[ord(letter)])[:3] for letter in "薦न\U000e0100"] == ["0xe", "0xf", "0xf"]
    assert table[0xE0100] >= 0xF800 > table[ord("न")]


def test_a_text_of_very_many_characters_leaves_the_rest_as_they_are():
    assert len(_fonts.stand_ins("".join(map(chr, range(0x4E00, 0x4E00 + 5_000))))) == 0x1000


def test_the_fonts_lie_in_the_package_with_their_licence():
    assert {path.name for path in FOLDER.glob("*.ttf")} == {"CranfieldSans-Regular.ttf", "CranfieldSerif-Regular.ttf"}
    assert "SIL OPEN FONT LICENSE Version 1.1" in (FOLDER / "OFL.txt").read_text()
