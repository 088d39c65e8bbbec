"""The retrieved passages as the user message shows them."""

from collections.abc import Sequence

from evaluation.core.transcript_fencing import text_block, visible_text
from evaluation.core.types import Criterion, Passage, Size
from evaluation.prompts.core.parts import article_keys
from evaluation.prompts.core.texts import some_texts, texts


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
    blocks = (_block(passage, size=size, fence_secret=fence_secret) for passage in ordered)
    return texts(size)["knowledge_found"], *blocks, *_by_criterion(ordered, criteria=criteria, size=size)


def _block(passage: Passage, *, size: Size, fence_secret: bytes) -> str:
    article = passage.article
    title = " ".join(visible_text(article.title).split())
    if size == "compact":
        return text_block(kind="knowledge", text=f"{title}: {passage.text}", secret=fence_secret)
    block = text_block(kind="knowledge", text=passage.text, secret=fence_secret)
    return f"Article `{article.key}`, version {article.version}: {title}\n{block}"


def _by_criterion(
    passages: Sequence[Passage], *, criteria: Sequence[Criterion], size: Size
) -> tuple[str, ...]:
    heading = some_texts(size, "knowledge_by_criterion")
    if not heading:
        return ()
    shown_articles = {passage.article for passage in passages}
    lines = (f"- {c.key}: {article_keys(shown_articles.intersection(c.articles))}" for c in criteria)
    return ("\n".join((*heading, *lines)),)
