"""The page of a bias."""

from __future__ import annotations

import cranfield as cf
from cranfield.reports.page import page
from cranfield.reports.sections.bias import bias_sections


def test_the_page_has_the_verdict_the_orders_and_what_cannot_be_known():
    ratings = cf.simulate.world(80, 60, 1_500, seed=1).ratings
    found = cf.bias(ratings, {"<b>": "random", "item mean": "average"}, groups=3, nonrelevant=10)
    html = page("Bias", bias_sections(found))
    assert "Ranking by popularity alone reaches" in html
    for title in ("The order under each protocol", "Times random", "What cannot be known", "By popularity group"):
        assert f">{title}</h2>" in html
    assert "<b>" not in html.split("<main")[1].split("</main>")[0].replace("&lt;b&gt;", "")
    assert 'id="figure-orders"' in html
