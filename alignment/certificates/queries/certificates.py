"""Certificates: whether they still hold, found out anew whenever they are read."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.utils import timezone

from alignment.certificates.core.body import differences, other_tier
from alignment.certificates.core.signatures import verifies
from alignment.comparison.core.disclosure_limit import FEWEST
from alignment.comparison.queries.disclosure import held_counts
from alignment.models.certificates import Certificate
from alignment.models.reports import Report
from common.problems import FieldProblem, InputProblem
from evaluation.gateway.current import current_endpoint
from evaluation.judges.queries.profiles import default_profile, profile_choice
from evaluation.judges.services.judges import judge_configs
from evaluation.models.judges import Judge
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.people import User
from labeling.models.rubric import Criterion

NO_DEFAULT = "there is no default profile: nobody can tell which judge would answer"
NO_PROMPT = "a criterion has no prompt any more"
CHANGED_TEXT = "its text was changed after it was signed"
NOT_OURS = "this workbench has not signed it"
NOT_ON_RECORD = "signed with a key of this workbench, which has no record of it"


@dataclass(frozen=True, slots=True)
class CertificateState:
    """`word` is valid, expired or revoked; `reasons` say why it does not hold."""

    word: str
    reasons: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the judge may be used as the certificate says."""
        return self.word == "valid"


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of a certificate that was shown: genuine, forged or unknown; its state if genuine."""

    word: str
    reason: str = ""
    certificate: Certificate | None = None
    state: CertificateState | None = None


def certificate_whole() -> QuerySet[Certificate]:
    """Certificates, newest first, with all that pages name."""
    return Certificate.objects.select_related("judge", "report", "issued_by", "revoked_by").order_by("-id")


def certificates_of_report(report: Report, *, user: User | AnonymousUser) -> list[Certificate]:
    """The certificates issued on a stored report, the oldest first, as far as the user may see them."""
    return certificates_shown(list(certificate_whole().filter(report=report).order_by("id")), user=user)


def certificates_shown(rows: Sequence[Certificate], *, user: User | AnonymousUser) -> list[Certificate]:
    """Those whose figures the user may be told: fewer than 10 held-out chats are for leads alone; one query.

    Decided by the labels of then, and by those of now.
    """
    if user.has_perm("labeling.see_holdout") or not rows:
        return list(rows)
    runs = {row.report.run_id for row in rows if row.report.run_id}
    counts = held_counts(runs)
    return [
        row
        for row in rows
        if not row.few_held_out and not few_held_out(counts, run=row.report.run_id, split=row.report.split)
    ]


def few_held_out(counts: Mapping[tuple[int, str], Mapping[str, int]], *, run: int | None, split: str) -> bool:
    """Whether on some criterion fewer than 10 held-out chats of a split that is covered are compared."""
    told = [by_split for (number, _), by_split in counts.items() if number == run]
    return any(n < FEWEST for one in told for name, n in one.items() if split in ("", name))


def certificate_state(certificate: Certificate) -> CertificateState:
    """Whether it holds now, and if not why."""
    return certificate_states([certificate])[certificate.pk]


def certificate_states(rows: Collection[Certificate]) -> dict[int, CertificateState]:
    """By id. The number of queries does not grow with the certificates."""
    now = timezone.now()
    changed = judge_changes([(row.judge, row.body) for row in rows])
    return {row.pk: _state(row, now, causes) for row, causes in zip(rows, changed, strict=True)}


def judge_changes(rows: Collection[tuple[Judge, Mapping[str, Any]]]) -> list[list[str]]:
    """What is not as it was for each judge and its certificate's body: prompt, model, rubric, knowledge."""
    keys = {entry["key"] for _, body in rows for entry in body["criteria"]}
    found = Criterion.objects.filter(key__in=keys).select_related("dimension")
    criteria = {row.key: row for row in found.order_by("rubric", "dimension__position", "position")}
    hashes = {pk: row.content_hash for pk, row in newest_versions(criteria=criteria.values()).items()}
    recipes = _recipe_changes([row for row in rows if row[0].kind == Judge.Kind.LACE], criteria)
    causes = [
        [*_rubric_changes(body, criteria, hashes), *recipes.get((judge.pk, _keys(body)), [])]
        for judge, body in rows
    ]
    return [list(dict.fromkeys(some)) for some in causes]


def certificate_verified(*, body: Any, signature: str) -> Verified:
    """Whether this workbench has signed this very body, and whether it still holds."""
    row = certificate_whole().filter(signature=signature).first()
    if row is not None:
        if not verifies(body, signature, row.public_key):
            return Verified("forged", CHANGED_TEXT)
        return Verified("genuine", certificate=row, state=certificate_state(row))
    if any(verifies(body, signature, key) for key in public_keys()):
        return Verified("unknown", NOT_ON_RECORD)
    return Verified("forged", NOT_OURS)


def public_keys() -> list[str]:
    """Every key that certificates were signed with, the oldest first."""
    keys = Certificate.objects.order_by("id").values_list("public_key", flat=True)
    return list(dict.fromkeys(keys))


def _state(row: Certificate, now: datetime, changes: Sequence[str]) -> CertificateState:
    reasons = [f"its time is over since {row.expires_at:%Y-%m-%d %H:%M} UTC"] if row.expires_at <= now else []
    if row.revoked_at is not None:
        return CertificateState("revoked", (row.reason, *reasons, *changes))
    reasons += changes
    return CertificateState("expired" if reasons else "valid", tuple(reasons))


def _keys(body: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(entry["key"] for entry in body["criteria"])


def _rubric_changes(
    body: Mapping[str, Any], criteria: Mapping[str, Criterion], hashes: Mapping[int, str]
) -> list[str]:
    """NB: a new guideline alone asks no new question; its version says the same."""
    causes = []
    for entry in body["criteria"]:
        row = criteria.get(entry["key"])
        if row is None or row.state == Criterion.State.RETIRED:
            causes.append(f"{entry['key']}: the criterion was retired")
        elif hashes[row.pk] != entry["question"]["hash"]:
            causes.append(f"{entry['key']}: the question was changed")
        elif row.tier != entry["tier"]:
            causes.append(other_tier(row.key))
    return causes


def _recipe_changes(
    rows: Sequence[tuple[Judge, Mapping[str, Any]]], criteria: Mapping[str, Criterion]
) -> dict[tuple[int, tuple[str, ...]], list[str]]:
    """What the default profile would ask otherwise today, by judge and criteria."""
    about = {(judge.pk, _keys(body)): judge for judge, body in rows}
    if not about:
        return {}
    try:
        profile = default_profile()
        if profile is None:
            return {key: [NO_DEFAULT] for key in about}
        choice, endpoint = profile_choice(profile), current_endpoint()
    except (InputProblem, FieldProblem) as problem:
        return {key: [f"nobody can tell which judge would answer: {problem}"] for key in about}
    scopes = [[row for key, row in criteria.items() if key in keys] for _, keys in about]
    today = judge_configs(choice=choice, scopes=scopes, endpoint=endpoint)
    return {
        key: [NO_PROMPT] if config is None else differences(judge.config, config)
        for (key, judge), config in zip(about.items(), today, strict=True)
    }
