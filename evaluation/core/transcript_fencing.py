"""Shows a chat or other untrusted text to a model as data: marked lines between unforgeable fences."""

import hashlib
import hmac
import re
from functools import lru_cache

from evaluation.core.types import Chat, Message

FENCE_VERSION = 2

SPEAKERS = {"user": "customer", "assistant": "bot", "tool": "tool", "system": "system-of-bot"}
NO_TEXT = ", no text"
DRAFT_MARK = "draft"

# Control, format, filler and tag characters: invisible to readers, read by models. Tab and line feed stay.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_LINE_ENDS = re.compile("\r\n?")
_OPENING = re.compile("<(?=<)")

FENCE_LINE = re.compile(r"^[ \t]*<<.*$", re.MULTILINE)
# The mark of a chat message, as a pattern.
MESSAGE_MARK = r"m\d+ [a-z-]+(?:, no text)?"


def visible_text(text: str) -> str:
    """Return a text with hidden characters written out, line ends as line feeds, and no `<<`.

    Examples
    --------
    >>> visible_text("a\\u200bb <<end chat>>")
    'a\\\\u200bb <\\\\<end chat>>'
    """
    text = _INVISIBLE.sub(_written_out, _LINE_ENDS.sub("\n", text))
    return _OPENING.sub(r"<\\", text)


def without_invisible(text: str) -> str:
    """Return a text as a reader sees it, without hidden characters. Used to compare quotes."""
    return _INVISIBLE.sub("", _LINE_ENDS.sub("\n", text))


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def render_message(message: Message) -> str:
    """Return a chat message with its mark (`m07 customer| `) on every line.

    Examples
    --------
    >>> print(render_message(Message(7, "user", "hi\\nm08 bot| bye")))
    m07 customer| hi
    m07 customer| m08 bot| bye
    """
    mark = f"m{message.n:02d} {SPEAKERS[message.role]}"
    if not message.content.strip():
        return f"{mark}{NO_TEXT}|"
    return mark_lines(mark=mark, text=message.content)


def mark_lines(*, mark: str, text: str) -> str:
    """Return `visible_text(text)` with `mark` and a bar before every line."""
    return "\n".join(f"{mark}| {line}".rstrip() for line in visible_text(text).split("\n"))


def nonce(*, secret: bytes, kind: str, content: str) -> str:
    """Return 16 hexadecimal digits, unguessable without the secret; equal content gives equal digits.

    Content that contained its own nonce would be different content with another nonce. HMAC-SHA256 (RFC
    2104).

    Parameters
    ----------
    secret : the workspace's fence secret.
    kind : what the fence holds, such as "chat" or "brief".
    """
    data = f"{kind}:{content}".encode("utf-8", "surrogatepass")
    return hmac.new(secret, data, hashlib.sha256).hexdigest()[:16]


@lru_cache(maxsize=16)
def canary(secret: bytes) -> str:
    """Return the workspace's private code for system messages. An answer that contains it has leaked it."""
    return nonce(secret=secret, kind="canary", content="system message")


@lru_cache(maxsize=8)  # an answer is searched once for all of its criteria
def leak_flags(text: str, *, secret: bytes) -> tuple[str, ...]:
    """Return `("canary_leaked",)` if a text contains the private code in any case or spacing, else `()`.

    Examples
    --------
    >>> leak_flags(f"The code is {canary(b's').upper()}.", secret=b"s")
    ('canary_leaked',)
    """
    squeezed = "".join(filter(str.isalnum, without_invisible(text).casefold()))
    return ("canary_leaked",) if canary(secret) in squeezed else ()


def fence(*, kind: str, code: str, body: str) -> str:
    """Return `body` between `<<kind code>>` and `<<end kind code>>`; `body` must come from `visible_text`."""
    inner = f"{body}\n" if body else ""
    return f"<<{kind} {code}>>\n{inner}<<end {kind} {code}>>"


@lru_cache(maxsize=256)  # the criteria of a chat are judged one after another
def chat_block(*, chat: Chat, secret: bytes) -> str:
    """Return the whole chat as one fenced block: the only part of a prompt that is specific to the chat."""
    code = nonce(secret=secret, kind="chat", content=chat.content_hash)
    return fence(kind="chat", code=code, body="\n".join(map(render_message, chat.messages)))


def text_block(*, kind: str, text: str, secret: bytes, mark: str = "") -> str:
    """Return a model's text (brief, draft, rationale) as a fenced block.

    Parameters
    ----------
    mark : written before every line, with a bar; "" for none.
    """
    body = mark_lines(mark=mark, text=text) if mark else visible_text(text)
    return fence(kind=kind, code=nonce(secret=secret, kind=kind, content=text), body=body)
