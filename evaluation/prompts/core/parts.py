"""The parts of a prompt that depend on the criteria: knowledge, questions, lists of keys."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache

from evaluation.core.types import Article, Criterion, Setup, Size, Stance
from evaluation.knowledge.core.articles import group_articles
from evaluation.prompts.core.costar import HEADINGS, PREAMBLE, fill_knowledge, sections
from evaluation.prompts.core.examples import worked_examples
from evaluation.prompts.core.texts import texts


def in_prompt_order(criteria: Sequence[Criterion], *, order_seed: int) -> tuple[Criterion, ...]:
    """Return the criteria in an order set by the judge's seed, equal for every chat (shared prefix)."""
    return tuple(sorted(criteria, key=lambda c: hashlib.sha256(f"{order_seed}:{c.key}".encode()).digest()))


def argued_answer(criterion: Criterion, *, argues: Stance) -> bool:
    """Return the literal answer that an advocate of this stance argues for.

    Examples
    --------
    >>> wrong_fact = Criterion("wrong_fact", "Wrong fact?", "", "context", False, True, "", ())
    >>> argued_answer(wrong_fact, argues="failing")
    True
    """
    return criterion.passes_when if argues == "passing" else not criterion.passes_when


def knowledge_parts(criteria: Sequence[Criterion], *, size: Size) -> tuple[str, ...]:
    """Return the heading and each article once; nothing if the group has no articles.

    Raises ValueError if two criteria have different versions of one article.
    """
    articles = group_articles(criteria)
    if not articles:
        return ()
    return (texts(size)["knowledge"], *(_article(article, size=size) for article in articles))


@lru_cache(maxsize=256)  # an article is the same for every chat
def _article(article: Article, *, size: Size) -> str:
    text = article.text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if size == "compact":
        return f"{article.title}: {text}"
    return f"## Article `{article.key}`, version {article.version}: {article.title}\n{text}"


def criteria_parts(criteria: Sequence[Criterion], *, setup: Setup, fence_secret: bytes) -> tuple[str, ...]:
    """Return each criterion's whole prompt; nothing in compact size, where the question comes at the end."""
    if setup.size == "compact":
        return ()
    searched, seed = setup.knowledge == "retrieved", setup.order_seed
    parts = (_criterion_part(one, searched, setup.size, seed, fence_secret) for one in criteria)
    return (texts(setup.size)["criteria"], *parts)


@lru_cache(maxsize=256)  # a criterion's part is the same for every chat
def _criterion_part(
    criterion: Criterion, searched: bool, size: Size, order_seed: int, fence_secret: bytes
) -> str:
    texts_by_name = sections(criterion.prompt)
    named = f"Knowledge for this criterion: {_knowledge_of(criterion, searched=searched)}"
    lines = [f"## Criterion `{criterion.key}`", f"Allowed answers: {allowed(criterion)}."]
    if criterion.question not in " ".join(texts_by_name.get("objective", "").split()):
        lines.append(f"Question: {criterion.question}")
    if "objective" not in texts_by_name:
        lines.append(f"Definition: {criterion.definition}")
    worked = worked_examples(criterion, size=size, order_seed=order_seed, fence_secret=fence_secret)
    if worked:
        texts_by_name["examples"] = "\n\n".join(filter(None, (texts_by_name.get("examples"), worked)))
    has_slot = False
    for name in (PREAMBLE, *HEADINGS):
        if name in texts_by_name:
            text, filled = fill_knowledge(texts_by_name[name], knowledge=named)
            has_slot = has_slot or filled
            lines.append(f"### {name.capitalize()}\n{text}" if name else text)
    return "\n".join(lines if has_slot else [*lines, named])


def _knowledge_of(criterion: Criterion, *, searched: bool) -> str:
    """Return what a criterion's part says about its knowledge; the part is equal for every chat."""
    if searched and criterion.articles:
        return "the passages found for this chat, where there are any."
    return f"{article_keys(criterion.articles)}."


def article_keys(articles: Iterable[Article]) -> str:
    """Return the keys of the articles, each once, or "none"."""
    return ", ".join(f"`{key}`" for key in sorted({article.key for article in articles})) or "none"


def allowed(criterion: Criterion) -> str:
    """Return the answers that a criterion allows, in words.

    Examples
    --------
    >>> allowed(Criterion("polite", "Polite?", "", "simple", True, False, "", ()))
    'TRUE or FALSE'
    """
    *before, last = _words(criterion)
    return f"{', '.join(before)} or {last}"


def _words(criterion: Criterion) -> list[str]:
    """Return the allowed answers. The key decides whether TRUE or FALSE is first: a model can lean to it."""
    words = ["TRUE", "FALSE"]
    if hashlib.sha256(criterion.key.encode()).digest()[0] % 2:
        words.reverse()
    return [*words, *(["NOT_APPLICABLE"] if criterion.allow_na else [])]


def questions(criteria: Sequence[Criterion]) -> tuple[str, ...]:
    """Return what compact size asks: the first paragraph of each Objective, else the bare question.

    Measured on a model of 135 million parameters: with the whole Objective its answers were repetitive.
    """
    return tuple(f"Question: {_first_paragraph(c) or c.question}" for c in criteria)


def _first_paragraph(criterion: Criterion) -> str:
    paragraph = sections(criterion.prompt).get("objective", "").split("\n\n")[0]
    return " ".join(paragraph.split())


def keys_part(criteria: Sequence[Criterion], *, argues: Stance | None, size: Size) -> str:
    """Return the form of the VERDICTS block; for an advocate, the answers to argue for.

    The form itself gives no verdict: each of its lines has every answer that the criterion allows.
    """
    if argues is not None:
        return _argued_part(criteria, argues=argues, size=size)
    intro = texts(size)["keys_verdicts"]
    if size == "compact":
        return f"{intro} {', '.join(map(_block_lines, criteria))}."
    return "\n".join([intro, "", "VERDICTS", *(f"{c.key}: {allowed(c)}" for c in criteria)])


def _block_lines(criterion: Criterion) -> str:
    return " or ".join(f"`{criterion.key}: {word}`" for word in _words(criterion))


def _argued_part(criteria: Sequence[Criterion], *, argues: Stance, size: Size) -> str:
    intro = texts(size)["keys_brief"]
    answers = [(c, argued_answer(c, argues=argues)) for c in criteria]
    if size == "compact":
        return f"{intro} {', '.join(f'{_literal(answer)} to {c.key}' for c, answer in answers)}."
    return "\n".join([intro, *(_argued_line(c, answer) for c, answer in answers)])


def _argued_line(criterion: Criterion, answer: bool) -> str:
    may_escape = "; NOT_APPLICABLE is allowed" if criterion.allow_na else ""
    return f"- {criterion.key}: {_literal(answer)} to the question “{criterion.question}”{may_escape}"


def _literal(answer: bool) -> str:
    return "TRUE, that is, yes" if answer else "FALSE, that is, no"


def formatter_keys_part(criteria: Sequence[Criterion], *, size: Size) -> str:
    """Return the keys that the formatter copies, with the allowed conclusions."""
    intro = texts(size)["keys_formatter"]
    if size == "compact":
        return f"{intro} {', '.join(criterion.key for criterion in criteria)}"
    lines = (f"- {c.key}: true, false{', not_applicable' if c.allow_na else ''} or unclear" for c in criteria)
    return "\n".join([intro, *lines])
