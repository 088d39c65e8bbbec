"""Certificates and their validity, which is checked at each read."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet
from django.utils import timezone

from alignment.certificates.core.body import DEFAULT, certified, differences, other_tier
from alignment.certificates.core.signatures import verifies
from alignment.certificates.queries.drifts import judge_drifts
from alignment.certificates.queries.todays_report import changed_reports
from alignment.comparison.core.disclosure_limit import MINIMUM_HOLDOUT_CHATS
from alignment.comparison.queries.disclosure import holdout_counts
from alignment.models.certificates import Certificate
from alignment.models.reports import Report
from common.problems import FieldProblem, InputProblem
from evaluation.judges.queries.configs import judge_configs, judge_endpoint
from evaluation.judges.queries.profiles import profile_choice
from evaluation.models.judges import Judge, JudgeProfile
from evaluation.models.nightly import NightlyJudge
from evaluation.prompts.queries.definitions import notices_of, older_prompts
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.models.sampling import SamplePlan

NOTHING_CERTIFIED = "it certifies no criterion for production use"
NO_DEFAULT = "there is no default profile, so the current judge is unknown"
NO_PROMPT = "a criterion no longer has a prompt"
CHANGED_TEXT = "the text was changed after signing"
NOT_OURS = "this workbench did not sign it"
NOT_ON_RECORD = "signed with a key of this workbench, but not on record"


@dataclass(frozen=True, slots=True)
class CertificateState:
    """`word` is valid, expired or revoked; `reasons` say why it is not valid.

    `notes` say what changed under a valid one without ending it.
    """

    word: str
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the certificate is valid."""
        return self.word == "valid"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result for a certificate sent to verify: genuine, forged or unknown; its state if genuine."""

    word: str
    reason: str = ""
    certificate: Certificate | None = None
    state: CertificateState | None = None


def certificate_whole() -> QuerySet[Certificate]:
    """Return certificates with the related rows that pages need, newest first."""
    related = ("judge", "report__run", "report__chat_set", "issued_by", "revoked_by")
    return Certificate.objects.select_related(*related).defer("report__body").order_by("-id")


def certificates_of_report(report: Report, *, user: User | AnonymousUser) -> list[Certificate]:
    """The certificates issued on a stored report, the oldest first, as far as the user may see them."""
    return certificates_shown(list(certificate_whole().filter(report=report).order_by("id")), user=user)


def certificates_shown(rows: Sequence[Certificate], *, user: User | AnonymousUser) -> list[Certificate]:
    """Return those whose figures the user may see; one query.

    Only leads see figures on fewer than 10 holdout chats, counted by the labels at issue and by today's.
    """
    if user.has_perm("labeling.see_holdout") or not rows:
        return list(rows)
    runs = {row.report.run_id for row in rows if row.report.run_id}
    counts = holdout_counts(runs)
    return [
        row
        for row in rows
        if not row.few_held_out and not few_held_out(counts, run=row.report.run_id, split=row.report.split)
    ]


def few_held_out(counts: Mapping[tuple[int, str], Mapping[str, int]], *, run: int | None, split: str) -> bool:
    """Return whether a criterion compares fewer than 10 holdout chats in a covered split."""
    covered = [by_split for (number, _), by_split in counts.items() if number == run]
    return any(n < MINIMUM_HOLDOUT_CHATS for one in covered for name, n in one.items() if split in ("", name))


def certificate_state(certificate: Certificate, *, figures: bool = True) -> CertificateState:
    """Return whether the certificate is valid now, and if not why."""
    return certificate_states([certificate], figures=figures)[certificate.pk]


def certificate_states(
    rows: Collection[Certificate], *, figures: bool = True, today: bool = True
) -> dict[int, CertificateState]:
    """Return states by id; constant number of queries.

    Today's report is looked up only for certificates that hold otherwise; `changed_reports` says when
    it is computed. Without `figures` its reasons name no figures; without `today` nothing is computed, and
    today's report ends no certificate.
    """
    now = timezone.now()
    changed = judge_changes([(row.judge, row.body) for row in rows])
    drifted = judge_drifts(rows)
    states = {
        row.pk: _state(row, now, [*drifted[row.pk], *causes])
        for row, causes in zip(rows, changed, strict=True)
    }
    valid = {row.pk: row for row in rows if today and states[row.pk].holds}
    for pk, report in changed_reports(valid.values()).items():
        lost = report.lost(valid[pk].body, figures=figures)
        states[pk] = _state(valid[pk], now, lost, notes=[report.note] if report.note else [])
    return _with_older(states, rows)


def _with_older(
    states: dict[int, CertificateState], rows: Collection[Certificate]
) -> dict[int, CertificateState]:
    """Note under valid certificates which prompts were written for an older definition."""
    older = older_prompts([row.judge for row in rows if states[row.pk].holds])
    for row in rows:
        notes = notices_of(older.get(row.judge_id, []))
        if notes and states[row.pk].holds:
            states[row.pk] = replace(states[row.pk], notes=(*states[row.pk].notes, *notes))
    return states


def judge_changes(rows: Collection[tuple[Judge, Mapping[str, Any]]]) -> list[list[str]]:
    """Return for each judge and certificate body what has changed: prompt, model, rubric, knowledge."""
    keys = {entry["key"] for _, body in rows for entry in body["criteria"]}
    rows_by_key = Criterion.objects.filter(key__in=keys).select_related("dimension")
    criteria = {row.key: row for row in rows_by_key.order_by("rubric", "dimension__position", "position")}
    hashes = {pk: row.content_hash for pk, row in newest_versions(criteria=criteria.values()).items()}
    recipes = _recipe_changes([row for row in rows if row[0].kind == Judge.Kind.LACE], criteria)
    causes = [
        [*_rubric_changes(body, criteria, hashes), *recipes.get((judge.pk, _keys(body)), [])]
        for judge, body in rows
    ]
    return [list(dict.fromkeys(some)) for some in causes]


def certificate_verified(*, body: Any, signature: str, user: User | AnonymousUser) -> Verification:
    """Return whether this workbench signed exactly this body, and whether it is still valid.

    Today's figures are only for users who may see the certificate.
    """
    row = certificate_whole().filter(signature=signature).first()
    if row is not None:
        if not verifies(body, signature, row.public_key):
            return Verification("forged", CHANGED_TEXT)
        figures = bool(certificates_shown([row], user=user))
        return Verification("genuine", certificate=row, state=certificate_state(row, figures=figures))
    if any(verifies(body, signature, key) for key in public_keys()):
        return Verification("unknown", NOT_ON_RECORD)
    return Verification("forged", NOT_OURS)


def public_keys() -> list[str]:
    """Return every key that signed certificates, oldest first."""
    keys = Certificate.objects.order_by("id").values_list("public_key", flat=True)
    return list(dict.fromkeys(keys))


def _state(
    row: Certificate, now: datetime, changes: Sequence[str], notes: Sequence[str] = ()
) -> CertificateState:
    reasons = [f"it expired on {row.expires_at:%Y-%m-%d %H:%M} UTC"] if row.expires_at <= now else []
    reasons += changes if certified(row.body) else [NOTHING_CERTIFIED, *changes]
    if row.revoked_at is not None:
        return CertificateState("revoked", (row.reason, *reasons))
    if reasons:
        return CertificateState("expired", tuple(reasons))
    return CertificateState("valid", notes=tuple(notes))


def _keys(body: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(entry["key"] for entry in body["criteria"])


def _rubric_changes(
    body: Mapping[str, Any], criteria: Mapping[str, Criterion], hashes: Mapping[int, str]
) -> list[str]:
    """Return changes of the rubric. NB: a new guideline alone does not change the question."""
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
    """Return what differs in the profiles in use today, by judge and criteria.

    A judge is in use if one of them makes it: the default profile, or that of an active sample plan. Else the
    changes are those of its own profile, where that is in use, and of the default profile otherwise.
    """
    judges = {(judge.pk, _keys(body)): judge for judge, body in rows}
    if not judges:
        return {}
    found: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for profile in profiles_in_use():
        others = {key: judge for key, judge in judges.items() if found.get(key) != []}
        for key, causes in (_profile_changes(profile, others, criteria) if others else {}).items():
            if not causes or key not in found or others[key].profile_id == profile.pk:
                found[key] = causes
    return found or {key: [NO_DEFAULT] for key in judges}


def profiles_in_use() -> QuerySet[JudgeProfile]:
    """Return the default profile, then those of active sample plans."""
    active = NightlyJudge.objects.filter(plan__state=SamplePlan.State.ACTIVE)
    used = Q(is_default=True) | Q(pk__in=active.values("profile"))
    return JudgeProfile.objects.filter(used).order_by("-is_default", "name")


def _profile_changes(
    profile: JudgeProfile,
    judges: Mapping[tuple[int, tuple[str, ...]], Judge],
    criteria: Mapping[str, Criterion],
) -> dict[tuple[int, tuple[str, ...]], list[str]]:
    try:
        choice = profile_choice(profile)
        endpoint = judge_endpoint(choice)
    except (InputProblem, FieldProblem) as problem:
        return {key: [f"the current judge is unknown: {problem}"] for key in judges}
    scopes = [[row for key, row in criteria.items() if key in keys] for _, keys in judges]
    name = DEFAULT if profile.is_default else f"the profile {profile.name}"
    today = judge_configs(choice=choice, scopes=scopes, endpoint=endpoint)
    return {
        key: [NO_PROMPT] if config is None else differences(judge.config, config, profile=name)
        for (key, judge), config in zip(judges.items(), today, strict=True)
    }
