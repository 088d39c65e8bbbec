"""One chat of a run: transcript, labels and verdicts, and how the judge decided."""

from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Exists, OuterRef
from django.urls import reverse

from alignment.chat_detail.queries.verdict_detail import core_criterion, verdict_detail
from alignment.comparison.queries.human_answers import HumanAnswer, human_answers
from alignment.comparison.queries.scope import Scope
from alignment.session_scores.queries import chat_scores
from alignment.statistics.calibration import MINIMUM_VERDICTS
from evaluation.core.types import Article
from evaluation.knowledge.core.retrieval import retrieve
from evaluation.models.judges import JudgePrompt
from evaluation.models.prompts import ArticleVersion, SnapshotItem
from evaluation.models.runs import Run, Verdict
from evaluation.prompts.queries.criteria import articles_of
from evaluation.prompts.queries.versions import newest_versions
from evaluation.runs.queries.chats import core_chat
from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, Consensus, Label
from labeling.models.rubric import Criterion, CriterionVersion

# Articles shown first, and the passages searched for them, in estimated tokens.
MATCHING_SHOWN, MATCHED_TOKENS = 3, 2_000


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one chat; mappings by criterion id."""

    criteria: list[Criterion]
    versions: dict[int, CriterionVersion]
    human: dict[int, HumanAnswer]
    verdicts: dict[int, Verdict]


def chat_page(*, scope: Scope, run: Run, chat: Chat, key: str, query: str) -> dict[str, Any]:
    """Build the template context; `key` is the open criterion, '' for the first disagreement."""
    rows = _Rows(
        criteria=scope.criteria,
        versions=newest_versions(criteria=scope.criteria),
        human=human_answers(scope, chat),
        verdicts={row.criterion_id: row for row in Verdict.objects.filter(run=run, chat=chat)},
    )
    lines = [_line(row, rows, run, chat, query) for row in rows.criteria]
    disagreements = [line for line in lines if line["differ"]]
    by_key = next((line for line in lines if line["criterion"]["key"] == key), None)
    focus = by_key or (disagreements or lines)[0]
    return {
        "chat": {"external_id": chat.external_id, "title": chat.title, "topic": chat.topic.name},
        "messages": chat.messages,
        "rows": _by_dimension(lines),
        "scores": chat_scores(scope, versions=rows.versions, human=rows.human, verdicts=rows.verdicts),
        "headline": _headline(scope, lines, disagreements),
        "criteria_count": len(lines),
        "differing_count": len(disagreements),
        "focus": _focus(focus, rows, run, chat),
        "judge": run.judge,
        "run": run,
        "rater": scope.rater,
        "ground_truth": scope.ground_truth,
        "is_demo": chat.origin == Chat.Origin.DEMO,
    }


def _line(row: Criterion, rows: _Rows, run: Run, chat: Chat, query: str) -> dict[str, Any]:
    human, verdict = rows.human.get(row.pk, HumanAnswer()), rows.verdicts.get(row.pk)
    version = rows.versions[row.pk]
    value = verdict.value if verdict else None
    compared = value is not None and bool(human.values)
    return {
        "criterion": {
            "key": row.key,
            "name": row.name,
            "question": version.question,
            "passes_when": version.passes_when,
            "url": reverse("alignment:criterion_detail", args=[row.key]),
            "definition": version.definition,
        },
        "id": row.pk,
        "dimension": row.dimension.name,
        "question": version.question,
        "human": human,
        "verdict": verdict,
        "compared": compared,
        "differ": compared and (not value) in human.values,
        "url": f"{reverse('alignment:chat', args=[run.pk, chat.pk])}?criterion={row.key}{query}#focus",
    }


def _by_dimension(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = list(dict.fromkeys(line["dimension"] for line in lines))
    return [
        {"dimension": {"name": name}, "rows": [line for line in lines if line["dimension"] == name]}
        for name in names
    ]


def _headline(scope: Scope, lines: list[dict[str, Any]], disagreements: list[dict[str, Any]]) -> str:
    compared = [line for line in lines if line["compared"]]
    agree = len(compared) - len(disagreements)
    who = "All raters" if scope.each_rater else scope.human_head
    text = f"{who} and judge agree on {agree} of {len(compared)} compared criteria."
    names = [line["criterion"]["name"] for line in disagreements]
    return f"{text} Disagreements: {', '.join(names)}." if names else text


def _focus(line: dict[str, Any], rows: _Rows, run: Run, chat: Chat) -> dict[str, Any]:
    criterion_id = line["id"]
    verdict, version = rows.verdicts.get(criterion_id), rows.versions[criterion_id]
    criterion = next(row for row in rows.criteria if row.pk == criterion_id)
    return {
        "criterion": line["criterion"],
        "criterion_id": criterion_id,
        "human": line["human"],
        "differ": line["differ"],
        **labels_and_adjudication(chat=chat, criterion_id=criterion_id),
        **verdict_detail(run, chat, verdict, criterion, version),
        **_knowledge(run, chat, criterion, version),
        "prompt_version": prompt_number(run, criterion),
        "calibration_url": _calibration_url(run, verdict, criterion),
    }


def _knowledge(
    run: Run, chat: Chat, criterion: Criterion, version: CriterionVersion
) -> dict[str, list[ArticleVersion]]:
    """Return the criterion’s articles: those that match the chat, best first, and the others."""
    articles = {row.article.key: row for row in _articles(run, criterion)}
    texts = tuple(Article(key, row.number, row.title, row.text) for key, row in articles.items())
    reads = replace(core_criterion(criterion, version), articles=texts)
    found = retrieve(chat=core_chat(chat), criteria=[reads], tokens=MATCHED_TOKENS)[criterion.key]
    matching = list(dict.fromkeys(passage.article.key for passage in found))[:MATCHING_SHOWN]
    return {
        "articles": [articles[key] for key in matching],
        "more_articles": [row for key, row in articles.items() if key not in matching],
    }


def _articles(run: Run, criterion: Criterion) -> list[ArticleVersion]:
    """Return the articles that the criterion read in the run; for an imported judge, those of today."""
    if run.judge.snapshot_id is None:
        return articles_of([criterion])[criterion.pk]
    items = SnapshotItem.objects.filter(snapshot=run.judge.snapshot_id, criterion=criterion)
    rows = items.select_related("article_version__article").order_by("article_version__article__key")
    return [row.article_version for row in rows]


def prompt_number(run: Run, criterion: Criterion) -> int | None:
    """Return the number of the prompt version that judged; None if imported, or judged by an unsaved text."""
    prompts = JudgePrompt.objects.filter(judge=run.judge_id, criterion=criterion)
    return prompts.values_list("prompt_version__number", flat=True).first()


def _calibration_url(run: Run, verdict: Verdict | None, criterion: Criterion) -> str:
    """Return where the verdict's probability is compared with labels; "" without one or with too few."""
    if verdict is None or verdict.p_true is None or not _calibrated(verdict):
        return ""
    return f"{reverse('alignment:criterion_report', args=[run.pk, criterion.key])}#reliability"


