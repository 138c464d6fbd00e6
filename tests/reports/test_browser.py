"""The page in a real browser: Chromium of the system, driven by Playwright; skipped where one is absent or cannot run.

Without any font on the machine Chromium starts, and crashes when it opens a page that has a list of choices.
"""

from __future__ import annotations

import itertools
import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield.audits import Audit, Grid, VariedDecision
from cranfield.comparisons.samples import as_scores
from cranfield.reports import report
from cranfield.reports.audit_page import audit_page
from cranfield.reports.html_page import page as html_page
from cranfield.reports.sections.across import across_sections
from cranfield.reports.sections.explorer import explore
from cranfield.reports.sections.groups import quantiles
from cranfield.reports.sections.leaderboard import full_and_condensed
from cranfield.reports.tables import leaderboard_frame, leaderboard_table

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
SYSTEMS = ("<script>alert(1)</script>", "\"quoted\" & 'single'", "=SUM(A1)", "plain")
METRICS = ("P@5", "P@10", "nDCG@5", "nDCG(gain=exp)@5", "RR@10")
WINDOW = {"width": 1280, "height": 720}


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            # If this fails, the browser is at fault and not our page. Without fonts, the list of choices crashes it.
            page = started.new_page()
            page.set_content("<p>a</p><button>a</button><input type='checkbox'><select><option>a</option></select>")
            page.screenshot()
            page.close()
            started.new_page().close()
        except sync_api.Error as error:
            pytest.skip(f"Chromium cannot start on this machine (it needs a font): {str(error).splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture(scope="module")
def measured(make_scores):
    return make_scores(systems=SYSTEMS, metrics=METRICS)


@pytest.fixture(scope="module")
def variants(make_scores):
    return [
        make_scores(systems=SYSTEMS, metrics=METRICS, threshold=threshold, lists=lists)
        for threshold, lists in ((4, "condensed"), (2, "full"), (2, "condensed"))
    ]


@pytest.fixture(scope="module")
def path(measured, variants, assessment, tmp_path_factory):
    written = tmp_path_factory.mktemp("report") / "report.html"
    written.write_text(report(measured, cf.compare(measured), assessment, variants=variants), encoding="utf-8")
    return written


class Tab:
    """A page of the browser, and what it complained of or asked for; opening it again takes a quarter of the time."""

    def __init__(self, browser, **options):
        self.page, self.faults, self.file = browser.new_context(**options).new_page(), [], None
        page, faults = self.page, self.faults
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: faults.append(request.url) if request.url != self.file else None)

    def open(self, file, viewport, color_scheme):
        self.file = file.as_uri()
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(media="null", color_scheme=color_scheme)
        self.page.mouse.move(0, 0)
        self.page.goto(self.file)
        return self.page

    def unfold(self):
        self.page.evaluate("for (const fold of document.querySelectorAll('main details')) fold.open = true")


@pytest.fixture(scope="module")
def tab(browser):
    return Tab(browser)


@pytest.fixture
def open_page(browser, path, tab):
    """Return a function that opens the page and fails the test if it complains or asks for anything."""
    tabs = []

    def open_it(file=path, viewport=WINDOW, color_scheme="light", *, unfolded=True, **options):
        tabs.append(Tab(browser, **options) if tabs or options else tab)
        page = tabs[-1].open(file, viewport, color_scheme)
        if unfolded:
            tabs[-1].unfold()
        return page

    tab.faults.clear()
    yield open_it
    for own in tabs[1:] if tab in tabs else tabs:
        own.page.context.close()
    assert [fault for own in tabs for fault in own.faults] == []


def order(page) -> list[str]:
    return page.eval_on_selector_all(".ranking li", "items => items.map(item => item.dataset.system)")


