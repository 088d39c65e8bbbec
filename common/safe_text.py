"""Untrusted text as safe HTML: sanitised Markdown, visible hidden characters, citations as links."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from html import escape
from itertools import groupby
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from common.citations import CITATION, Citation, citations

MARKDOWN_LIMIT = 50_000  # characters; longer texts stay plain, since Markdown could get slow

_TAGS = {
    *("p", "br", "hr", "ul", "ol", "li", "blockquote", "pre", "code"),
    *("em", "strong", "a", "q", "span", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"a": {"href", "rel"}, "ol": {"start"}}
_CLASSES = {"a": {"t", "inert"}, "span": {"url", "good", "near", "bad"}, "p": {"title"}}
_INERT: dict[str, str | int | float] = {"class": "inert", "rel": "noopener noreferrer nofollow"}

_SHORT_NAMES = {
    0x00AD: "SHY",
    0x061C: "ALM",
    0x180E: "MVS",
    0x200B: "ZWSP",
    0x200C: "ZWNJ",
    0x200D: "ZWJ",
    0x200E: "LRM",
    0x200F: "RLM",
    0x2028: "LS",
    0x2029: "PS",
    0x202A: "LRE",
    0x202B: "RLE",
    0x202C: "PDF",
    0x202D: "LRO",
    0x202E: "RLO",
    0x2060: "WJ",
    0x2066: "LRI",
    0x2067: "RLI",
    0x2068: "FSI",
    0x2069: "PDI",
    0xFEFF: "BOM",
}
_BLANK_LETTERS = {0x115F, 0x1160, 0x2800, 0x3164, 0xFFA0}  # invisible, although they are letters
_JOINED = {"Lo", "Mn", "Mc", "So", "Sk"}  # emoji and scripts in which a joiner is ordinary spelling
_HIDDEN_CATEGORIES = {"Cf", "Cc", "Zl", "Zp", "Co", "Cn"}

_MARK = re.compile(
    r"\s?\[(?:(?P<found>verified|close|too short)|not in (?P<not_in>m\d{1,6}(?:, m\d{1,6})*))\]"
)
_MARK_CLASSES = {"verified": "good", "close": "near", "too short": "near"}
_BLOCK = re.compile(r"^\W*VERDICTS\W*$", re.MULTILINE)
_TURNS = re.compile(
    r"\[m0*(?P<first>\d{1,4})(?:\s*[–-]\s*m0*(?P<last>\d{1,4}))?(?::\s*(?P<none>none))?\]"
    r"|\bm0*(?P<bare>\d{1,4})\b"
)
_NAMED_CHATS = re.compile(r"\bchats?\s+\d{1,3}(?:(?:,|\s+and|,\s+and|\s*[–&])\s*\d{1,3})*", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_UNUSUAL = re.compile(r"[^\t\n\r -~]+")


def hidden_mark(char: str, before: str = "", after: str = "") -> str:
    """
    Return the label of an invisible or reordering character, "" for an ordinary one.

    Parameters
    ----------
    char : one character.
    before, after : its neighbours; a joiner inside an emoji or an Indic or Arabic word is ordinary.

    Examples
    --------
    >>> hidden_mark("\\u200b"), hidden_mark("\\u202e"), hidden_mark("a"), hidden_mark("\\n")
    ('ZWSP', 'RLO', '', '')
    """
    code = ord(char)
    if char in "\t\n\r" or " " <= char <= "~":
        return ""
    if char in "\u200c\u200d" and _joins(before) and _joins(after):
        return ""
    if 0xE0000 <= code <= 0xE007F:
        return "TAG"
    if 0xE0100 <= code <= 0xE01EF:
        return "VS"
    if code in _BLANK_LETTERS:
        return "BLANK"
    if unicodedata.category(char) in _HIDDEN_CATEGORIES:
        return _SHORT_NAMES.get(code, f"U+{code:04X}")
    return ""


def _joins(char: str) -> bool:
    return bool(char) and unicodedata.category(char) in _JOINED


def visible(text: str) -> str:
    """
    Return plain text as HTML: escaped, with each hidden character as a small mark.

    Examples
    --------
    >>> visible("a<b")
    'a&lt;b'
    >>> visible("a\\u200b\\u200bb")
    'a<span class="hid" title="ZERO WIDTH SPACE, 2 in a row">ZWSP ×2</span>b'
    """
    return _show_hidden(escape(text))


def _show_hidden(html: str) -> str:
    """Mark hidden characters in HTML whose attributes contain none."""
    return _UNUSUAL.sub(_show_hidden_of, html)


def _show_hidden_of(found: re.Match[str]) -> str:
    html, start = found.string, found.start()
    labels = [
        hidden_mark(char, html[i - 1 : i], html[i + 1 : i + 2]) for i, char in enumerate(found[0], start)
    ]
    parts = []
    for label, run in groupby(range(len(labels)), key=labels.__getitem__):
        positions = list(run)
        chars = found[0][positions[0] : positions[-1] + 1]
        parts.append(_mark(label, chars) if label else chars)
    return "".join(parts)


def _mark(label: str, chars: str) -> str:
    name = unicodedata.name(chars[0], f"U+{ord(chars[0]):04X}")
    if len(chars) == 1:
        return f'<span class="hid" title="{name}">{label}</span>'
    return f'<span class="hid" title="{name}, {len(chars)} in a row">{label} ×{len(chars)}</span>'


def markdown(text: str) -> str:
    """
    Render Markdown (CommonMark and tables) as sanitised HTML: no raw HTML, no images, inactive links.

    The address of a link is shown as text after it.

    Examples
    --------
    >>> markdown("*hi* <b>you</b>")
    '<p><em>hi</em> &lt;b&gt;you&lt;/b&gt;</p>'
    """
    return _render(text, _PLAIN, {})


def rationale(text: str, *, turns: Collection[int] | None = None, marked: bool = False) -> str:
    """
    Render a rationale's Markdown with its citations (`[m7: "…"]`, `m7`) as links to #m7.

    Parameters
    ----------
    turns : the numbers of the chat's messages; any other number gets no link. None links every number.
    marked : whether quotes were checked; then the marks `[verified]`, `[close]`, `[too short]` and
        `[not in m7]` become chips.

    Examples
    --------
    >>> rationale("See m7.")
    '<p>See <a href="#m7" class="t">turn 7</a>.</p>'
    >>> rationale('See [m7: "no one"] [not in m7].', marked=True)
    '<p>See <q>no one</q> <span class="bad">not in turn 7</span>.</p>'
    """
    prose, block = _without_block(text)
    return _render(prose, _CITING, {"turns": turns, "marked": marked}) + block


def numbered_chats(text: str, links: Mapping[int, str]) -> str:
    """
    Render Markdown with chat numbers (“chat 3”, “chats 1 and 4”) as links to the addresses in `links`.

    Examples
    --------
    >>> numbered_chats("Chats 1 and 9 differ.", {1: "/chats/7/"})
    '<p>Chats <a href="/chats/7/" class="t">1</a> and 9 differ.</p>'
    """
    return _render(text, _NUMBERING, {"chats": links})


def _without_block(text: str) -> tuple[str, str]:
    """Separate the prose from the block of verdicts at its end; return that as preformatted text."""
    marks = list(_BLOCK.finditer(text))
    if not marks:
        return text, ""
    start = marks[-1].start()
    return text[:start], f'<pre class="verdicts">{visible(text[start:].strip())}</pre>'


def cited_turns(text: str) -> set[int]:
    """
    Return the numbers of the messages that a rationale cites as evidence.

    Examples
    --------
    >>> sorted(cited_turns('[m2: "no"] against m4 and [m7–m9], but [m1–m9: none]'))
    [2, 4, 7, 8, 9]
    """
    quotes = (quote for citation in citations(text) for quote in citation.quotes)
    turns = {number for quote in quotes for number in quote.messages}
    for match in _TURNS.finditer(CITATION.sub(" ", text)):
        if match["none"]:  # an absence cites the searched range
            continue
        first = int(match["first"] or match["bare"])
        last = int(match["last"] or first)
        turns.update(range(first, min(last, first + 200) + 1))
    return turns


def _render(text: str, parser: MarkdownIt, environment: dict[str, Any]) -> str:
    if len(text) > MARKDOWN_LIMIT:
        return f"<pre>{visible(text)}</pre>"
    html = nh3.clean(
        parser.render(text, environment).strip(),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        allowed_classes=_CLASSES,
        url_schemes=set(),
        link_rel=None,
    )
    return _show_hidden(html)


def _plain_headings(state: StateCore) -> None:
    """Turn headings inside a message into bold paragraphs: they must not join the page's outline."""
    for token in state.tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = "p"
            token.attrs = {"class": "title"} if token.nesting == 1 else {}


