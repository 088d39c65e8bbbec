"""The certificate of a sample plan's judge, or the way to one."""

from dataclasses import dataclass

from alignment.certificates.core.body import certified
from alignment.certificates.queries.certificates import (
    CertificateState,
    certificate_states,
    certificate_whole,
    certificates_shown,
)
from alignment.comparison.queries.latest_verdicts import COUNTED
from alignment.models.certificates import Certificate
from evaluation.models.judges import Judge
from evaluation.models.nightly import NightlyJudge, NightlyRun
from evaluation.models.runs import FINISHED, Run
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.sampling import SamplePlan

LOOKED_AT = 20  # the newest certificates of a judge
RUNS = 3


@dataclass(frozen=True, slots=True)
class PlanCertificate:
    """`judge` judged the newest night (None: no night yet), and `row` is its certificate, if it has one.

    `profile` makes the judge; `runs` are its newest runs over other sets, whose reports can be certified.
    """

    profile: int
    judge: Judge | None
    row: Certificate | None = None
    state: CertificateState | None = None
    criteria: int = 0
    runs: tuple[Run, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the judge has a valid certificate."""
        return self.state is not None and self.state.holds


def plan_certificate(plan: SamplePlan, *, user: User) -> PlanCertificate | None:
    """Return the certificate of a plan's judge: the newest valid one, else the newest; None without a judge.

    A constant number of queries.
    """
    chosen = NightlyJudge.objects.filter(plan=plan).first()
    if chosen is None:
        return None
    nights = NightlyRun.objects.filter(draw__plan=plan, run__isnull=False).order_by("-draw__day")
    newest = nights.select_related("run__judge").first()
    if newest is None or newest.run is None:
        return PlanCertificate(chosen.profile_id, None)
    judge = newest.run.judge
    rows = certificates_shown(list(certificate_whole().filter(judge=judge)[:LOOKED_AT]), user=user)
    states = certificate_states(rows)
    row = next((one for one in rows if states[one.pk].holds), rows[0] if rows else None)
    finished = Run.objects.filter(judge=judge, purpose__in=COUNTED, state__in=FINISHED)
    runs = finished.exclude(chat_set__kind=ChatSet.Kind.SAMPLE).select_related("chat_set").order_by("-pk")
    return PlanCertificate(
        chosen.profile_id,
        judge,
        row,
        states[row.pk] if row else None,
        len(certified(row.body)) if row else 0,
        tuple(runs[:RUNS]),
    )
