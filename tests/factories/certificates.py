"""Certificates: a judge in use, certificates of whatever run as rows, and how one stands."""

from datetime import timedelta

from django.db.models import Case, QuerySet, When
from django.utils import timezone

from alignment.certificates.core.signatures import key_id, public_text, sign
from alignment.certificates.queries.body import certificate_body
from alignment.certificates.queries.certificates import certificate_state
from alignment.certificates.services.certificates import certificate_issue
from alignment.certificates.services.keys import signing_key
from alignment.comparison.queries.scope import Scope
from alignment.models.certificates import Certificate
from alignment.reports.worker import report_store
from evaluation.gateway.current import current_endpoint
from evaluation.judges.queries.profiles import default_profile, profile_choice
from evaluation.judges.services.judges import judge_ensure
from evaluation.models.judges import Judge, JudgeProfile
from evaluation.models.runs import Run
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import Chat
from labeling.models.labels import Label
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.articles import make_article
from tests.factories.compared_runs import Compared, make_compared
from tests.factories.rater_quality import polite


def stored_certificate(run: Run, *, by: User, split: str = "") -> Certificate:
    """A certificate on the run's report, whether or not its judge is still in use."""
    scope, key, now = Scope(run.chat_set, run, split), signing_key(), timezone.now()
    report = report_store(scope, share=True)
    assert report is not None
    public, until = public_text(key), now + timedelta(days=90)
    body = certificate_body(
        report=report,
        run=run,
        scope=scope,
        issued_by=by.get_username(),
        issued_at=now,
        expires_at=until,
        key=key_id(public),
    )
    return Certificate.objects.create(
        judge=run.judge,
        report=report,
        body=body,
        signature=sign(body, key),
        public_key=public,
        issued_by=by,
        issued_at=now,
        expires_at=until,
    )


def make_qualifying() -> Compared:
    """The judge is aligned on `polite` and `wrong_fact`, on dev on `polite` alone; `welcome` has no False."""
    return make_compared(chats=200)


def relabel(criterion: Criterion, chat: Chat) -> None:
    """Every rater gives the other answer on this chat."""
    _invert(Label.objects.filter(criterion=criterion, chat=chat))


def invert(criterion: Criterion) -> None:
    """Every rater gives the other answer on every chat."""
    _invert(Label.objects.filter(criterion=criterion))


def _invert(labels: QuerySet[Label]) -> None:
    labels.update(value=Case(When(value=True, then=False), default=True))
    criteria, chats = zip(*labels.values_list("criterion_id", "chat_id"), strict=True)
    consensus_refresh(criterion_ids=set(criteria), chat_ids=set(chats))


RECIPE = {"engine": "direct", "knowledge": "static"}


def make_in_use(compared: Compared, *, by: User) -> Certificate:
    """On the run of a judge that is the default profile's; the settings name endpoint and model."""
    JudgeProfile.objects.all().delete()
    JudgeProfile.objects.create(name="default", config=RECIPE, is_default=True)
    article(polite(), "refunds", "Within 14 days.")
    compared.run.judge = todays_judge()
    compared.run.save()
    return certificate_issue(run=compared.run, by=by)


def todays_judge() -> Judge:
    """The default profile's."""
    profile = default_profile()
    assert profile is not None
    rows = Criterion.objects.select_related("dimension").order_by("dimension__position", "position")
    return judge_ensure(
        choice=profile_choice(profile), criteria=list(rows), endpoint=current_endpoint(), by=None
    )


def article(criterion: Criterion, key: str, text: str) -> None:
    """A further version of an article that the criterion reads."""
    make_article(key, text, title=key, criterion=criterion)


def why(certificate: Certificate) -> tuple[str, tuple[str, ...]]:
    """How it stands now, and for which reasons."""
    state = certificate_state(Certificate.objects.get(pk=certificate.pk))
    return state.word, state.reasons