def _parser(*rules: Callable[[StateCore], None]) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table")
    # NB: a reference definition hides its line, so a chat could hide text in one.
    parser.disable(["image", "reference"])
    for rule in rules:
        parser.core.ruler.push(rule.__name__, rule)
    return parser


def _inert_links(state: StateCore) -> None:
    for block in state.tokens:
        if block.type == "inline" and block.children:
            block.children = list(_without_targets(block.children))


def _without_targets(tokens: list[Token]) -> Iterable[Token]:
    target, label = "", ""
    for token in tokens:
        if token.type == "link_open":
            target, label = str(token.attrs.get("href", "")), ""
            token.attrs = dict(_INERT)
        elif token.type == "link_close" and label != target:
            yield from (token, *_element("span", "url", f" ({target})"))
            continue
        label += token.content
        yield token


def _turn_links(state: StateCore) -> None:
    known = state.env.get("turns")
    _each_text(state, lambda token: _linked(token.content, known, marked=state.env["marked"]))


def _chat_links(state: StateCore) -> None:
    links = state.env.get("chats", {})
    _each_text(state, lambda token: _with_chats(token, links))


def _each_text(state: StateCore, linked: Callable[[Token], Iterable[Token]]) -> None:
    """Replace every text outside links by `linked(text)`."""
    for block in state.tokens:
        if block.type == "inline" and block.children:
            block.children = list(_outside_links(block.children, linked))


