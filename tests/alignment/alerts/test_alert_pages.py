"""Pages and API of alerts: who sees what, and what leads do with an alert."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from alignment.alerts.core.plan_watch import CriterionNight, PlanNight, Settings, Stratum, advance
from alignment.alerts.services.alerts import News, news_send, snoozes_end
from alignment.home.queries.tasks import lead_tasks
from alignment.models.alerts import Alert, AlertMute, AlertSettings, WatchStep
from common.models import InboxItem
from common.problems import FieldProblem
from evaluation.models.nightly import NightlyJudge
from evaluation.models.outbox import OutboxEvent
from evaluation.nightly.serializers import plan_settings, stored_values
from evaluation.nightly.services import JudgeChoice, nightly_plan_save
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.people import AuditEvent, Role, User
from labeling.models.rubric import Criterion, Rubric
from labeling.models.sampling import SamplePlan
from labeling.sampling.queries import yesterday
from labeling.sampling.services import draw_night
from tests.factories.alerts import SIGNAL, make_alert
from tests.factories.nights import arrived, make_plan
from tests.factories.rows import make_chat, make_rubric, make_set, make_user
from tests.factories.webhooks import make_webhook

pytestmark = pytest.mark.django_db

ANCHOR_SIGNAL = SIGNAL | {"stream": "anchors", "change": "stricter", "before": 0.02, "now": 0.37}


@pytest.fixture
def rubric() -> Rubric:
    return make_rubric("polite", "clear")


@pytest.fixture
def polite(rubric: Rubric) -> Criterion:
    return rubric.criteria.get(key="polite")


@pytest.fixture
def plan(rubric: Rubric, lead_user: User) -> SamplePlan:
    return make_plan(rubric, by=lead_user)


@pytest.fixture
def lead(client: Client, lead_user: User) -> Client:
    client.force_login(lead_user)
    return client


@pytest.fixture
def author(lead_user: User) -> Client:
    client = Client()
    client.force_login(make_user("otto", Role.AUTHOR))
    return client


def text_of(client: Client, name: str, *args: Any, **query: str) -> str:
    answer = client.get(reverse(name, args=args, query=query))
    assert answer.status_code == 200
    return answer.content.decode()


def anchored(plan: SamplePlan, *, split: str = "dev") -> ChatSet:
    """Thirty anchors of the plan, the last one in this split."""
    chat_set = make_set(plan.rubric, *(make_chat() for _ in range(30)), name="anchors")
    last = ChatSetMember.objects.filter(chat_set=chat_set).latest("position")
    ChatSetMember.objects.filter(pk=last.pk).update(split=split)
    NightlyJudge.objects.filter(plan=plan).update(anchor_set=chat_set, anchors=30)
    return chat_set


def tasks(user: User) -> list[str]:
    """Addresses of the alerts among a lead's tasks."""
    return [task.url for task in lead_tasks([], user=user) if task.kind == "Alert"]


def test_the_open_alerts_come_first_and_say_what_changed(
    lead: Client, plan: SamplePlan, polite: Criterion
) -> None:
    make_alert(plan, criterion=polite)
    ended = {"ended_at": timezone.now(), "ended_because": "The judge has another version."}
    make_alert(plan, criterion=polite, cause="bot", **ended)
    text = text_of(lead, "alerts:list")
    assert "Not yet clear" in text
    assert "Judged sample: passing share fell, 0.90 to 0.80." in text
    assert "another version" not in text
    whole = text_of(lead, "alerts:list", show="all")
    assert whole.index("Not yet clear") < whole.index("The judge has another version.")


def test_a_page_has_the_chart_with_its_table(lead: Client, plan: SamplePlan, polite: Criterion) -> None:
    draw = draw_night(plan=plan, day=yesterday(), spreads={})
    counts = {"judged": {str(polite.pk): [40, 50]}, "parts": {str(polite.pk): 0}}
    WatchStep.objects.create(plan=plan, draw=draw, day=draw.day, counts=counts)
    text = text_of(lead, "alerts:detail", make_alert(plan, criterion=polite).pk)
    assert 'data-value="0.8000"' in text
    assert "40 of 50" in text
    assert "No certificate ends" in text


