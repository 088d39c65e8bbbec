"""One disagreement with its chat: labels, rationale, verdict, and the runs in which it was seen."""

from collections.abc import Collection
from typing import Any

from django.urls import reverse

from alignment.chat_detail.queries.page import labels_and_adjudication
from alignment.chat_detail.queries.verdict_detail import verdict_detail
from alignment.misalignments.queries.misalignment_list import hidden_runs, misalignments_listed
from alignment.models.misalignments import Misalignment
from alignment.reports.queries.knowledge_gaps import knowledge_mode
from common.inbox.subjects import Subject
from evaluation.engines.core.flags import FlagWords, flags_in_words
from evaluation.engines.core.injection_detection import CHAT_FLAGS, chat_flags
from evaluation.models.runs import Verdict
from evaluation.prompts.queries.versions import newest_versions
from evaluation.runs.queries.chats import core_chat
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.people.queries.visibility import accounts_with, holdout_chats

# Flags of a verdict that suggest a prompt injection in the chat.
HOSTILE = frozenset((*CHAT_FLAGS, "addresses_evaluation", "canary_leaked"))
CHANGES_SHOWN = 20


def hostile_flags(item: Misalignment, verdict: Verdict | None) -> tuple[FlagWords, ...]:
    """Signs of a prompt injection: flags of the verdict, and flags of the chat's own messages."""
    flags = [flag for flag in (verdict.flags if verdict else ()) if flag in HOSTILE]
    return flags_in_words([*flags, *chat_flags(core_chat(item.chat))])


def misalignment_subjects(ids: Collection[int], user: User) -> dict[int, Subject]:
    """Return those of these disagreements that the user may open; the page is the chat in its newest run."""
    if not user.has_perm("labeling.see_judge"):
        return {}
    shown = misalignments_listed(user=user, without=hidden_runs(user=user)).filter(pk__in=ids)
    rows = shown.select_related("chat", "criterion").defer("chat__messages", "chat__metadata")
    return {
        row.pk: Subject(
            title=f"{row.chat.external_id}, {row.criterion.name}",
            url=reverse(
                "alignment:chat",
                args=[row.newest_run_id, row.chat_id],
                query={"criterion": row.criterion.key},
            ),
            people=(row.owner_id,) if row.owner_id else (),
            text=row.note,
        )
        for row in rows
    }


def misalignment_page(item: Misalignment) -> dict[str, Any]:
    """Build the template context; the number of queries does not depend on the chat."""
    chat, criterion, run = item.chat, item.criterion, item.newest_run
    verdict = Verdict.objects.filter(run=run, chat=chat, criterion=criterion).first()
    version = newest_versions(criteria=[criterion])[criterion.pk]
    consensus = Consensus.objects.filter(chat=chat, criterion=criterion).first()
    holdout = holdout_chats().filter(chat=chat).exists()
    people = accounts_with("see_holdout" if holdout else "edit_prompts")
    focus = {
        "criterion": {"key": criterion.key, "name": criterion.name, "passes_when": version.passes_when},
        **labels_and_adjudication(chat=chat, criterion_id=criterion.pk),
        **verdict_detail(run, chat, verdict, criterion, version),
    }
    return {
        "item": item,
        "chat": chat,
        "messages": chat.messages,
        "criterion": criterion,
        "version": version,
        "human": consensus.state if consensus else "none",
        "verdict": verdict,
        "run": run,
        "focus": focus,
        "suspect": hostile_flags(item, verdict),
        "reads_knowledge": bool(knowledge_mode(run)),
        "thread": f"disagreement:{item.pk}",
        "people": people,
        "holdout": holdout,
        "history": item.history[:CHANGES_SHOWN],
        "sightings": item.sightings.select_related("run__judge").order_by("-run"),
        "causes": [(n, value, words) for n, (value, words) in enumerate(Misalignment.Cause.choices, 1)],
    }
