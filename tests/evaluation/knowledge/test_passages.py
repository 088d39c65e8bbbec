"""Stored passages are read back as they were shown: words, place, version, rank and score."""

import pytest
from pytest_django import DjangoAssertNumQueries

from evaluation.knowledge.queries import passages_of
from evaluation.models.judges import Judge
from evaluation.models.prompts import ArticleVersion, KnowledgeArticle
from evaluation.models.runs import Passage, Run, Unit
from tests.factories.rows import make_chat, make_rubric

pytestmark = pytest.mark.django_db


@pytest.fixture
def units() -> list[Unit]:
    judge = Judge.objects.create(fingerprint="f", name="judge", config={})
    run = Run.objects.create(judge=judge)
    return [Unit.objects.create(run=run, chat=make_chat(), group=0) for _ in range(3)]


def test_passages_come_by_unit_and_criterion_best_first_in_one_query(
    units: list[Unit], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    polite, fact = make_rubric("polite", "fact").criteria.order_by("key").reverse()
    article = KnowledgeArticle.objects.create(key="tips")
    old, new = (
        ArticleVersion.objects.create(
            article=article, number=n, title="Tips", text=f"🥚 Tips {n}. Ask. Again.", content_hash=str(n)
        )
        for n in (1, 2)
    )
    for unit, criterion, version, rank, place, score in (
        (units[0], fact, new, 2, (0, 9), 1.5),
        (units[0], fact, new, 1, (10, 14), 2.5),
        (units[1], fact, old, 1, (2, 9), 0.5),
        (units[1], polite, new, 1, (2, 6), 0.25),
    ):
        Passage.objects.create(
            unit=unit,
            criterion=criterion,
            article_version=version,
            rank=rank,
            start=place[0],
            end=place[1],
            score=score,
        )
    with django_assert_num_queries(1):
        found = passages_of([unit.pk for unit in units])
    told = {
        place: [(p.key, p.version, p.text, p.rank, p.score) for p in passages]
        for place, passages in found.items()
    }
    assert told == {
        (units[0].pk, fact.pk): [("tips", 2, "Ask.", 1, 2.5), ("tips", 2, "🥚 Tips 2.", 2, 1.5)],
        (units[1].pk, fact.pk): [("tips", 1, "Tips 1.", 1, 0.5)],
        (units[1].pk, polite.pk): [("tips", 2, "Tips", 1, 0.25)],
    }
    assert passages_of([units[2].pk]) == {}