def test_a_change_of_the_bot_says_which_version_went_live_that_day(
    lead: Client, plan: SamplePlan, polite: Criterion
) -> None:
    begun = yesterday() - timedelta(days=3)
    for back in (5, 3, 0):
        draw = draw_night(plan=plan, day=yesterday() - timedelta(days=back), spreads={})
        parts = {"parts": {str(polite.pk): int(back == 0)}, "judges": [polite.pk] if back == 0 else []}
        counts = {"judged": {str(polite.pk): [40, 50]}, "bots": ["5.2"] if back == 3 else [], **parts}
        WatchStep.objects.create(plan=plan, draw=draw, day=draw.day, counts=counts)
    live = {"bot_version": "5.2", "bot_live_on": begun}
    row = make_alert(plan, criterion=polite, cause="bot", named_at=timezone.now(), **live)
    text = " ".join(text_of(lead, "alerts:detail", row.pk).split())
    day = f"{begun.day} {begun:%b}"
    assert f"The judged passing share fell by 10 points since {day}, the day bot 5.2 went live." in text
    assert f'data-mark="{begun.isoformat()}" data-judge=""> Bot 5.2 </span>' in text
    assert f'data-mark="{yesterday().isoformat()}" data-judge="1"> New judge or prompt </span>' in text
    assert f"since {day}, the day bot 5.2 went live" in text_of(lead, "alerts:panel")
    found = lead.get(reverse("api_alert", args=[row.pk])).json()
    assert (found["bot_version"], found["bot_live_on"]) == ("5.2", begun.isoformat())
    Alert.objects.filter(pk=row.pk).update(bot_live_on=begun + timedelta(days=1))
    later = f"since about {day}; bot 5.2 went live on"
    assert later in " ".join(text_of(lead, "alerts:detail", row.pk).split())


def test_authors_see_no_figures_of_anchors_that_are_held_out(
    lead: Client, author: Client, plan: SamplePlan, polite: Criterion
) -> None:
    anchored(plan, split="holdout")
    draw = draw_night(plan=plan, day=yesterday(), spreads={})
    flips = {"anchors": {str(polite.pk): {"to_false": [11, 30], "to_true": [0, 0], "flipped": [11, 30]}}}
    WatchStep.objects.create(plan=plan, draw=draw, day=draw.day, counts=flips)
    row = make_alert(plan, criterion=polite, cause="judge", signals=[ANCHOR_SIGNAL])
    places = (("alerts:detail", row.pk), ("alerts:list",), ("alerts:panel",))
    for name, *args in places:
        assert "0.37" in text_of(lead, name, *args)
        assert "0.37" not in text_of(author, name, *args)
        assert "11 of 30" not in text_of(author, name, *args)
    assert "11 of 30" in text_of(lead, "alerts:detail", row.pk)
    signal = author.get(reverse("api_alert", args=[row.pk])).json()["signals"][0]
    assert (signal["stream"], signal["before"], signal["now"]) == ("anchors", None, None)


def test_authors_see_figures_of_anchors_without_holdout(
    author: Client, plan: SamplePlan, polite: Criterion
) -> None:
    anchored(plan)
    row = make_alert(plan, criterion=polite, cause="judge", signals=[ANCHOR_SIGNAL])
    assert "0.37" in text_of(author, "alerts:detail", row.pk)


def test_an_acknowledged_alert_is_no_task_but_stays_open(
    lead: Client, plan: SamplePlan, polite: Criterion, lead_user: User
) -> None:
    row = make_alert(plan, criterion=polite)
    assert tasks(lead_user) == [reverse("alerts:detail", args=[row.pk])]
    for _ in range(2):
        lead.post(reverse("alerts:act", args=[row.pk, "acknowledge"]))
    row.refresh_from_db()
    assert (row.acknowledged_by, row.ended_at) == (lead_user, None)
    assert AuditEvent.objects.filter(verb="alert acknowledged").count() == 1
    assert tasks(lead_user) == []
    assert "Acknowledged" in text_of(lead, "alerts:list")


def test_a_snoozed_alert_comes_back_on_its_day(
    lead: Client, plan: SamplePlan, polite: Criterion, lead_user: User
) -> None:
    row = make_alert(plan, criterion=polite)
    url = reverse("alerts:act", args=[row.pk, "snooze"])
    assert "from tomorrow on" in lead.post(url, {"until": "2001-01-01"}).content.decode()
    until = timezone.localdate() + timedelta(days=3)
    lead.post(url, {"until": until.isoformat()})
    row.refresh_from_db()
    assert (row.snoozed_until, row.snoozed_by) == (until, lead_user)
    assert tasks(lead_user) == []
    snoozes_end(until - timedelta(days=1))
    assert not InboxItem.objects.exists()
    for _ in range(2):
        snoozes_end(until)
    assert InboxItem.objects.get(user=lead_user).subject == f"alert:{row.pk}"
    assert tasks(lead_user) == [reverse("alerts:detail", args=[row.pk])]


