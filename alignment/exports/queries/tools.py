"""Chats with their labels and verdicts, as other tools show them: a few queries per 200 chats."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from django.db.models import QuerySet

from alignment.exports.core import ToolAnswer, ToolChat, ToolCriterion, ToolRater
from alignment.exports.queries.lines import ExportRun, members_for
from common.jsonl import in_batches, iso
from evaluation.models.runs import RunChat, Verdict
from evaluation.prompts.queries.versions import newest_versions
from evaluation.runs.queries.steps import final_rationales
from labeling.chats.queries import criteria_of_set
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.labels import Label
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown
from labeling.transfer.queries.exports import CHATS_AT_ONCE

Questions = dict[int, ToolCriterion]
Answer = TypeVar("Answer", Label, Verdict)


def tool_criteria(chat_set: ChatSet) -> Questions:
    """Return the active criteria of the set's rubric with their newest text, by id, in the rubric's order."""
    rows = list(criteria_of_set(chat_set).filter(state=Criterion.State.ACTIVE))
    texts = newest_versions(criteria=rows)
    return {
        row.pk: ToolCriterion(row.key, text.question, text.definition, text.allow_na)
        for row in rows
        if (text := texts.get(row.pk)) is not None
    }


def tool_chats(
    chat_set: ChatSet, runs: Sequence[ExportRun], questions: Questions, user: User | None
) -> Iterator[ToolChat]:
    """Yield the set's chats in its order with the labels that count and the verdicts that were read.

    With a user, only what they may see.
    """
    rows = ChatSetMember.objects.filter(chat_set=chat_set).select_related("chat__topic").order_by("position")
    if user is not None:
        rows = rows.filter(chat__in=chats_shown(user=user).values("pk"))
    members = [(one, members_for(one, user)) for one in runs]
    for batch in in_batches(rows.iterator(CHATS_AT_ONCE), CHATS_AT_ONCE):
        ids = [row.chat_id for row in batch]
        labels = _labels(ids, questions)
        verdicts = {one.judge: _verdicts(one, chosen, ids, questions) for one, chosen in members}
        for row in batch:
            judged = {judge: found[row.chat_id] for judge, found in verdicts.items() if row.chat_id in found}
            yield ToolChat(
                external_id=row.chat.external_id,
                topic=row.chat.topic.key,
                split=row.split,
                messages=row.chat.messages,
                raters=labels.get(row.chat_id, []),
                judges=judged,
            )


def _labels(ids: Sequence[int], questions: Questions) -> dict[int, list[ToolRater]]:
    """Return the raters of each chat with their counted labels, by name."""
    found: dict[int, dict[str, ToolRater]] = {}
    labels = Label.objects.counted().filter(chat_id__in=ids, criterion_id__in=questions)
    for label in _in_order(labels.select_related("rater"), questions):
        by_name = found.setdefault(label.chat_id, {})
        rater = by_name.setdefault(label.rater.name, ToolRater(label.rater.name))
        rater.at = max(rater.at, iso(label.given_at))
        rater.active_ms += label.active_ms
        rater.answers.append(ToolAnswer(questions[label.criterion_id], label.value, label.rationale))
    return {chat: [by_name[name] for name in sorted(by_name)] for chat, by_name in found.items()}


def _verdicts(
    one: ExportRun, members: QuerySet[RunChat] | None, ids: Sequence[int], questions: Questions
) -> dict[int, list[ToolAnswer]]:
    """Return the verdicts that a run read, by chat."""
    chats = (
        ids if members is None else list(members.filter(chat_id__in=ids).values_list("chat_id", flat=True))
    )
    rows = Verdict.objects.filter(
        run=one.run, chat_id__in=chats, criterion_id__in=questions, state=Verdict.State.READ
    )
    verdicts = _in_order(rows.select_related("criterion"), questions)
    rationales = final_rationales(verdicts)
    found: dict[int, list[ToolAnswer]] = {}
    for row in verdicts:
        text = row.rationale or rationales.get(row.pk, "")
        answer = ToolAnswer(questions[row.criterion_id], row.value, text, row.p_true)
        found.setdefault(row.chat_id, []).append(answer)
    return found


def _in_order(rows: QuerySet[Answer], questions: Questions) -> list[Answer]:
    places = {pk: place for place, pk in enumerate(questions)}
    return sorted(rows, key=lambda row: (places[row.criterion_id], row.pk))
