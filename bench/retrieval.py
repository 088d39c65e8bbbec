"""What retrieval finds for a shop's paraphrased questions and the demo's chats, how fast, at what length."""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from django.utils import timezone

from alignment.demo_workspace.services.demo_workspace import demo_ensure
from bench import Figure
from bench._files import WORDS
from bench._shop import places, recall, shop_articles, shop_needs
from evaluation.core.types import Article, Chat, Criterion, KnowledgeMode, Message, Passage, Setup
from evaluation.knowledge.core.articles import tokens_of
from evaluation.knowledge.core.retrieval import retrieve
from evaluation.prompts.core import reasoning_messages
from evaluation.prompts.queries.criteria import articles_of
from evaluation.prompts.queries.versions import champions, newest_versions
from evaluation.runs.queries.chats import core_chat
from labeling.models.chats import ChatSet
from labeling.models.rubric import Criterion as CriterionRow
from labeling.models.rubric import Tier

BUDGET = 1500  # tokens a call, the default of a judge's recipe
SMALL_BUDGET = 400
# The articles that decide a chat or confirm its facts, by the demo's own script; the other chats need none.
DECISIVE = {
    "demo-01": ("how_shoppers_pay",),
    "demo-02": ("how_shoppers_pay",),
    "demo-03": ("damaged_or_missing_items", "refunds"),
    "demo-04": ("damaged_or_missing_items", "refunds"),
    "demo-05": ("late_delivery",),
    "demo-06": ("allergy_and_illness",),
    "demo-07": ("address_change",),
    "demo-08": ("address_change",),
    "demo-09": ("weighed_items_and_holds",),
    "demo-10": ("refunds",),
    "demo-11": ("wren_plus", "tips"),
    "demo-13": ("wren_plus",),
    "demo-16": ("shopper_privacy",),
    "demo-17": ("refunds",),
    "demo-18": ("alcohol",),
    "demo-20": ("codes",),
    "demo-21": ("bottle_deposits",),
    "demo-22": ("how_shoppers_pay",),
    "demo-23": ("late_delivery",),
    "demo-24": ("allergy_and_illness",),
}
ARTICLES, PARAGRAPHS, PARAGRAPH_WORDS = 55, 5, 40
MILLISECONDS = 3.0
SECRET = b"bench"

Found = dict[str, tuple[Passage, ...]]


def figures() -> Iterator[Figure]:
    """Paraphrased questions; the demo's context criteria, one a call; then a larger, invented knowledge."""
    yield from paraphrased()
    chat_set = demo_ensure(first_day=timezone.now())
    criteria = context_criteria(chat_set)
    chats = {row.chat.external_id: core_chat(row.chat) for row in chat_set.members.select_related("chat")}
    calls = [(chat, one) for chat in chats.values() for one in criteria]
    static = round(fmean(prompt_tokens(chat, one, "static", ()) for chat, one in calls))
    for budget in (BUDGET, SMALL_BUDGET):
        yield from compared(chats, criteria, budget=budget, static=static)
    yield from timed_retrieval(list(chats.values()), criteria[0])


def paraphrased() -> Iterator[Figure]:
    """How many of a shop's 60 questions find the one passage that they need among the first."""
    found = places(shop_needs(), shop_articles())
    yield Figure("recall@5, paraphrased questions", recall(found, at=5), 0.75, "", floor=True)
    yield Figure("recall@10, paraphrased questions", recall(found, at=10), 0.8, "", floor=True)


def compared(
    chats: dict[str, Chat], criteria: Sequence[Criterion], *, budget: int, static: int
) -> Iterator[Figure]:
    """What retrieval within a budget costs and finds."""
    found = {
        (name, one.key): retrieve(chat=chat, criteria=[one], tokens=budget)[one.key]
        for name, chat in chats.items()
        for one in criteria
    }
    tokens = fmean(
        prompt_tokens(chats[name], one, "retrieved", found[name, one.key])
        for name in chats
        for one in criteria
    )
    hits = [any(found[name, one.key] for one in criteria) for name in chats]
    wanted = [(name, one.key, key) for name, keys in DECISIVE.items() for key in keys for one in criteria]
    got = [any(p.article.key == key for p in found[name, asked]) for name, asked, key in wanted]
    label = f"retrieved, {budget:,} tokens"
    yield Figure(f"prompt tokens, {label}; limit: static", tokens, static, "tokens")
    yield Figure(f"chats with a hit, {label}", 100 * fmean(hits), 100, "%", floor=True)
    yield Figure(f"deciding articles found, {label}", 100 * fmean(got), 90, "%", floor=True)


def context_criteria(chat_set: ChatSet) -> list[Criterion]:
    """The demo's criteria that need business knowledge, with all they may read."""
    rows = list(CriterionRow.objects.filter(rubric=chat_set.rubric, tier=Tier.CONTEXT).order_by("position"))
    versions, prompts, articles = newest_versions(criteria=rows), champions(criteria=rows), articles_of(rows)
    return [
        Criterion(
            key=row.key,
            question=versions[row.pk].question,
            definition=versions[row.pk].definition,
            tier="context",
            passes_when=versions[row.pk].passes_when,
            allow_na=versions[row.pk].allow_na,
            prompt=prompts[row.pk].text,
            articles=tuple(Article(v.article.key, v.number, v.title, v.text) for v in articles[row.pk]),
        )
        for row in rows
    ]


def prompt_tokens(chat: Chat, criterion: Criterion, mode: KnowledgeMode, passages: Sequence[Passage]) -> int:
    """About how many tokens the direct engine's request has."""
    setup = Setup(engine="direct", roles={}, knowledge=mode)
    messages = reasoning_messages(
        role="direct", chat=chat, criteria=[criterion], setup=setup, fence_secret=SECRET, passages=passages
    )
    return sum(tokens_of(len(message.text)) for message in messages)


def timed_retrieval(chats: Sequence[Chat], criterion: Criterion) -> Iterator[Figure]:
    """CPU milliseconds a chat, one criterion, the index built already."""
    criterion = replace(criterion, articles=invented_articles())
    many = [*chats, *(invented_chat(n) for n in range(200))]
    retrieve(chat=many[0], criteria=[criterion], tokens=BUDGET)
    started = time.process_time()
    for chat in many:
        retrieve(chat=chat, criteria=[criterion], tokens=BUDGET)
    spent = 1000 * (time.process_time() - started) / len(many)
    yield Figure(f"retrieval, a chat against {ARTICLES} articles, CPU", spent, MILLISECONDS, "ms")


def invented_articles() -> tuple[Article, ...]:
    """Articles of some 1,500 characters."""
    draw = random.Random(1)
    texts = (
        "\n\n".join(" ".join(draw.choices(WORDS, k=PARAGRAPH_WORDS)) for _ in range(PARAGRAPHS))
        for _ in range(ARTICLES)
    )
    return tuple(Article(f"article_{n:02}", 1, f"Article {n}", text) for n, text in enumerate(texts))


def invented_chat(number: int) -> Chat:
    """Ten messages of 18 words."""
    draw = random.Random(number)
    turns = (
        Message(n, "assistant" if n % 2 else "user", " ".join(draw.choices(WORDS, k=18)))
        for n in range(1, 11)
    )
    return Chat(str(number), tuple(turns))