def test_a_muted_criterion_notifies_nobody_and_is_listed(
    lead: Client, plan: SamplePlan, polite: Criterion, rubric: Rubric, lead_user: User
) -> None:
    make_webhook(kinds=["alert.raised"])
    row = make_alert(plan, criterion=polite)
    lead.post(reverse("alerts:act", args=[row.pk, "mute"]))
    assert AlertMute.objects.get().by == lead_user
    news_send(News(raised=[row]))
    assert not InboxItem.objects.exists()
    assert not OutboxEvent.objects.exists()
    other = make_alert(plan, criterion=rubric.criteria.get(key="clear"))
    news_send(News(raised=[row, other]))
    assert InboxItem.objects.get().subject == f"alert:{other.pk}"
    assert OutboxEvent.objects.get().payload["criterion"] == "clear"
    text = text_of(lead, "alerts:list")
    assert "Muted criteria" in text
    lead.post(reverse("alerts:criterion_act", args=["polite", "unmute"]))
    assert not AlertMute.objects.exists()


def watched(plan: SamplePlan, *criteria: Criterion) -> WatchStep:
    """The first night of the plan: the state of a watch that collects its baselines."""
    draw = draw_night(plan=plan, day=yesterday(), spreads={})
    nights = {row.pk: CriterionNight("judge", "text", [Stratum(4, 5, 1.0)]) for row in criteria}
    state = advance({}, PlanNight(draw.day, "judge", nights), Settings()).state
    return WatchStep.objects.create(plan=plan, draw=draw, day=draw.day, state=state)


def test_an_accepted_rate_ends_its_alert_and_is_the_new_baseline(
    lead: Client, author: Client, plan: SamplePlan, polite: Criterion, rubric: Rubric, lead_user: User
) -> None:
    make_webhook(kinds=["alert.ended"])
    clear = rubric.criteria.get(key="clear")
    step = watched(plan, polite, clear)
    row = make_alert(plan, criterion=polite, cause="bot")
    other = make_alert(plan, criterion=clear, cause="bot")
    assert "Accept as the new baseline" in text_of(lead, "alerts:detail", row.pk)
    assert "Accept as the new baseline" not in text_of(author, "alerts:detail", row.pk)
    url = reverse("alerts:act", args=[row.pk, "accept"])
    assert author.post(url).status_code == 404
    lead.post(url)
    row.refresh_from_db()
    assert (row.ended_because, row.accepted_by) == ("Accepted as the new baseline.", lead_user)
    step.refresh_from_db()
    seen = {key: own["judged"]["seen"] for key, own in step.state["criteria"].items()}
    assert seen == {str(polite.pk): 0, str(clear.pk): 1}
    assert AuditEvent.objects.get(verb="alert accepted as baseline").actor == lead_user
    assert OutboxEvent.objects.get().payload["ended"] == "Accepted as the new baseline."
    assert list(Alert.objects.standing()) == [other]
    assert "By ines." in " ".join(text_of(lead, "alerts:detail", row.pk).split())
    assert "has ended" in lead.post(url, follow=True).content.decode()


def test_an_accepted_judge_of_all_criteria_ends_all_alerts_of_the_judge(
    lead: Client, plan: SamplePlan, polite: Criterion
) -> None:
    for cause in ("judge", "bot", "unclear"):
        make_alert(plan, criterion=polite, cause=cause)
    row = make_alert(plan, cause="judge")
    answer = lead.post(reverse("api_alert_accept", args=[row.pk]))
    assert (answer.json()["state"], answer.json()["accepted_by"]) == ("ended", "ines")
    assert [one.cause for one in Alert.objects.standing()] == ["bot"]


def test_a_gap_is_no_baseline(lead: Client, author: Client, plan: SamplePlan, polite: Criterion) -> None:
    signals = [{"n": 3, "needed": 10, "chats": None}]
    row = make_alert(plan, kind="verdicts", cause="", criterion=polite, signals=signals)
    assert "Accept as" not in text_of(lead, "alerts:detail", row.pk)
    assert lead.post(reverse("api_alert_accept", args=[row.pk])).status_code == 400
    assert author.post(reverse("api_alert_accept", args=[row.pk])).status_code == 404
    lead.post(reverse("alerts:act", args=[row.pk, "accept"]))
    row.refresh_from_db()
    assert row.ended_at is None