def _outside_links(tokens: list[Token], linked: Callable[[Token], Iterable[Token]]) -> Iterable[Token]:
    inside_link = False
    for token in tokens:
        if token.type in {"link_open", "link_close", "span_open", "span_close"}:
            inside_link = token.nesting == 1
        if token.type == "text" and not inside_link:
            yield from linked(token)
        else:
            yield token


def _with_chats(token: Token, links: Mapping[int, str]) -> Iterable[Token]:
    end = 0
    for named in _NAMED_CHATS.finditer(token.content):
        for match in _NUMBER.finditer(token.content, named.start(), named.end()):
            if int(match[0]) in links:
                yield _text(token.content[end : match.start()])
                yield from _link(links[int(match[0])], match[0])
                end = match.end()
    yield _text(token.content[end:])


def _linked(text: str, known: Collection[int] | None, *, marked: bool) -> Iterable[Token]:
    """Yield a text with its citations as quotes and links, each with the mark behind it."""
    end = 0
    for citation in citations(text):
        yield from _between(text[end : citation.start], known, marked=marked)
        mark = _MARK.match(text, citation.end) if marked else None
        yield from _quotes(citation, known, mark)
        end = mark.end() if mark else citation.end
    yield from _between(text[end:], known, marked=marked)


def _quotes(citation: Citation, known: Collection[int] | None, mark: re.Match[str] | None) -> Iterable[Token]:
    """Yield the quotes in one bracket, each followed by the messages that it is from, and the mark."""
    for place, (messages, quotes) in enumerate(groupby(citation.quotes, key=lambda quote: quote.messages)):
        yield _text(" " if place else "")
        for quote in quotes:
            yield from (*_element("q", "", quote.words), _text(" "))
        if not (mark and mark["not_in"]):
            for at, number in enumerate(messages):
                yield _text(", " if at else "")
                yield from _named_turn(number, known)
    if mark:
        yield from (_text("" if mark["not_in"] else " "), *_chip(mark))


def _between(text: str, known: Collection[int] | None, *, marked: bool) -> Iterable[Token]:
    """Yield a text without quotes, with the turns that it names as links."""
    end = 0
    for mark in _MARK.finditer(text) if marked else ():
        yield from _named_turns(text[end : mark.start()], known)
        yield from (_text(" "), *_chip(mark))
        end = mark.end()
    yield from _named_turns(text[end:], known)


def _named_turns(text: str, known: Collection[int] | None) -> Iterable[Token]:
    end = 0
    for match in _TURNS.finditer(text):
        yield _text(text[end : match.start()])
        yield from _turns(match, known)
        end = match.end()
    yield _text(text[end:])


def _turns(match: re.Match[str], known: Collection[int] | None) -> Iterable[Token]:
    first, last = int(match["first"] or match["bare"]), match["last"]
    if known is not None and first not in known:
        yield _text(match[0])
        return
    yield from _turn_link(first)
    if last:
        yield from (_text("–"), *_turn_link(int(last), f"{int(last)}"))
    if match["none"]:
        yield _text(": none")


def _chip(mark: re.Match[str]) -> Iterable[Token]:
    if found := mark["found"]:
        return _element("span", _MARK_CLASSES[found], found)
    numbers = mark["not_in"].replace("m", "")
    return _element("span", "bad", f"not in turn{'s' if ',' in numbers else ''} {numbers}")


def _named_turn(number: int, known: Collection[int] | None) -> Iterable[Token]:
    return _turn_link(number) if known is None or number in known else (_text(f"m{number}"),)


def _turn_link(number: int, label: str = "") -> Iterable[Token]:
    return _link(f"#m{number}", label or f"turn {number}")


def _link(target: str, label: str) -> Iterable[Token]:
    yield Token("link_open", "a", 1, attrs={"href": target, "class": "t"})
    yield _text(label)
    yield Token("link_close", "a", -1)


def _element(tag: str, css_class: str, content: str) -> Iterable[Token]:
    attributes: dict[str, str | int | float] = {"class": css_class} if css_class else {}
    yield Token(f"{tag}_open", tag, 1, attrs=attributes)
    yield _text(content)
    yield Token(f"{tag}_close", tag, -1)


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


_PLAIN = _parser(_plain_headings, _inert_links)
_CITING = _parser(_plain_headings, _inert_links, _turn_links)
_NUMBERING = _parser(_plain_headings, _inert_links, _chat_links)