def test_the_page_opens_from_disk_without_complaint_or_request(open_page):
    page = open_page()
    assert page.locator("h1").inner_text() == "Which system is better?"
    assert page.locator("#leaderboard tbody tr").count() == len(SYSTEMS)
    assert "<script>alert(1)</script>" in page.locator("#leaderboard tbody").inner_text()


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 800}, {"width": 390, "height": 844}])
@pytest.mark.parametrize("baseline", [None, SYSTEMS[1]])
def test_the_sentence_and_the_whole_figure_are_on_the_first_screen(open_page, tmp_path, viewport, baseline):
    rng = np.random.default_rng(0)
    users = rng.beta(1, 3, 300)
    names = [*SYSTEMS, "a system with a very long name, as experiments have them (ours)", *"efgh"]
    values = {name: np.clip(users + 0.01 * k + rng.normal(0, 0.1, 300), 0, 1) for k, name in enumerate(names)}
    scores = replace(as_scores(values), trained_once=tuple(names[:3]))
    title = "Time-decayed item neighbours on MovieLens 100K, with a title that takes two lines on a phone"
    file = tmp_path / "first.html"
    file.write_text(report(scores, cf.compare(scores, baseline=baseline), title=title), encoding="utf-8")
    page = open_page(file, viewport=viewport, unfolded=False)
    page.wait_for_timeout(300)
    for part in ("p.answer", "#answer figure .drawing"):
        box = page.locator(part).bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= viewport["height"], part
        assert box["x"] + box["width"] <= viewport["width"] + 1, part
    before = page.evaluate("""() => {
        const range = document.createRange();
        range.setStartBefore(document.body);
        range.setEndBefore(document.querySelector("figure"));
        const part = range.cloneContents();
        for (const hidden of part.querySelectorAll("style, script, .skip, .menu nav, h2")) hidden.remove();
        return part.textContent;
    }""")
    assert len(before.split()) <= 60, before


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 800}, {"width": 390, "height": 844}])
def test_long_names_of_the_figure_are_told_apart_on_the_first_screen(open_page, tmp_path, viewport):
    rng = np.random.default_rng(0)
    users = rng.beta(1, 3, 300)
    names = [f"a system with a very long name, as experiments have them, number {k}" for k in range(9)]
    values = {name: np.clip(users + 0.01 * k + rng.normal(0, 0.1, 300), 0, 1) for k, name in enumerate(names)}
    file = tmp_path / "names.html"
    file.write_text(report(as_scores(values), cf.compare(as_scores(values))), encoding="utf-8")
    page = open_page(file, viewport=viewport, unfolded=False)
    page.wait_for_timeout(300)
    box = page.locator("#answer figure .drawing").bounding_box()
    assert box["y"] + box["height"] <= viewport["height"]
    drawn = page.locator("#answer figure .drawing svg").last.text_content()
    assert "…" not in drawn
    assert len(re.findall(r"number \d", drawn)) == 8


