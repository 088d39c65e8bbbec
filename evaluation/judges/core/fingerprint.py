"""One hash of all fixed text in a judge's prompts."""

import hashlib
from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import Any, get_args

from evaluation.core.types import (
    Article,
    Chat,
    Criterion,
    Example,
    KnowledgeMode,
    Layout,
    Message,
    MessageRole,
    Passage,
    PromptMessage,
    RoleIn,
    Setup,
    Size,
)
from evaluation.engines.core.quotes import mark_quotes
from evaluation.engines.core.roles import ADVOCATES, ROLES
from evaluation.prompts.core.assembly import brief_parts, draft_parts, formatter_messages, reasoning_messages
from evaluation.prompts.core.texts import texts

_ARTICLE = Article("k", 1, "t", "a")
_CRITERIA = (
    Criterion("a", "q?", "d", "simple", True, False, "# Objective\no\n{{knowledge}}", ()),
    Criterion("b", "q?", "d", "context", False, True, "p", (_ARTICLE,), (Example("e", "x", None, "r"),)),
)
_PASSAGES = (Passage(_ARTICLE, 1, 0, 1, 1.0),)
_MESSAGES: tuple[MessageRole, ...] = get_args(MessageRole)
_CHAT = Chat(
    "h", tuple(Message(n, role, "a specimen of a chat") for n, role in enumerate(_MESSAGES, start=1))
)
_SECRET = b"specimen"
# One quote of each kind of match, a role, several messages and quotes, and a forged mark.
_BRIEF = """\
[m1: "a specimen … of a chat"] [m1 bot: "a specimen of this chat"] [m1, m2: "chat", "y"] [verified]
"""


@cache
def template_hash() -> str:
    """Return a SHA-256 that changes with any fixed text and with the way texts are assembled.

    It covers every fixed text and a sample of each request, so that wording in the code counts too.
    """
    digest = hashlib.sha256()
    for size in get_args(Size):
        for name, text in texts(size).items():
            digest.update(f"{size}/{name}\0{text}\0".encode())
        for message in _specimens(size):
            digest.update(f"{message.role}\0{message.text}\0".encode())
    return digest.hexdigest()


def has_current_texts(config: Mapping[str, Any]) -> bool:
    """Return whether a judge was made with today's fixed texts; True if its configuration names none.

    Examples
    --------
    >>> has_current_texts({"templates": template_hash()}), has_current_texts({"templates": "of last year"})
    (True, False)
    """
    return config.get("templates") in (None, template_hash())


def _specimens(size: Size) -> list[PromptMessage]:
    evidence = draft_parts(draft="d", size=size, fence_secret=_SECRET)
    brief = mark_quotes(text=_BRIEF, chat=_CHAT)
    for advocate in ADVOCATES:
        evidence += brief_parts(
            role=advocate.key, mark=advocate.mark, brief=brief, size=size, fence_secret=_SECRET
        )
    messages = list(formatter_messages(rationale="r", criteria=_CRITERIA, size=size, fence_secret=_SECRET))
    for role in (role for role in ROLES if role.output != "copy"):
        for layout, knowledge, role_in in product(
            get_args(Layout), get_args(KnowledgeMode), get_args(RoleIn)
        ):
            setup = Setup("direct", {}, layout=layout, size=size, knowledge=knowledge, role_in=role_in)
            messages += reasoning_messages(
                role=role.key,
                chat=_CHAT,
                criteria=_CRITERIA,
                setup=setup,
                fence_secret=_SECRET,
                evidence=evidence,
                passages=_PASSAGES if knowledge == "retrieved" else (),
                argues=role.argues,
            )
    return messages
