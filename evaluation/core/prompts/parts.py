"""The parts of a prompt that depend on the criteria: knowledge, questions, lists of keys."""

import hashlib
from collections.abc import Sequence
from typing import Literal

from evaluation.core.knowledge import group_articles
from evaluation.core.types import Article, Criterion, Role, Size

from .costar import HEADINGS, PREAMBLE, fill_knowledge, sections
from .texts import texts

Advocate = Literal["customer", "support"]


def in_prompt_order(criteria: Sequence[Criterion], *, order_seed: int) -> tuple[Criterion, ...]:
    """Return the criteria in an order fixed by the judge's seed, the same for every chat (shared prefix)."""
    return tuple(sorted(criteria, key=lambda c: hashlib.sha256(f"{order_seed}:{c.key}".encode()).digest()))


def argued_answer(*, side: Advocate, criterion: Criterion) -> bool:
    """Return the literal answer a side argues for: the customer the failing one, support the passing one.

    For "Did the bot state a wrong fact?" (passes when False) the customer argues True.
    """
    return criterion.passes_when if side == "support" else not criterion.passes_when


def knowledge_parts(criteria: Sequence[Criterion], *, size: Size) -> tuple[str, ...]:
    """Return the heading and each article once, or nothing when the group has no articles."""
    articles = group_articles(criteria)
    if not articles:
        return ()
    return (texts(size)["knowledge"], *(_article(article, size=size) for article in articles))


def _article(article: Article, *, size: Size) -> str:
    text = article.text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if size == "compact":
        return f"{article.title}: {text}"
    return f"## Article `{article.key}`, version {article.version}: {article.title}\n{text}"


def criterion_part(criterion: Criterion, *, size: Size) -> str:
    """Return one criterion as the judge reads it: its whole prompt, in compact size its Objective alone."""
    found = sections(criterion.prompt)
    if size == "compact":
        objective, _ = fill_knowledge(found.get("objective", ""), knowledge="")
        return objective or f"{criterion.question} {criterion.definition}"
    named = f"Knowledge for this criterion: {_article_keys(criterion)}"
    lines = [f"## Criterion `{criterion.key}`", f"Allowed answers: {allowed(criterion)}."]
    if criterion.question not in found.get("objective", ""):
        lines.append(f"Question: {criterion.question}")
    if "objective" not in found:
        lines.append(f"Definition: {criterion.definition}")
    has_slot = False
    for name in (PREAMBLE, *HEADINGS):
        if name in found:
            text, filled = fill_knowledge(found[name], knowledge=named)
            has_slot = has_slot or filled
            lines.append(f"### {name.capitalize()}\n{text}" if name else text)
    return "\n".join(lines if has_slot else [*lines, named])


def _article_keys(criterion: Criterion) -> str:
    keys = sorted({article.key for article in criterion.articles})
    return ", ".join(f"`{key}`" for key in keys) + "." if keys else "none."


def allowed(criterion: Criterion) -> str:
    """Return the answers a criterion allows, in words."""
    return "TRUE, FALSE or NOT_APPLICABLE" if criterion.allow_na else "TRUE or FALSE"


def _with_meaning(criterion: Criterion) -> str:
    return allowed(criterion).replace("TRUE", "TRUE (yes)").replace("FALSE", "FALSE (no)")


def questions(criteria: Sequence[Criterion]) -> tuple[str, ...]:
    """Return the bare questions, which a very small model has to read late."""
    return tuple(f"Question: {criterion.question}" for criterion in criteria)


def keys_part(criteria: Sequence[Criterion], *, role: Role, size: Size) -> str:
    """Return the keys a role answers, with the allowed answers, or for an advocate the one to argue for."""
    if role == "customer" or role == "support":
        lines = [_argued_line(criterion, side=role) for criterion in criteria]
        return "\n".join([texts(size)["keys_brief"], *lines])
    intro = texts(size)["keys_verdicts"]
    if size == "compact":
        return "\n".join([intro, "VERDICTS", *(f"{c.key}: {_with_meaning(c)}" for c in criteria)])
    return "\n".join([intro, *(f"- {c.key}: {allowed(c)}" for c in criteria)])


def _argued_line(criterion: Criterion, *, side: Advocate) -> str:
    value = argued_answer(side=side, criterion=criterion)
    word, yes_no = ("TRUE", "yes") if value else ("FALSE", "no")
    may_escape = "; NOT_APPLICABLE is allowed" if criterion.allow_na else ""
    return f"- {criterion.key}: {word}, that is, {yes_no} to the question “{criterion.question}”{may_escape}"
