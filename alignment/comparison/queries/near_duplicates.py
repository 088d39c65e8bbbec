"""Near-duplicates among the chats of a run; cached once the run is finished."""

from alignment.comparison.queries.cached_documents import cached_document, hash_of
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.statistics.stratified_sampling import near_duplicate_groups
from labeling.chats.core.splits import Candidate

BODY_VERSION = 1


def near_duplicates(scope: Scope) -> list[list[int]]:
    """Groups of two or more near-duplicates in the scope's run, as chat ids in the run's order."""
    if scope.run is None:
        return []
    whole = Scope(scope.run.chat_set, scope.run)
    if scope.run.finished_at is None:
        return _groups(whole)
    pin = hash_of([Report.Kind.ALIKE.value, BODY_VERSION, scope.run.pk, scope.run.finished_at])
    row = cached_document(whole, kind=Report.Kind.ALIKE, pin=pin, body=lambda: {"groups": _groups(whole)})
    groups: list[list[int]] = row.body["groups"]
    return groups


def candidates_of(scope: Scope) -> dict[int, Candidate]:
    """Candidates (external id and hashes) by chat id, in the scope's order; one query."""
    columns = ("chat_id", "chat__external_id", "chat__content_hash", "chat__near_hash")
    return {chat: Candidate(*about) for chat, *about in scope.members.values_list(*columns)}


def _groups(whole: Scope) -> list[list[int]]:
    candidates = candidates_of(whole)
    ids = {one.external_id: chat for chat, one in candidates.items()}
    return [[ids[name] for name in group] for group in near_duplicate_groups(list(candidates.values()))]