def test_folds_are_closed_on_the_screen_and_open_on_paper(open_page):
    page = open_page(unfolded=False)
    closed = page.locator("main details:not([open])").count()
    assert closed == page.locator("main details").count() > 5
    assert not page.locator("#card dl").first.is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("main details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("main details:not([open])").count() == closed


def test_the_menu_leads_to_every_section_and_closes(open_page):
    page = open_page(unfolded=False)
    assert not page.get_by_role("link", name="How was it made?").is_visible()
    page.get_by_text("Sections", exact=True).click()
    names = page.locator(".menu a").all_inner_texts()
    assert names == page.locator("main > section > h2").all_inner_texts()[1:]
    page.get_by_role("link", name="How was it made?").click()
    assert page.url.endswith("#card")
    assert not page.locator(".menu nav").is_visible()


def test_the_policy_stops_a_script_that_slipped_in(browser, path, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text(path.read_text().replace("</main>", "<script>document.title = 'run'</script></main>"))
    page = browser.new_page()
    page.goto(bad.as_uri())
    assert page.title() == "Which system is better?"
    page.close()


def test_headings_sort_the_table_and_say_so(open_page, measured):
    page = open_page()
    heading = page.locator("#leaderboard thead th", has_text="P@10")
    means = dict(zip(SYSTEMS, measured.average()[:, METRICS.index("P@10")]))
    for state, reverse in (("descending", True), ("ascending", False)):
        heading.locator("button").focus()
        page.keyboard.press("Enter")
        assert heading.get_attribute("aria-sort") == state
        shown = page.locator("#leaderboard tbody th").all_inner_texts()
        assert [means[one] for one in shown] == sorted(means.values(), reverse=reverse)
    assert page.locator("#leaderboard thead th[aria-sort='none']").count() > 0


def test_a_metric_can_be_hidden(open_page):
    page = open_page()
    cell = page.locator("#leaderboard td[data-group='nDCG@5']").first
    assert cell.is_visible()
    page.locator("#leaderboard").get_by_role("checkbox", name="nDCG@5").uncheck()
    assert not cell.is_visible()
    assert page.locator("#full-and-condensed td[data-group='P@10']").first.is_visible()


def test_full_and_condensed_lists_stand_side_by_side(open_page, measured, variants):
    page = open_page()
    head = page.locator("#full-and-condensed thead th").all_inner_texts()
    assert head[:3] == ["system", "P@5, full", "P@5, condensed"]
    for row in page.locator("#full-and-condensed tbody tr").all():
        system, *cells = row.locator("th, td").all_inner_texts()
        full, condensed = (one.average()[SYSTEMS.index(system), 0] for one in (measured, variants[0]))
        assert [cell.split("\n")[0] for cell in cells[:2]] == [f"{full:.4f}", f"{condensed:.4f}"]


def test_the_explorer_shows_the_order_that_the_numbers_say(open_page, measured, variants):
    explored = explore([("test", one) for one in (measured, *variants)])
    page = open_page()

    def expected(scores, metric, average="mean", coverage="full"):
        choices = {**explored.label("test", scores, metric), "average": average, "coverage": coverage}
        means = explored.means[explored.find(**choices)].astype(np.float32)
        return [SYSTEMS[s] for s in np.argsort(-means, kind="stable")]

    assert order(page) == expected(measured, "P@5")
    assert page.locator(".ranking .value").first.inner_text() == f"{measured.average()[:, 0].max():.4f}"
    page.locator("[data-dimension='metric'] label", has_text="nDCG").locator("input").check()
    assert order(page) == expected(measured, "nDCG@5")
    page.locator("[data-dimension='parameters'] label", has_text="gain=exp").locator("input").check()
    assert order(page) == expected(measured, "nDCG(gain=exp)@5")
    page.locator("[data-dimension='lists'] label", has_text="condensed").locator("input").check()
    assert order(page) == expected(variants[0], "nDCG(gain=exp)@5")
    page.locator("[data-dimension='threshold'] label", has_text="2").locator("input").check()
    assert order(page) == expected(variants[2], "nDCG(gain=exp)@5")
    page.locator("select[data-dimension='average']").select_option(label="median")
    assert order(page) == expected(variants[2], "nDCG(gain=exp)@5", "median")
    assert "no paired test" in page.locator(".said-live").inner_text()
    page.locator("[data-dimension='coverage'] label", has_text="left out").locator("input").check()
    assert order(page) == expected(variants[2], "nDCG(gain=exp)@5", "median", "reduced")
    page.get_by_text("Back to the decisions of this page").click()
    assert order(page) == expected(measured, "P@5")


def test_a_choice_that_does_not_go_with_the_others_takes_them_along(open_page):
    page = open_page()
    page.locator("[data-dimension='parameters'] label", has_text="gain=exp").locator("input").check()
    assert page.locator("[data-dimension='metric'] label", has_text="nDCG").locator("input").is_checked()


def download(page, button, folder):
    with page.expect_download() as waiting:
        button.click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def numbers(frame: pl.DataFrame) -> dict[str, list[float | None]]:
    """Return the columns of numbers; NaN is null, as it is in CSV."""
    kinds = pl.selectors.numeric()
    return frame.select(kinds.cast(pl.Float64).fill_nan(None)).to_dict(as_series=False)


@pytest.mark.parametrize(
    ("lists", "average", "policy"),
    [
        ("full", "mean", "count as 0"),
        ("condensed", "mean", "are left out"),
        ("full", "geometric(form=adjusted, epsilon=0.01)", "count as 0"),
    ],
)
def test_significance_follows_the_decisions_as_compare_finds_it(
    open_page, measured, variants, lists, average, policy, tmp_path
):
    page = open_page()
    page.locator("[data-dimension='lists'] label", has_text=lists).locator("input").check()
    page.locator("select[data-dimension='average']").select_option(label=average)
    page.locator("[data-dimension='coverage'] label", has_text=policy).locator("input").check()
    scores = measured if lists == "full" else variants[0]
    best, *others = order(page)
    coverage = "full" if policy == "count as 0" else "reduced"
    is_page = (lists, average, policy) == ("full", "mean", "count as 0")
    test = {} if is_page else {"significance": "student", "correction": "bonferroni"}
    matrix = cf.compare(scores, **test, average=average, coverage=coverage).matrix("P@5")
    p = dict(zip(matrix["system"], matrix[best]))
    back = pl.read_csv(download(page, page.locator("#explorer-save"), tmp_path))
    assert back["p_corrected"].to_list() == [None, *(pytest.approx(p[one], rel=1e-6) for one in others)]
    for k, system in enumerate(others, start=1):
        shown = page.locator(".ranking li").nth(k).get_attribute("class")
        assert ("level" in shown) == (p[system] >= 0.05), system


def test_every_table_can_be_downloaded_with_the_numbers_of_its_frame(
    open_page, measured, variants, assessment, tmp_path
):
    page = open_page()
    frames = {
        "leaderboard": leaderboard_frame(measured, cf.compare(measured)),
        "pairs": cf.compare(measured).frame(detail=True),
        "quantiles": quantiles(measured),
        "per-user": measured.per_user(),
        **{f"trust-{study}": assessment.frame(study) for study in ("advice", "robustness", "power", "correlation")},
        "full-and-condensed": full_and_condensed(measured, variants[0]).tables["full-and-condensed"],
    }
    buttons = page.locator("button[data-save-file]")
    names = {buttons.nth(k).inner_text() for k in range(buttons.count())}
    assert names == {"leaderboard.tex", "leaderboard.md", *(f"{name}.csv" for name in frames)}
    for name, frame in frames.items():
        path = download(page, page.locator(f"button[data-save-file='{name}.csv']"), tmp_path)
        assert path.name == f"{name}.csv"
        back = pl.read_csv(path, infer_schema_length=None, schema_overrides=frame.schema, null_values=["", "NaN"])
        assert numbers(back) == numbers(frame), name
    table = leaderboard_table(measured, cf.compare(measured)).titled("", "leaderboard")
    page = open_page()  # Chromium lets a page start about ten downloads
    for name, content in (
        ("leaderboard.tex", table.latex()),
        ("leaderboard.md", leaderboard_table(measured, cf.compare(measured)).markdown()),
    ):
        assert download(page, page.locator(f"button[data-save-file='{name}']"), tmp_path).read_text() == content
    assert not re.search(r"(^|,)=", (tmp_path / "pairs.csv").read_text(), re.M)


def test_every_figure_can_be_downloaded_as_it_is_drawn_also_after_it_was_pointed_at(open_page, tmp_path):
    page = open_page(color_scheme="dark")
    buttons = page.locator("button[data-save-figure]")
    assert buttons.count() == page.locator("figure").count() == 12
    page.locator("figure .drawing").first.hover()
    page.locator("figure .awake").first.wait_for()
    for k in range(buttons.count()):
        if k == 9:  # Chromium lets a page start about ten downloads
            page = open_page(color_scheme="dark")
            buttons = page.locator("button[data-save-figure]")
        path = download(page, buttons.nth(k), tmp_path)
        assert path.name == buttons.nth(k).inner_text()
        root = ET.parse(path).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert [one for one in root.itertext() if one.strip()]


def test_what_the_explorer_shows_can_be_downloaded(open_page, measured, tmp_path):
    page = open_page()
    back = pl.read_csv(download(page, page.locator("#explorer-save"), tmp_path))
    assert back["system"].to_list() == [f"'{one}" if one.startswith("=") else one for one in order(page)]
    means = dict(zip(SYSTEMS, measured.average()[:, 0]))
    assert back["average"].to_list() == pytest.approx([means[one] for one in order(page)], rel=1e-6)
    best = order(page)[0]
    matrix = cf.compare(measured).matrix("P@5")
    p = dict(zip(matrix["system"], matrix[best]))
    assert back["p_corrected"].to_list()[1:] == pytest.approx([p[one] for one in order(page)[1:]], rel=1e-6)
    assert back["metric"].unique().to_list() == ["P"]


def test_a_figure_that_is_pointed_at_tells_its_numbers(open_page, measured):
    page = open_page(color_scheme="dark")
    figure = page.locator("#leaderboard figure")
    height = figure.bounding_box()["height"]
    figure.locator(".drawing").hover()
    figure.locator(".awake").wait_for()
    assert figure.bounding_box()["height"] == pytest.approx(height, abs=1)
    figure.locator(".live .mark-symbol path").first.hover()
    page.locator("#tip.visible").wait_for()
    best = int(np.argmax(measured.average()[:, 0]))
    shown = dict(line.split("\t") for line in page.locator("#tip").inner_text().splitlines())
    assert shown["system"] == SYSTEMS[best]
    assert shown["P@5"] == f"{measured.average()[best, 0]:.4f}"
    label = figure.locator(".live .role-axis-label text").first
    assert label.evaluate("node => getComputedStyle(node).fill") == "rgb(155, 166, 180)"  # --muted of the dark page


def test_figures_are_set_in_the_font_they_were_measured_with(open_page):
    page = open_page()
    page.evaluate("document.fonts.ready")
    assert page.evaluate("[...document.fonts].map(one => [one.family.replaceAll('\"', ''), one.status])") == [
        ["Cranfield Sans", "loaded"]
    ]
    # The title of a legend ends before its first swatch, whatever fonts are installed.
    title, swatch = (
        page.locator(f"#figure-users-wins .mark-{part} >> nth=0").bounding_box()
        for part in ("text.role-legend-title", "symbol.role-legend-symbol")
    )
    assert title["x"] + title["width"] <= swatch["x"]


def test_figures_are_seen_without_a_script(open_page):
    page = open_page(java_script_enabled=False)
    assert page.locator("figure .drawing svg").first.is_visible()
    assert page.locator("#leaderboard tbody tr").count() == len(SYSTEMS)
    assert "The matrix needs the script" in page.locator("#pairs").inner_text()
    for dead in ("#theme", ".downloads button", ".choices", "figcaption button"):
        assert not page.locator(dead).first.is_visible()


def test_the_matrix_follows_the_chosen_metric(open_page):
    page = open_page()
    assert page.locator(".matrix tbody tr").count() == len(SYSTEMS)
    page.locator("#pairs-metric").select_option(label="RR@10")
    page.locator("#pairs-show").select_option(label="effect size d_z")
    assert page.locator(".matrix caption").inner_text().startswith("RR@10: effect size d_z")


def test_the_matrix_shows_relative_differences_with_their_intervals_from_either_side(open_page, measured):
    page = open_page()
    page.locator("#pairs-show").select_option(label="relative difference, with its interval")
    cells = page.locator(".matrix tbody td").all_inner_texts()
    rows = cf.compare(measured).frame(detail=True).filter(metric=measured.metrics[0])
    row = rows.filter(pl.col("relative_upper").is_finite()).sort(pl.col("relative").abs()).row(-1, named=True)
    ratios = np.array([1 + row[name] for name in ("relative", "relative_lower", "relative_upper")])
    for value, low, high in (ratios - 1, (1 / ratios - 1)[[0, 2, 1]]):
        value, low, high = (_percent(number) for number in (value, low, high))
        assert any(cell.split("\n") == [f"{value} %", f"[{low}, {high}]"] for cell in cells)


def _percent(share: float) -> str:
    """Write a share as the page does."""
    text = f"{abs(100 * share):.{1 if abs(share) < 0.0995 else 0}f}"
    return f"{'−' if share < 0 else '+'}{text}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_system_and_the_switch(open_page, scheme):
    page = open_page(color_scheme=scheme)

    def dark() -> bool:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")) < 200

    assert dark() == (scheme == "dark")
    label = page.locator(".drawing text").first
    before = label.evaluate("node => getComputedStyle(node).fill")
    page.locator("#theme").click()
    assert dark() == (scheme == "light")
    assert label.evaluate("node => getComputedStyle(node).fill") != before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(open_page, scheme):
    page = open_page(color_scheme=scheme)

    def light(name: str) -> float:
        """Return the relative luminance of a colour of the style sheet (WCAG 2.2)."""
        code = page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
        parts = [int(code[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: str, other: str) -> float:
        high, low = sorted((light(one), light(other)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for ink in ("ink", "muted", "accent", "warn"):
        assert contrast(ink, "paper") >= 4.5, ink
    assert contrast("muted", "raised") >= 4.5
    # Lines and bars need a contrast of only 3.
    for colour in ("blue", "vermilion", "green"):
        assert contrast(colour, "paper") >= 3, colour


def test_the_page_can_be_walked_and_worked_with_the_keyboard(open_page):
    page = open_page()
    focused = "document.activeElement"
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.textContent") == "Skip to the results"
    assert page.evaluate(f"{focused}.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    seen = []
    while page.keyboard.press("Tab") or page.evaluate(f"{focused} !== document.body"):
        seen.append(page.evaluate(f"{focused}.tagName + '|' + {focused}.textContent.trim().slice(0, 20)"))
        assert page.evaluate(f"getComputedStyle({focused}).outlineStyle") != "none", seen[-1]
    assert "BUTTON|P@5" in seen
    assert "BUTTON|leaderboard.csv" in seen
    assert seen.index("BUTTON|P@5") < seen.index("BUTTON|leaderboard.csv")
    before = page.locator(".said-live").inner_text()
    page.locator("[data-dimension='lists'] input").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("[data-dimension='lists'] label", has_text="condensed").locator("input").is_checked()
    assert page.locator(".said-live").inner_text() != before
    assert page.evaluate(f"{focused}.name") == "explore-lists"


def test_everything_that_can_be_worked_has_a_name_and_every_change_is_told(open_page):
    page = open_page()
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, select, input, a, [role=region], [role=img]')].filter(one =>
        !(one.getAttribute('aria-label') || one.textContent.trim() || (one.labels && one.labels.length))).length"""
    )
    assert nameless == 0
    status = page.locator(".said-live")
    assert (status.get_attribute("role"), status.get_attribute("aria-live")) == ("status", "polite")
    assert page.locator(".matrix th[scope='row']").count() == page.locator(".matrix th[scope='col']").count() == 4
    levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(one => +one.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_nothing_hangs_over_the_edge_of_a_phone(open_page):
    page = open_page(viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator(".ranking li").first.is_visible()
    # Long names leave room for numbers, and the text above a table can be read without scrolling.
    assert page.locator("#leaderboard tbody th").first.bounding_box()["width"] < 360 / 2
    assert page.locator("#leaderboard caption").bounding_box()["width"] <= 360
    # However long a name is.
    page.evaluate(
        "for (const one of document.querySelectorAll('p, .notes li, figcaption')) one.prepend('x'.repeat(300))"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_figures_scale_to_the_width_of_a_phone_and_their_labels_can_be_read(open_page):
    page = open_page(viewport={"width": 360, "height": 740})
    page.locator("#users .awake").first.wait_for()
    widths = page.eval_on_selector_all(".awake", "all => all.map(one => [one.scrollWidth, one.clientWidth])")
    assert len(widths) > 3
    assert all(inside <= outside <= 360 for inside, outside in widths)
    heights = page.eval_on_selector_all(".live text", "all => all.map(one => one.getBoundingClientRect().height)")
    assert min(height for height in heights if height) > 9


def test_on_a_phone_what_a_choice_does_stays_in_sight(open_page):
    page = open_page(viewport={"width": 360, "height": 740})
    last = page.locator(".explorer .controls fieldset").last.locator("input").last
    # Scroll as a finger would, which is less than a script would scroll.
    last.evaluate("node => node.scrollIntoView({ block: 'center' })")
    before = page.locator(".said-live").inner_text()
    last.check()
    assert page.locator(".said-live").inner_text() != before
    box = page.locator(".said-live").bounding_box()
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= last.bounding_box()["y"]


def test_a_grey_choice_says_why(open_page, measured):
    page = open_page()
    # Only P and nDCG were measured at 5, and only nDCG with another gain.
    cutoff = page.locator("[data-dimension='cutoff']")
    gains = page.locator("[data-dimension='parameters']")
    grey = gains.locator("label.off")
    assert grey.inner_text().strip() == "gain=exp"
    assert grey.get_attribute("title") == "not measured with the other choices; it changes “Metric” to nDCG"
    assert gains.locator(".why").inner_text() == f"Grey: gain=exp: {grey.get_attribute('title')}."
    assert not cutoff.locator(".why").is_visible()
    grey.locator("input").check()
    assert gains.locator("label.off").count() == 0
    assert not gains.locator(".why").is_visible()
    assert page.locator("[data-dimension='metric'] label", has_text="nDCG").locator("input").is_checked()


def test_the_page_prints_dark_on_white_within_the_sheet(open_page):
    page = open_page(color_scheme="dark", viewport={"width": 680, "height": 900})
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("document.documentElement.scrollWidth") <= 680
    assert not page.locator("nav").is_visible()


@pytest.mark.slow
def test_two_hundred_systems_and_fifty_metrics_can_be_handled(open_page, many_scores, tmp_path):
    big = tmp_path / "big.html"
    big.write_text(
        report(many_scores, cf.compare(many_scores, metrics=["P@5"], significance="student")), encoding="utf-8"
    )
    page = open_page(big)
    page.locator("#leaderboard thead th button").nth(1).click()
    assert page.locator("#leaderboard tbody tr").count() == 200
    page.locator("select[data-dimension='metric']").select_option(label="RR")
    means = many_scores.average()[:, many_scores.metrics.index("RR@1")].astype(np.float32)
    assert order(page) == [many_scores.systems[s] for s in np.argsort(-means, kind="stable")]
    page.locator("#leaderboard").get_by_role("checkbox", name="AP@10", exact=True).check()
    assert page.locator("#leaderboard td[data-group='AP@10']").first.is_visible()


@pytest.fixture(scope="module")
def audit():
    """Return an audit of four systems in which the split changes the winner."""
    opened = (
        VariedDecision("split", "question", ("random(train=0.2)", "random(train=0.8)")),
        VariedDecision("metrics", "equivalent", ("P", "<b>AP</b>")),
        VariedDecision("split_seed", "chance", ("0", "1", "2", "3", "4")),
    )
    grid = Grid.product(opened)
    values = np.random.default_rng(3).normal(0.4, 0.2, (len(SYSTEMS), grid.n_cells, 50))
    values[0] += 0.6 * (0.5 - grid.cells[:, [0]])
    return Audit.of(grid, SYSTEMS, values.mean(axis=2), values, draws=250, resamples=20)


@pytest.fixture(scope="module")
def audit_path(audit, tmp_path_factory):
    written = tmp_path_factory.mktemp("audit") / "audit.html"
    written.write_text(audit_page(audit), encoding="utf-8")
    return written


def _share(cells: pl.DataFrame, leader: str) -> str:
    return f"{leader} leads in {100 * (cells['leader'] == leader).mean():.0f} %"


def test_another_pair_of_systems_changes_all_that_is_said_of_it(open_page, audit, audit_path):
    page = open_page(audit_path)
    order = audit.systems_at_start
    for first, second in ((0, 2), (1, 3)):
        page.locator("#audit-first").select_option(str(first))
        page.locator("#audit-second").select_option(str(second))
        names = order[first], order[second]
        answer, *rest = audit.sentences(*names)
        assert page.locator("#audit-large").inner_text() == answer
        # What opens a section is not said again.
        openings = page.locator("[data-opening]").all_inner_texts()
        assert len([said for said in openings if said]) == 2
        listed = page.locator("#audit-rest li").all_inner_texts()
        assert sorted([*listed, *filter(None, openings)]) == sorted(rest)
        cells = audit.frame().filter(pl.col("system_a").is_in(names) & pl.col("system_b").is_in(names))
        said = page.locator(".audit .said-live").inner_text()
        assert _share(cells, names[0]) in said
        assert f"{names[0]} leads" in page.locator("[data-table='shares'] thead").inner_text()
        assert page.locator("[data-table='joint'] tbody tr").count() == 4


def test_the_same_system_twice_swaps_the_pair(open_page, audit, audit_path):
    page = open_page(audit_path)
    page.locator("#audit-first").select_option("1")
    assert page.locator("#audit-second").input_value() == "0"
    assert page.locator("#audit-large").inner_text() == audit.sentences()[0]


def test_options_that_are_left_out_are_left_out_of_the_share_and_the_curve(open_page, audit, audit_path, tmp_path):
    page = open_page(audit_path)
    first, second = audit.systems_at_start[:2]
    cells = audit.frame().filter(pl.col("system_a").is_in((first, second)) & pl.col("system_b").is_in((first, second)))
    page.locator("tr[data-option='random(train=0.2)'] input").uncheck()
    said = page.locator(".audit .said-live").inner_text()
    assert "Of the 10 set-ups that you left in (of 20)" in said
    assert _share(cells.filter(split="random(train=0.8)"), first) in said
    assert page.locator(".curve svg").get_attribute("aria-valuemax") == "10"
    assert page.locator("tr[data-option='random(train=0.2)'] td.number").first.inner_text() == "–"
    ET.parse(download(page, page.get_by_role("button", name="audit-curve.svg"), tmp_path))
    page.locator("tr[data-option='random(train=0.8)'] input").uncheck()
    assert page.locator(".audit .said-live").inner_text().startswith("No set-up is left")
    page.get_by_role("button", name="All options").click()
    assert "Of the 20 set-ups, " in page.locator(".audit .said-live").inner_text()


def test_a_cell_tells_its_decisions_and_numbers_by_pointer_and_keyboard(open_page, audit, audit_path, tmp_path):
    page = open_page(audit_path)
    first, second = audit.systems_at_start[:2]
    assert "The starting point" in page.locator(".audit .cell").inner_text()
    curve = page.locator(".curve svg")
    curve.focus()
    page.keyboard.press("Home")
    lowest = page.locator(".audit .cell").inner_text()
    assert "Set-up 1 of 20 by d_z" in lowest
    assert "a random 20 % of ratings as test" in lowest
    assert "instead of random(train=0.2)" in lowest
    back = pl.read_csv(download(page, page.get_by_role("button", name="audit-cells.csv"), tmp_path))
    row = back.sort("d_z").row(0, named=True)
    assert f"{first} {row['average_a']:.4f}, {second} {row['average_b']:.4f}" in lowest
    curve.focus()
    page.keyboard.press("ArrowRight")
    assert "Set-up 2 of 20" in page.locator(".audit .cell").inner_text()
    box = curve.bounding_box()
    curve.click(position={"x": box["width"] - 12, "y": 60})
    assert "Set-up 20 of 20" in page.locator(".audit .cell").inner_text()
    frame = audit.frame().filter(pl.col("system_a").is_in((first, second)) & pl.col("system_b").is_in((first, second)))
    assert back["p"].to_list() == pytest.approx(frame[back["cell"].to_list()]["p"].to_list(), rel=1e-5)


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 800}, {"width": 390, "height": 844}])
def test_no_label_of_the_curve_is_cut(open_page, audit_path, viewport):
    page = open_page(audit_path, viewport=viewport)
    labels = page.locator(".curve svg text").all_text_contents()
    assert "random 20 % of ratings" in " ".join(labels)
    assert not any("…" in label for label in labels)
    for label in page.locator(".curve svg text").all():
        box = label.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= viewport["width"]


def test_an_audit_against_a_baseline_opens_with_its_pair(open_page, audit, tmp_path):
    baseline = audit.systems_at_start[3]
    against = replace(audit, baseline=baseline)
    file = tmp_path / "baseline.html"
    file.write_text(audit_page(against), encoding="utf-8")
    page = open_page(file)
    assert page.locator("#audit-large").inner_text() == against.sentences(audit.systems_at_start[0], baseline)[0]
    assert page.locator("#audit-second option:checked").inner_text() == baseline
    assert against.facts()[0] == against.pair_facts(audit.systems_at_start[0], baseline)[0]


def test_an_audit_fits_a_phone_in_the_dark(open_page, audit_path):
    page = open_page(audit_path, viewport={"width": 360, "height": 740}, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator(".curve svg").bounding_box()["width"] <= 360
    # However long a name is.
    page.evaluate("for (const one of document.querySelectorAll('#audit-pair option')) one.textContent = 'x'.repeat(90)")
    page.evaluate("for (const one of document.querySelectorAll('.map th')) one.append('x'.repeat(90))")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    colour = "getComputedStyle(document.querySelector('.curve text[fill=\"#1c2430\"]')).fill"
    assert page.evaluate(colour) == page.evaluate("getComputedStyle(document.body).color")


def test_an_audit_can_be_read_without_a_script(open_page, audit, audit_path):
    page = open_page(audit_path, java_script_enabled=False, unfolded=False)
    assert page.locator("#audit-large").inner_text() == audit.sentences()[0]
    assert page.locator("noscript figure svg").count() == 3
    assert page.locator("noscript figure svg").first.is_visible()
    assert page.locator("[data-table='shares'] tbody tr").count() == 3
    assert not page.locator("#audit-pair").is_visible()


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 800}, {"width": 390, "height": 844}])
def test_over_several_datasets_the_sentence_and_the_forest_plot_are_on_the_first_screen(open_page, tmp_path, viewport):
    draws = np.random.default_rng(3)
    data = {f"dataset {k}": {"ours": draws.beta(2, 5, 90), "theirs": draws.beta(2, 6, 90)} for k in range(5)}
    written = tmp_path / "several.html"
    sections = across_sections(cf.compare_datasets(data))
    written.write_text(html_page("Which one?", sections, lead="5 datasets · 2 systems"), encoding="utf-8")
    page = open_page(written, viewport=viewport, unfolded=False)
    page.wait_for_timeout(300)
    box = page.locator("#answer figure .drawing").bounding_box()
    assert box["y"] + box["height"] <= viewport["height"]
    assert box["x"] + box["width"] <= viewport["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
