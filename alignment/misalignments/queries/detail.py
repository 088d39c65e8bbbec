"""One disagreement with its chat: labels, rationale, verdict, and the runs in which it was seen."""

from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from alignment.chat_detail.queries.page import labels_and_adjudication
from alignment.chat_detail.queries.verdict_detail import verdict_detail
from alignment.misalignments.queries.misalignment_list import misalignments_shown
from alignment.misalignments.queries.triage import newest_verdict, triage_form
from alignment.models.misalignments import Misalignment
from common.inbox.subjects import Subject
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.labels import Consensus
from labeling.models.people import User


def misalignment_subjects(ids: Collection[int], user: User) -> dict[int, Subject]:
    """Return those of these disagreements that the user may open; the page is the chat in its newest run."""
    if not user.has_perm("labeling.see_judge"):
        return {}
    shown = misalignments_shown(user=user).filter(pk__in=ids)
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


def misalignment_page(item: Misalignment, *, user: User | AnonymousUser) -> dict[str, Any]:
    """Build the template context; the number of queries does not depend on the chat."""
    chat, criterion, run = item.chat, item.criterion, item.newest_run
    verdict = newest_verdict(item)
    version = newest_versions(criteria=[criterion])[criterion.pk]
    consensus = Consensus.objects.filter(chat=chat, criterion=criterion).first()
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
        "triage": triage_form(item, verdict, user=user),
        "sightings": item.sightings.select_related("run__judge").order_by("-run"),
    }
