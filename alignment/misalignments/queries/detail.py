"""One disagreement with its chat: labels, rationale, verdict, and the runs in which it was seen."""

from typing import Any

from alignment.chat_detail.queries.page import labels_and_adjudication
from alignment.chat_detail.queries.verdict_detail import verdict_detail
from alignment.models.misalignments import Misalignment
from alignment.reports.queries.knowledge_gaps import knowledge_mode
from evaluation.engines.core.flags import FlagWords, flags_in_words
from evaluation.engines.core.injection_detection import CHAT_FLAGS, chat_flags
from evaluation.models.runs import Verdict
from evaluation.prompts.queries.versions import newest_versions
from evaluation.runs.queries.chats import core_chat
from labeling.models.labels import Consensus

# Flags of a verdict that suggest a prompt injection in the chat.
HOSTILE = frozenset((*CHAT_FLAGS, "addresses_evaluation", "canary_leaked"))
CHANGES_SHOWN = 20


def hostile_flags(item: Misalignment, verdict: Verdict | None) -> tuple[FlagWords, ...]:
    """Signs of a prompt injection: flags of the verdict, and flags of the chat's own messages."""
    flags = [flag for flag in (verdict.flags if verdict else ()) if flag in HOSTILE]
    return flags_in_words([*flags, *chat_flags(core_chat(item.chat))])


def misalignment_page(item: Misalignment) -> dict[str, Any]:
    """Build the template context; the number of queries does not depend on the chat."""
    chat, criterion, run = item.chat, item.criterion, item.newest_run
    verdict = Verdict.objects.filter(run=run, chat=chat, criterion=criterion).first()
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
        "suspect": hostile_flags(item, verdict),
        "reads_knowledge": bool(knowledge_mode(run)),
        "history": item.history[:CHANGES_SHOWN],
        "sightings": item.sightings.select_related("run__judge").order_by("-run"),
        "causes": [(n, value, words) for n, (value, words) in enumerate(Misalignment.Cause.choices, 1)],
    }
