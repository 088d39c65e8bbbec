"""Nights through the real services, with a stub endpoint: what a planted drift of judge or bot leads to."""

from datetime import date, datetime, time, timedelta
from itertools import count
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from alignment.alerts.services.evaluation import alerts_work
from alignment.certificates.queries.certificates import certificate_state
from alignment.models.alerts import Alert, AlertSettings, WatchStep
from alignment.models.certificates import Certificate
from common.models import InboxItem
from evaluation.models.judges import JudgeProfile
from evaluation.models.nightly import NightlyRun
from evaluation.models.outbox import OutboxEvent
from evaluation.models.runs import ModelCall
from evaluation.nightly.serializers import plan_settings, stored_values
from evaluation.nightly.services import JudgeChoice, night_sample, nightly_plan_save
from evaluation.tasks import process_units
from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.models.sampling import SamplePlan
from labeling.sampling.queries import yesterday
from tests.factories.certificates import make_in_use, make_qualifying
from tests.factories.compared_runs import Compared
from tests.factories.nights import make_plan
from tests.factories.rows import make_chat
from tests.factories.runs import answering, block
from tests.factories.webhooks import make_webhook
from tests.stub_endpoint import Body, StubEndpoint, StubReply, asked_keys, conversation

pytestmark = pytest.mark.django_db(transaction=True)

BASELINE, CHATS, ANCHORS = 14, 8, 30
# Answers that pass: of `wrong_fact` it is False.
PASSING = {"wrong_fact": False}


class Judge:
    """Passes every chat, but fails `polite` where the chat is rude, or everywhere once it has `drifted`."""

    drifted = False

    def __call__(self, body: Body) -> StubReply:
        values: dict[str, bool | None] = {key: PASSING.get(key, True) for key in asked_keys(body)}
        if "polite" in values and (self.drifted or "case rude" in conversation(body)):
            values["polite"] = False
        return block(values)


class Production:
    """A plan with anchors over the workspace of a valid certificate; each night is a day further on."""

    def __init__(self, compared: Compared, lead: User) -> None:
        AlertSettings.objects.create(baseline_nights=BASELINE, guard=60, fewest_verdicts=0, fewest_chats=0)
        self.certificate = make_in_use(compared, by=lead)
        profile = JudgeProfile.objects.get(is_default=True)
        self.plan = make_plan(compared.rubric, by=lead, chats=CHATS, profile=profile)
        nightly_plan_save(
            settings=_settings(self.plan),
            judge=JudgeChoice(profile, anchor_set=compared.chat_set, anchors=ANCHORS),
            by=lead,
            plan=self.plan,
        )
        self.days = count(30)

    def night(self, topic: str = "kind", *, bot: str = "5.1") -> None:
        """Chats arrive, are sampled and judged with the anchors, and the night is evaluated."""
        day = yesterday() - timedelta(days=60 - next(self.days))
        _arrive(topic, day, bot)
        night_sample(plan=self.plan, day=day)
        night = NightlyRun.objects.order_by("-draw_id").first()
        assert night is not None
        assert night.run_id
        assert night.anchor_run_id, night.anchor_problem
        for run in (night.run_id, night.anchor_run_id):
            process_units(run)
        for _ in range(2):  # a second worker finds nothing to do
            alerts_work()

    def standing(self) -> set[tuple[str, str]]:
        rows = Alert.objects.standing().select_related("criterion")
        return {(row.criterion.key if row.criterion else "", str(row.cause)) for row in rows}

    def word(self) -> str:
        return certificate_state(Certificate.objects.get(pk=self.certificate.pk)).word


def _arrive(topic: str, day: date, bot: str) -> None:
    """Chats that the stub tells apart by `case rude` and `case kind`."""
    chats = [
        make_chat(
            f"{day}-{n}", topic=topic, messages=[("user", f"In case {topic}: {n}?"), ("assistant", "Yes.")]
        )
        for n in range(CHATS)
    ]
    at = timezone.make_aware(datetime.combine(day, time(12)))
    rows = Chat.objects.filter(pk__in=[chat.pk for chat in chats])
    rows.update(created_at=at, metadata={"bot_version": bot})


def _settings(plan: SamplePlan) -> Any:
    return plan_settings(stored_values(plan))


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def endpoint(settings: Settings, judge: Judge) -> Any:
    with answering(settings, judge) as stub:
        yield stub


@pytest.fixture
def production(endpoint: StubEndpoint, lead_user: User) -> Production:
    made = Production(make_qualifying(), lead_user)
    make_webhook(kinds=["alert.raised", "alert.ended"])
    for _ in range(BASELINE):
        made.night()
    assert made.standing() == set()
    assert made.word() == "valid"
    return made


def test_a_drifted_bot_and_then_a_drifted_judge_are_named_told_and_told_apart(
    production: Production, judge: Judge, lead_user: User
) -> None:
    production.night("rude", bot="5.2")
    assert production.standing() == {("polite", "unclear")}
    assert production.word() == "valid"
    for _ in range(3):
        production.night("rude", bot="5.2")
    assert production.standing() == {("polite", "bot")}
    bot = Alert.objects.get()
    assert (bot.bot_version, bot.bot_live_on) == ("5.2", bot.began_on)  # the release did not reset it
    assert bot.named_day is not None
    assert bot.named_day > bot.day
    assert InboxItem.objects.get(user=lead_user).subject == f"alert:{bot.pk}"
    kinds = [(one.kind, one.payload["cause"]) for one in OutboxEvent.objects.order_by("created_at")]
    assert kinds == [("alert.raised", "unclear"), ("alert.raised", "bot")]
    assert production.word() == "valid"  # the judge is as it was

    asked, judge.drifted = ModelCall.objects.count(), True
    production.night(bot="5.2")
    assert {("polite", "judge"), ("polite", "bot")} <= production.standing()
    assert ModelCall.objects.count() - asked >= 2 * ANCHORS  # asked anew: no answer is one that is stored
    alert = Alert.objects.get(criterion__key="polite", cause="judge")
    assert alert.began_on == alert.named_day == alert.day == WatchStep.objects.latest("pk").day
    signals = {one["stream"]: one for one in alert.signals}
    assert signals["anchors"]["change"] == "stricter"
    assert (signals["anchors"]["before"], signals["anchors"]["now"]) == (0.0, 1.0)
    told = {(one.payload["criterion"], one.payload["cause"]) for one in OutboxEvent.objects.all()}
    assert ("polite", "judge") in told
    assert InboxItem.objects.filter(user=lead_user, kind="alert").count() > 1
    assert production.word() == "expired"
    reasons = certificate_state(production.certificate).reasons
    assert any("drifted in production" in reason for reason in reasons)
