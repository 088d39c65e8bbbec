"""Assembles a request part by part; the same input gives the same bytes."""

from collections.abc import Sequence

from evaluation.core.transcript_fencing import DRAFT_MARK, canary, chat_block, text_block, visible_text
from evaluation.core.types import Chat, Criterion, Passage, PromptMessage, Role, Setup, Size, Stance
from evaluation.prompts.core.examples import without_own_example
from evaluation.prompts.core.parts import (
    article_keys,
    criteria_parts,
    formatter_keys_part,
    in_prompt_order,
    keys_part,
    knowledge_parts,
    questions,
)
from evaluation.prompts.core.texts import some_texts, texts


def reasoning_messages(
    *,
    role: Role,
    chat: Chat,
    criteria: Sequence[Criterion],
    setup: Setup,
    fence_secret: bytes,
    evidence: tuple[str, ...] = (),
    again: bool = False,
    passages: Sequence[Passage] = (),
    argues: Stance | None = None,
) -> tuple[PromptMessage, PromptMessage]:
    """Return the system and user message of a reasoning role. They never ask for JSON.

    Up to and including the chat they are equal for all roles of a judge (unless the duty is in the system
    message), so that an endpoint can reuse the prefix.

    Parameters
    ----------
    role : names the duty text.
    evidence : what the role reads besides the chat: a draft or briefs.
    again : repeats the request for a brief that never came.
    passages : retrieved for the chat; with knowledge mode retrieved, whole articles are not shown.
    argues : the stance of an advocate; None for roles that give verdicts.

    Raises
    ------
    ValueError : two criteria have different versions of one article.
    """
    ordered = without_own_example(in_prompt_order(criteria, order_seed=setup.order_seed), chat=chat)
    size, in_user = setup.size, setup.role_in == "user"
    articles = () if setup.knowledge == "retrieved" else knowledge_parts(ordered, size=size)
    about = (*articles, *criteria_parts(ordered, setup=setup, fence_secret=fence_secret))
    retrieved = passage_parts(passages, criteria=ordered, size=size, fence_secret=fence_secret)
    start = (*some_texts(size, "purpose", "data_rule"), *_canary(size, fence_secret))
    how = some_texts(size, "rules", "answer_form")
    criteria_first = setup.layout == "criteria_first"
    before, after = (about, ()) if criteria_first else ((), (*retrieved, *about))
    duty = some_texts(size, role, *(["again"] if again else []))
    # A very small model copies text between the chat and its question.
    early, late = (evidence, ()) if size == "compact" else ((), evidence)
    system = (*start, *before, *early, *how, *(() if in_user else duty))
    user = (
        *(retrieved if criteria_first else ()),
        *some_texts(size, "chat"),
        chat_block(chat=chat, secret=fence_secret),
        *after,
        *late,
        *_ending(criteria=ordered, size=size, duty=duty if in_user else (), argues=argues),
    )
    return PromptMessage("system", system), PromptMessage("user", user)


def _canary(size: Size, secret: bytes) -> tuple[str, ...]:
    """Return the line with the private code; it is the same in every request of a workspace."""
    return tuple(text.replace("{{canary}}", canary(secret)) for text in some_texts(size, "canary"))


def _ending(
    *, criteria: Sequence[Criterion], size: Size, duty: tuple[str, ...], argues: Stance | None
) -> tuple[str, ...]:
    """Return what follows the data: duty, keys and a reminder of what is data.

    A very small model continues in the style of what it read last. It gets the reminder first, then one
    paragraph of question, duty and keys.
    """
    keys, closing = keys_part(criteria, argues=argues, size=size), texts(size)["closing"]
    if size == "compact":
        return closing, " ".join((*questions(criteria), *duty, keys))
    return *duty, keys, closing


def draft_parts(*, draft: str, size: Size, fence_secret: bytes) -> tuple[str, ...]:
    """Return the draft that the reflector audits, fenced and introduced as a colleague's."""
    return texts(size)["draft"], text_block(kind="draft", text=draft, secret=fence_secret, mark=DRAFT_MARK)


def brief_parts(
    *, role: Role, mark: str, brief: str | None, size: Size, fence_secret: bytes
) -> tuple[str, ...]:
    """Return an advocate's brief for the Judge, fenced, each line behind `mark`.

    Without a brief (None) the part states that this side gave none. Raises KeyError if the role has no texts.
    """
    if brief is None:
        return (texts(size)[f"no_brief_{role}"],)
    block = text_block(kind="brief", text=brief, secret=fence_secret, mark=mark)
    return texts(size)[f"brief_{role}"], block


def formatter_messages(
    *, rationale: str, criteria: Sequence[Criterion], size: Size, fence_secret: bytes
) -> tuple[PromptMessage, PromptMessage]:
    """Return the formatter's messages: the rationale and the keys, without chat, definitions or briefs."""
    user = (
        *some_texts(size, "rationale"),
        text_block(kind="text", text=rationale, secret=fence_secret),
        formatter_keys_part(criteria, size=size),
        *some_texts(size, "closing_formatter"),
    )
    return PromptMessage("system", some_texts(size, "formatter")), PromptMessage("user", user)


def passage_parts(
    passages: Sequence[Passage], *, criteria: Sequence[Criterion], size: Size, fence_secret: bytes
) -> tuple[str, ...]:
    """Return the heading, each passage once, and which criterion they are for; nothing without passages.

    Passages are ordered by article and place. Each is a part of its own, equal for every chat that finds it.
    """
    if not passages:
        return ()
    by_place = {(passage.article.key, passage.start): passage for passage in passages}
    ordered = [by_place[place] for place in sorted(by_place)]
    blocks = (_passage_block(passage, size=size, fence_secret=fence_secret) for passage in ordered)
    return (
        texts(size)["knowledge_found"],
        *blocks,
        *_articles_by_criterion(ordered, criteria=criteria, size=size),
    )


def _passage_block(passage: Passage, *, size: Size, fence_secret: bytes) -> str:
    article = passage.article
    title = " ".join(visible_text(article.title).split())
    if size == "compact":
        return text_block(kind="knowledge", text=f"{title}: {passage.text}", secret=fence_secret)
    block = text_block(kind="knowledge", text=passage.text, secret=fence_secret)
    return f"Article `{article.key}`, version {article.version}: {title}\n{block}"


def _articles_by_criterion(
    passages: Sequence[Passage], *, criteria: Sequence[Criterion], size: Size
) -> tuple[str, ...]:
    heading = some_texts(size, "knowledge_by_criterion")
    if not heading:
        return ()
    shown_articles = {passage.article for passage in passages}
    lines = (f"- {c.key}: {article_keys(shown_articles.intersection(c.articles))}" for c in criteria)
    return ("\n".join((*heading, *lines)),)
