"""Delete what issues hold of chats whose text is deleted; counts and identities stay."""

from collections import defaultdict
from collections.abc import Collection

from django.db.models import Q

from alignment.issues.core.naming import name_of
from alignment.issues.core.phrases import text_to_compare
from alignment.issues.queries.texts import rationales
from alignment.models.issues import Issue, IssueChat, IssueNaming, IssueWeek
from evaluation.core.hashing import text_hash
from evaluation.models.prompts import TextVector
from evaluation.models.runs import ModelCall, TextBlock, Verdict

HASHES_AT_ONCE = 500


def issue_texts_delete(*, chats: Collection[int], instead: str, blocks: Collection[str]) -> list[int]:
    """Delete the text of these chats in terms, names and notes; return the issues that have no text left.

    A term stays while a chat with text has it. A name by a model goes with the first chat that it was written
    from; a note goes with the issue's last chat. `blocks` are the beginnings of prompt parts about chats, and
    `instead` replaces their text. Call it before the chats lose their own text.
    """
    issues = set(IssueChat.objects.filter(chat__in=chats).values_list("issue", flat=True))
    _delete_terms(issues, chats)
    named = _delete_namings(chats, instead=instead, blocks=blocks)
    for row in Issue.objects.filter(Q(pk__in=issues | named)):
        _rename(row, by_model=row.pk in named)
    kept = IssueChat.objects.filter(issue__in=issues, chat__text_deleted_at=None).exclude(chat__in=chats)
    empty = sorted(issues - set(kept.values_list("issue", flat=True)))
    Issue.objects.filter(pk__in=empty).update(note="", summary="")
    for row in Issue.objects.filter(pk__in=empty):
        Issue.objects.filter(pk=row.pk).update(name=f"Issue {row.pk}", name_by=Issue.NameBy.TERMS)
    return empty


def embedded_texts_delete(*, chats: Collection[int], instead: str) -> None:
    """Delete the embeddings of these chats' rationales, and the rationales in the requests for them.

    Call it before calls and verdicts lose their text: an embedding is found by it.
    """
    if not TextVector.objects.exists():
        return
    verdicts = list(Verdict.objects.filter(chat__in=chats).values_list("pk", flat=True))
    digests = sorted({text_hash(text_to_compare(text)) for text in rationales(verdicts) if text})
    for start in range(0, len(digests), HASHES_AT_ONCE):
        part = digests[start : start + HASHES_AT_ONCE]
        TextVector.objects.filter(content_hash__in=part).delete()
        TextBlock.objects.filter(pk__in=part).update(text=instead)


def _delete_terms(issues: Collection[int], chats: Collection[int]) -> None:
    gone = set(chats)
    bits: dict[tuple[int, object], int] = defaultdict(int)
    rows = IssueChat.objects.filter(issue__in=issues, chat__text_deleted_at=None)
    for issue, week, chat, has in rows.values_list("issue", "week", "chat", "bits").iterator():
        if chat not in gone:
            bits[issue, week] |= has
    for row in IssueWeek.objects.filter(issue__in=issues).exclude(terms=[]):
        # NB: a place stays empty, because the bits of other chats count places.
        kept = [
            term if bits[row.issue_id, row.week] >> place & 1 else "" for place, term in enumerate(row.terms)
        ]
        if kept != row.terms:
            row.terms = kept if any(kept) else []
            row.save(update_fields=["terms"])


def _delete_namings(chats: Collection[int], *, instead: str, blocks: Collection[str]) -> set[int]:
    """Delete the requests and answers of models that read one of these chats; return their issues."""
    gone, starts = set(chats), Q(pk=None)
    for start in blocks:
        starts |= Q(text__startswith=start)
    found = [row for row in IssueNaming.objects.exclude(chats=[]) if not gone.isdisjoint(row.chats)]
    for row in found:
        IssueNaming.objects.filter(pk=row.pk).update(request=None, chats=[])
        if row.is_open:
            IssueNaming.objects.filter(pk=row.pk).update(state=IssueNaming.State.CANCELLED, lease=None)
        if row.call_id is None:
            continue
        call = ModelCall.objects.only("key", "parts").get(pk=row.call_id)
        digests = {digest for _, parts in call.parts for digest in parts}
        TextBlock.objects.filter(starts, pk__in=digests).update(text=instead)
        # NB: under its old key the same question would find this empty answer and not be asked again.
        key = text_hash(f"deleted {call.pk} {call.key}")
        ModelCall.objects.filter(pk=call.pk).update(key=key, reply="", thinking="", logprobs=None)
    return {row.issue_id for row in found}


def _rename(row: Issue, *, by_model: bool) -> None:
    """Name an issue by the terms that are left, unless a user named it."""
    if row.name_by == Issue.NameBy.PERSON or (row.name_by == Issue.NameBy.MODEL and not by_model):
        return
    week = row.weeks.exclude(terms=[]).order_by("-week").first()
    terms = [term for term in week.terms if term] if week else []
    row.name, row.summary = name_of(terms, otherwise=f"Issue {row.pk}"), ""
    row.name_by = Issue.NameBy.TERMS
    row.save(update_fields=["name", "summary", "name_by"])