def test_many_alerts_of_one_night_share_one_notice(lead: Client, plan: SamplePlan, polite: Criterion) -> None:
    step = WatchStep.objects.create(plan=plan, week=yesterday(), day=yesterday())
    rows = [make_alert(plan, criterion=polite, subject=f"{n}") for n in range(4)]
    news_send(News(raised=rows), step=step)
    assert InboxItem.objects.get().subject == f"alerts:{step.pk}"
    assert "several alerts of plan Production" in text_of(lead, "inbox")


def test_the_thresholds_stand_beside_their_false_alarms(lead: Client, plan: SamplePlan) -> None:
    assert "0.4%" in text_of(lead, "alerts:settings")
    values = {
        "alarm_percent": "12",
        "tolerance_points": "1",
        "baseline_nights": "28",
        "guard": "300",
        "mark_limit": "4",
        "fewest_verdicts": "100",
        "fewest_chats": "10",
    }
    shown = lead.post(reverse("alerts:settings_preview"), values).content.decode()
    assert "1.0%" in shown
    assert not AlertSettings.objects.exists()
    lead.post(reverse("alerts:settings"), values)
    assert AlertSettings.current().alarm_percent == 12
    refused = lead.post(reverse("alerts:settings"), values | {"baseline_nights": "3"}).content.decode()
    assert "Not saved" in refused


def test_the_api_lists_acknowledges_snoozes_and_mutes(
    lead: Client, plan: SamplePlan, polite: Criterion
) -> None:
    row = make_alert(plan, criterion=polite)
    listed = lead.get(reverse("api_alerts")).json()["results"]
    assert [(one["id"], one["cause"], one["state"]) for one in listed] == [(row.pk, "unclear", "open")]
    for name, state in (("acknowledge", "acknowledged"), ("mute", "muted"), ("unmute", "acknowledged")):
        answer = lead.post(reverse(f"api_alert_{name}", args=[row.pk]))
        assert answer.json()["state"] == state
    until = (timezone.localdate() + timedelta(days=2)).isoformat()
    snoozed = lead.post(
        reverse("api_alert_snooze", args=[row.pk]), {"until": until}, content_type="application/json"
    )
    assert (snoozed.json()["state"], snoozed.json()["snoozed_by"]) == ("snoozed", "ines")
    Alert.objects.update(ended_at=timezone.now(), ended_because="x")
    assert lead.post(reverse("api_alert_acknowledge", args=[row.pk])).status_code == 409


def test_queries_do_not_grow_with_alerts(lead: Client, plan: SamplePlan, polite: Criterion) -> None:
    def queries(name: str, *args: Any) -> int:
        with CaptureQueriesContext(connection) as found:
            text_of(lead, name, *args)
        return len(found)

    first = make_alert(plan, criterion=polite)
    few = {name: queries(name) for name in ("alerts:list", "alerts:panel", "api_alerts")}
    for number in range(5):
        make_alert(plan, criterion=polite, subject=f"{number}")
    assert {name: queries(name) for name in few} == few
    assert queries("alerts:detail", first.pk) < 30


def test_the_plans_page_shows_delays_and_baselines(lead: Client, plan: SamplePlan) -> None:
    anchored(plan)
    text = text_of(lead, "alerts:plan_panel", plan.pk)
    assert "30 anchors" in text
    assert "No anchor is labelled" in text
    assert "about" in text
    assert "The first nights become the baseline" in text


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "sample"}, "anchor_set"),
        ({"other_rubric": True}, "anchor_set"),
        ({"chats": 29}, "anchor_set"),
        ({"anchors": 31}, "anchors"),
    ],
)
def test_anchors_stay_the_same_and_are_enough(
    plan: SamplePlan, lead_user: User, change: dict[str, Any], field: str
) -> None:
    rubric = make_rubric("other", name="Other") if change.get("other_rubric") else plan.rubric
    chats = [make_chat() for _ in range(change.get("chats", 30))]
    chosen = make_set(rubric, *chats, name="anchors")
    ChatSet.objects.filter(pk=chosen.pk).update(kind=change.get("kind", "curated"))
    chosen.refresh_from_db()
    values = stored_values(plan)
    profile = NightlyJudge.objects.get(plan=plan).profile
    judge = JudgeChoice(profile, anchor_set=chosen, anchors=change.get("anchors", 30))
    with pytest.raises(FieldProblem) as refused:
        nightly_plan_save(settings=plan_settings(values), judge=judge, by=lead_user, plan=plan)
    assert refused.value.field == field


def test_anchor_chats_are_never_sampled(plan: SamplePlan) -> None:
    chats = arrived({"refund": 4})
    make_set(plan.rubric, *chats[:3], name="anchors")
    draw = draw_night(plan=plan, day=yesterday(), spreads={})
    assert draw.frame_size == 1