def _calibrated(verdict: Verdict) -> bool:
    """Return whether enough labels exist to compare the run's stated probabilities with; one query."""
    decided = Consensus.objects.filter(
        chat=OuterRef("chat"),
        criterion=OuterRef("criterion"),
        state__in=Consensus.ANSWERED,
    )
    stated = Verdict.objects.filter(run=verdict.run_id, criterion=verdict.criterion_id)
    stated = stated.filter(value__isnull=False, p_true__isnull=False)
    return stated.filter(Exists(decided)).count() >= MINIMUM_VERDICTS


def labels_and_adjudication(*, chat: Chat, criterion_id: int) -> dict[str, Any]:
    """Submitted labels on one criterion of a chat, and the adjudication in force; two queries."""
    place = {"chat": chat, "criterion_id": criterion_id}
    labels = Label.objects.filter(state=Label.State.SUBMITTED, **place).select_related("rater")
    return {
        "labels": [_label(row) for row in labels.order_by("rater__name")],
        "adjudication": Adjudication.objects.filter(replaced_at__isnull=True, **place).first(),
    }


def _label(row: Label) -> dict[str, Any]:
    return {
        "rater": row.rater.name,
        "value": row.value,
        "rationale": row.rationale,
        "turns": sorted({place["n"] for place in row.evidence}),
        "post_reveal": row.post_reveal,
    }
