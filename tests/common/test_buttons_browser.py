"""A button with a long name wraps it: it never widens a page, and a short one never breaks."""

import pytest
from django.conf import settings
from playwright.sync_api import Page

pytestmark = pytest.mark.browser
LONG = ("Send " + "again " * 30, "x" * 200)
SHORT = "Deactivate account"
ROWS = {
    "alone": "{}",
    "actions": '<form class="actions"><a class="btn">Keep active</a>{}</form>',
    "heading": '<div class="split sec-head"><h2>Newest verdicts of this judge</h2>{}</div>',
    "warning": '<div class="call warn"><p>The judge cannot start on this machine.</p>{}</div>',
}


@pytest.mark.parametrize("row", ROWS)
def test_a_name_wraps_only_where_it_is_longer_than_its_row(page: Page, row: str) -> None:
    sheet = (settings.BASE_DIR / "common/static/common/base.css").read_text(encoding="utf-8")
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        heights = []
        for name in (SHORT, *LONG):
            button = f'<button class="btn main">{name}</button>'
            page.set_content(f'<style>{sheet}</style><main class="page">{ROWS[row].format(button)}</main>')
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (row, name[:20])
            box = page.locator("button").bounding_box()
            assert box is not None and box["x"] + box["width"] <= width
            assert page.evaluate("(b => b.scrollWidth <= b.clientWidth)(document.querySelector('button'))")
            heights.append(box["height"])
        assert heights[0] < 40 and (width > 390 or min(heights[1:]) > 40), heights
