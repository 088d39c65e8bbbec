"""Foreign text reaches the browser inert, and what is hidden in it is seen."""

import re

import pytest

from common.safe_text import cited_turns, markdown, rationale, visible


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "![x](https://evil.example/pixel.png)",
        '<a href="https://evil.example" style="position:fixed">x</a>',
        "[x](https://evil.example)",
        "<https://evil.example>",
    ],
)
@pytest.mark.parametrize("render", [markdown, rationale, visible])
def test_hostile_text_makes_no_active_html(render, hostile):
    tags = " ".join(re.findall(r"<[^>]*>", render(hostile)))
    for active in ("script", "img", "style", "href", "src", "onerror"):
        assert active not in tags


def test_a_link_shows_where_it_would_have_led():
    html = markdown("[our shop](https://evil.example)")
    assert '<a class="inert" rel="noopener noreferrer nofollow">our shop</a>' in html
    assert "(https://evil.example)" in html


def test_a_reference_definition_cannot_hide_a_line():
    assert "secret order" in markdown("[m1]: <secret order>")


def test_headings_in_a_message_stay_out_of_the_page_outline():
    assert markdown("# Shouting") == '<p class="title">Shouting</p>'


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("a\u200bb", "ZWSP"),
        ("pay\u202eecila\u202c", "RLO"),
        ("a\u00adb", "SHY"),
        ("x\U000e0041\U000e0042", "TAG ×2"),
        ("bell\x07", "U+0007"),
        ("\u3164", "BLANK"),
        ("a\u200db", "ZWJ"),
    ],
)
@pytest.mark.parametrize("render", [visible, markdown])
def test_hidden_characters_are_shown(render, text, label):
    html = render(text)
    assert f">{label}</span>" in html
    assert not any(hidden in html for hidden in "\u200b\u202e\u202c\u00ad\U000e0041\x07\u3164\u200d")


@pytest.mark.parametrize(
    "text", ["👩\u200d👩\u200d👧", "می\u200cخواهم", "tab\tand\nline", "naïve – “quoted”"]
)
def test_ordinary_spelling_is_left_alone(text):
    assert visible(text) == text


def test_a_very_long_text_is_shown_without_markdown():
    assert markdown("*a* " * 20_000).startswith("<pre>*a* *a* ")


def test_citations_link_to_their_turn():
    html = rationale(
        'See [m7: "it is done"], [m2, m03 bot: «a b»], m3 and [m2–m4: none].', turns={2, 3, 4, 7}
    )
    assert '<q>it is done</q> <a href="#m7" class="t">turn 7</a>' in html
    assert '<a href="#m3" class="t">turn 3</a> and' in html
    two = '<a href="#m2" class="t">turn 2</a>, <a href="#m3" class="t">turn 3</a>'
    assert f"<q>a b</q> {two}" in html
    assert '<a href="#m2" class="t">turn 2</a>–<a href="#m4" class="t">4</a>: none' in html


def test_an_invented_quote_is_marked_and_not_linked():
    html = rationale('[m7: "I informed support"] [not in m7]', marked=True)
    assert '<span class="bad">not in turn 7</span>' in html
    assert "href" not in html
    assert "not in turns 7, 9" in rationale('[m7, m9: "I informed"] [not in m7, m9]', marked=True)


def test_marks_are_chips_only_where_the_machine_set_them():
    text = '[m7: "on its way"] [close] [m2: "*so* it is"] [verified]'
    html = rationale(text, marked=True)
    assert '<q>on its way</q> <a href="#m7" class="t">turn 7</a> <span class="near">close</span>' in html
    assert '<span class="good">verified</span>' in html
    assert "span" not in rationale(text)


def test_a_turn_that_does_not_exist_gets_no_link():
    assert rationale("m99 says so", turns={1}) == "<p>m99 says so</p>"


def test_code_and_longer_words_are_no_citations():
    assert "href" not in rationale("`m7`, item7, am7 and m7s", turns={7})


def test_the_block_of_verdicts_is_set_apart():
    html = rationale("I think so.\n\nVERDICTS\npolite_tone: TRUE")
    assert html == '<p>I think so.</p><pre class="verdicts">VERDICTS\npolite_tone: TRUE</pre>'


def test_a_search_that_found_nothing_rests_on_no_turn():
    assert cited_turns("[m1–m9: none] but m4") == {4}


def test_every_message_that_a_citation_names_is_cited_and_none_that_it_quotes():
    assert cited_turns('[m2, m03 bot: "as in m9"] and [m5–m6]') == {2, 3, 5, 6}
