"""A lead's pages of the labels' quality: figures, lists, rights, downloads; the same over the API."""

import uuid
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from labeling.models.chats import Chat, ChatSetMember
from labeling.models.labels import (
    EXPIRED,
    Adjudication,
    Assignment,
    Label,
    LabelingJob,
    LabelRevision,
    RaterNote,
)
from labeling.models.people import Rater
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import RATERS, Compared, text_of
from tests.factories.rater_quality import DIFFERING, job_of, pages, polite, rows_of, set_page
from tests.factories.rows import make_chat, make_set

pytestmark = pytest.mark.django_db


# ---------- figures ----------


def test_a_rater_is_compared_with_the_majority_of_the_others(lead: Client, compared: Compared) -> None:
    rows = rows_of(lead, compared)
    assert list(rows) == ["anna", "ben", "cleo"]
    # Where cleo differs, anna's others (ben, cleo) are tied: left out and counted.
    assert (rows["anna"].others.n, rows["anna"].tied) == (120 - 3 * DIFFERING, 3 * DIFFERING)
    assert rows["anna"].others.share.value == 1.0
    assert (rows["cleo"].others.n, rows["cleo"].tied) == (120, 0)
    assert rows["cleo"].others.share.value == pytest.approx(1 - 3 * DIFFERING / 120)
    assert (rows["cleo"].labels, rows["cleo"].alone) == (120, 0)
    everybody = lead.get(set_page(compared)).context["everybody"]
    assert (everybody.n, everybody.agreeing) == (120 + 2 * 81, 81 + 2 * 81)


def test_an_answer_that_nobody_else_gave_is_alone(lead: Client, compared: Compared) -> None:
    Label.objects.filter(rater__name__in=["anna", "ben"], criterion=polite()).delete()
    row = rows_of(lead, compared)["cleo"]
    assert (row.alone, row.others.n) == (40, 80)


def test_a_page_can_be_narrowed_to_one_criterion(lead: Client, compared: Compared) -> None:
    row = rows_of(lead, compared, "?criterion=polite")["cleo"]
    assert (row.labels, row.others.n, row.others.agreeing) == (40, 40, 40 - DIFFERING)
    for name in ("overview", "pairs", "team"):
        assert lead.get(set_page(compared, name) + "?criterion=nonsense").status_code == 404
    assert list(lead.get(set_page(compared, "api") + "?criterion=nonsense").json()) == ["criterion"]


def test_drafts_and_answers_after_reveal_are_excluded_and_counted(lead: Client, compared: Compared) -> None:
    anna = Label.objects.filter(rater__name="anna", criterion=polite()).order_by("pk")
    Label.objects.filter(pk=anna[0].pk).update(state="draft")
    Label.objects.filter(pk=anna[1].pk).update(post_reveal=True)
    job = job_of(compared)
    Assignment.objects.filter(job=job).update(revealed_at=timezone.now())
    frozen = anna.filter(assignment__isnull=False).last()
    assert frozen is not None
    LabelRevision.objects.create(
        label=frozen, number=2, client_id=uuid.uuid4(), value=None, version=frozen.version,
        state="submitted", post_reveal=True, created_at=timezone.now(),
    )  # fmt: skip
    row = rows_of(lead, compared)["anna"]
    assert (row.labels, row.changed) == (118, 2)


def test_decisions_are_compared_apart_from_gold_chats(lead: Client, compared: Compared) -> None:
    job = job_of(compared)
    for chat in Chat.objects.order_by("pk")[:8]:
        Adjudication.objects.create(
            chat=chat, criterion=polite(), value=True, reason="r", by_name="Ines", created_at=timezone.now()
        )
    first, second = Chat.objects.order_by("pk")[:2]
    Assignment.objects.filter(job=job, chat__in=[first, second]).update(kind="gold")
    row = rows_of(lead, compared)["anna"]  # anna says True on the chats 1, 3, 5, …
    assert (row.gold.n, row.gold.agreeing) == (2, 1)
    assert (row.decided.n, row.decided.agreeing) == (6, 3)


def test_a_replaced_decision_is_no_known_answer(lead: Client, compared: Compared) -> None:
    now = timezone.now()
    chat = compared.chat(1)
    common = {"chat": chat, "criterion": polite(), "reason": "r", "by_name": "Ines", "created_at": now}
    Adjudication.objects.create(value=False, replaced_at=now, **common)
    assert rows_of(lead, compared)["anna"].decided.n == 0
    Adjudication.objects.create(value=True, **common)
    row = rows_of(lead, compared)["anna"]
    assert (row.decided.n, row.decided.agreeing) == (1, 1)


def test_gold_chats_outside_the_set_are_shown_with_its_jobs(lead: Client, compared: Compared) -> None:
    gold = make_chat("gold-1")
    job = job_of(compared, gold_set=make_set(compared.rubric, gold, name="gold"))
    anna = Rater.objects.get(name="anna")
    assignment = Assignment.objects.create(
        job=job, chat=gold, slot=1, position=9, rater=anna, state="submitted", kind="gold"
    )
    Label.objects.create(
        chat=gold, criterion=polite(), rater=anna, version=polite().versions.get(), assignment=assignment,
        value=False, state="submitted", given_at=timezone.now(),
    )  # fmt: skip
    Adjudication.objects.create(
        chat=gold, criterion=polite(), value=True, reason="r", by_name="Ines", created_at=timezone.now()
    )
    row = rows_of(lead, compared)["anna"]
    assert (row.gold.n, row.gold.agreeing, row.labels) == (1, 0, 120)


def test_agreement_over_time_needs_labels_given_at_different_times(lead: Client, compared: Compared) -> None:
    assert not rows_of(lead, compared)["cleo"].trend
    for place, label in enumerate(Label.objects.filter(rater__name="cleo").order_by("pk")):
        Label.objects.filter(pk=label.pk).update(given_at=timezone.now() + timedelta(minutes=place))
    rows = rows_of(lead, compared)
    assert len(rows["cleo"].trend) == 10
    assert sum(part.value * 12 for part in rows["cleo"].trend) == pytest.approx(81)


def test_agreement_over_time_is_in_the_order_of_giving_not_of_storing(
    lead: Client, compared: Compared
) -> None:
    """As after an import with the newest labels first."""
    theirs = Label.objects.filter(rater__name="cleo")
    theirs.update(value=True)
    Label.objects.filter(rater__name__in=["anna", "ben"]).update(value=True)
    now = timezone.now()
    for place, label in enumerate(theirs.order_by("-pk")):
        Label.objects.filter(pk=label.pk).update(given_at=now + timedelta(minutes=place), value=place < 60)
    row = rows_of(lead, compared)["cleo"]
    assert [part.value for part in row.trend] == [1.0] * 5 + [0.0] * 5
    assert row.first is not None
    assert abs(row.first - now) < timedelta(milliseconds=2)
    assert row.last == row.first + timedelta(minutes=119)


def test_a_retired_criterion_is_no_question_of_the_chat(lead: Client, compared: Compared) -> None:
    job = job_of(compared, raters=("anna",))
    Assignment.objects.filter(job=job).update(active_ms=60_000)
    Criterion.objects.filter(key="polite").update(state="retired")
    assert rows_of(lead, compared)["anna"].pace.seconds == pytest.approx(30.0)


def test_rushed_is_faster_than_the_turns_of_customer_and_bot_can_be_skimmed(
    lead: Client, compared: Compared
) -> None:
    job = job_of(compared, raters=("anna",))
    long = "word " * 600  # 3,000 characters: 50 s to skim, and 0.6 s for three keys
    messages = [{"n": 1, "role": "user", "content": long}]
    tool = [{"n": 1, "role": "user", "content": "hi"}, {"n": 2, "role": "tool", "content": long}]
    done = list(Assignment.objects.filter(job=job).order_by("position"))
    for assignment, turns, active in zip(
        done, (messages, messages, tool, messages), (50_500, 50_700, 50_500, 0), strict=True
    ):
        Chat.objects.filter(pk=assignment.chat_id).update(messages=turns, char_count=3002)
        Assignment.objects.filter(pk=assignment.pk).update(active_ms=active)
    pace = rows_of(lead, compared)["anna"].pace
    # The fourth has no active time: it is not counted as fast.
    assert (pace.timed, pace.rushed) == (3, 1)
    assert pace.seconds == pytest.approx(50.5 / 3)


def test_progress_and_skips_are_shown_with_reasons(lead: Client, compared: Compared) -> None:
    job = job_of(compared, raters=("anna",))
    nora = Rater.objects.create(name="nora")
    for slot, reason in enumerate(("too_long", "other: two chats in one", "too_long", "other: spam"), 5):
        Assignment.objects.create(
            job=job, chat=compared.chat(slot), slot=slot, position=slot, rater=nora, state="skipped",
            skip_reason=reason,
        )  # fmt: skip
    rows = rows_of(lead, compared)
    assert rows["anna"].progress.submitted == 4
    assert (rows["nora"].progress.skipped, rows["nora"].labels) == (4, 0)
    assert rows["nora"].progress.reasons == (("other", 2), ("too_long", 2))
    assert "2 × Too long" in text_of(lead.get(set_page(compared)))


def test_an_expired_lease_is_no_skip(lead: Client, compared: Compared) -> None:
    job = job_of(compared, raters=("anna",))
    Assignment.objects.create(
        job=job, chat=compared.chat(9), slot=1, position=9, rater=Rater.objects.get(name="anna"),
        state="skipped", skip_reason=EXPIRED,
    )  # fmt: skip
    progress = rows_of(lead, compared)["anna"].progress
    assert (progress.submitted, progress.skipped, progress.reasons) == (4, 0, ())


def test_a_job_shows_the_labels_given_in_it_only(lead: Client, compared: Compared) -> None:
    job = job_of(compared, raters=("anna", "cleo"))
    context = lead.get(reverse("quality:overview", kwargs={"job_id": job.pk})).context
    assert (context["labels"], context["chats"]) == (24, 4)
    assert [row.person.name for row in context["rows"]] == ["anna", "cleo"]
    assert {(row.others.n, row.others.agreeing) for row in context["rows"]} == {(12, 9)}


def test_a_job_keeps_its_labels_when_the_chats_are_submitted_again_in_another(
    lead: Client, compared: Compared
) -> None:
    job, again = job_of(compared), job_of(compared, raters=("anna", "ben"))
    for one, raters in ((job, 3), (again, 2)):
        urls = pages(compared, one)
        context = lead.get(urls["job_id overview"]).context
        assert (context["labels"], len(context["rows"])) == (4 * 3 * raters, raters)
        groups = [item.groups for item in lead.get(urls["job_id criterion"]).context["items"]]
        assert sum(len(group.labels) for chat in groups for group in chat) == len(groups) * raters


def test_gold_answers_stay_with_the_job_in_which_they_were_given(lead: Client, compared: Compared) -> None:
    job = job_of(compared)
    chat = compared.chat(1)
    Assignment.objects.filter(job=job, chat=chat).update(kind="gold")
    Adjudication.objects.create(
        chat=chat, criterion=polite(), value=True, reason="r", by_name="Ines", created_at=timezone.now()
    )
    job_of(compared)
    page = lead.get(pages(compared, job)["job_id overview"])
    assert {row.gold.n for row in page.context["rows"]} == {1}


# ---------- pairs, criteria, chats ----------


def test_the_matrix_has_agreement_and_kappa_of_each_pair(lead: Client, compared: Compared) -> None:
    matrix = lead.get(set_page(compared, "pairs")).context["matrix"]
    assert [person.name for person in matrix.raters] == list(RATERS)
    assert matrix.rows[0][0] is None
    anna_ben, anna_cleo = matrix.rows[0][1], matrix.rows[0][2]
    assert (anna_ben.n, anna_ben.agreement, anna_ben.kappa) == (120, 1.0, 1.0)
    assert (anna_cleo.n, anna_cleo.agreement) == (120, pytest.approx(81 / 120))
    assert matrix.rows[2][0] == anna_cleo


def test_the_matrix_shows_the_fifty_with_the_most_labels_and_says_so(
    lead: Client, compared: Compared
) -> None:
    chat, criterion = compared.chat(1), polite()
    for n in range(60):
        Label.objects.create(
            chat=chat, criterion=criterion, rater=Rater.objects.create(name=f"r{n:02}"), value=True,
            version=criterion.versions.get(), state="submitted", given_at=timezone.now(),
        )  # fmt: skip
    response = lead.get(set_page(compared, "pairs"))
    matrix = response.context["matrix"]
    assert (len(matrix.raters), matrix.omitted) == (50, 13)
    assert "anna" in {person.name for person in matrix.raters}
    assert "without 13 others" in text_of(response)


def test_criteria_are_sorted_by_disagreement_with_few_chats_last(lead: Client, compared: Compared) -> None:
    def order() -> list[tuple[str, int]]:
        items = lead.get(set_page(compared)).context["criteria"]
        return [(item["row"].criterion.key, item["row"].disagreements) for item in items]

    Label.objects.filter(rater__name="cleo", criterion__key="welcome").update(value=True)
    assert order()[-1] == ("welcome", 0)
    chats = ChatSetMember.objects.filter(position__gt=20).values("chat")
    Label.objects.filter(criterion=polite(), chat__in=chats).delete()
    assert [key for key, _ in order()] == ["wrong_fact", "welcome", "polite"]


def test_a_disagreement_shows_labels_reasons_evidence_notes_and_decision(
    lead: Client, compared: Compared
) -> None:
    chat, criterion = compared.chat(3), polite()
    RaterNote.objects.create(
        rater=Rater.objects.get(name="ben"), chat=chat, criterion=criterion, kind="unclear",
        text="Is irony polite?", client_id=uuid.uuid4(),
    )  # fmt: skip
    Adjudication.objects.create(
        chat=chat, criterion=criterion, value=True, reason="The bot apologised.", by_name="Ines",
        created_at=timezone.now(),
    )  # fmt: skip
    Label.objects.filter(chat=chat, criterion=criterion, rater__name="cleo").update(
        evidence=[{"n": 2, "start": 0, "end": 5, "quote": "Order <3>"}]
    )
    response = lead.get(set_page(compared, "criterion"))
    assert response.context["page_obj"].paginator.count == DIFFERING
    (item,) = (item for item in response.context["items"] if item.chat.pk == chat.pk)
    assert [(group.value, [label.rater for label in group.labels]) for group in item.groups] == [
        (True, ["anna", "ben"]),
        (False, ["cleo"]),
    ]
    text = text_of(response)
    for part in ("cleo on polite: see m2", "Order &lt;3&gt;", "Is irony polite?", "The bot apologised."):
        assert part in text


def test_links_to_adjudication_keep_criterion_and_set_or_job(lead: Client, compared: Compared) -> None:
    job = job_of(compared)
    chat, urls = compared.chat(3).pk, pages(compared, job)
    for page, where in (("set_id", f"set={compared.chat_set.pk}"), ("job_id", f"job={job.pk}")):
        shown = text_of(lead.get(urls[f"{page} criterion"]))
        query = f"?criterion=polite&amp;{where}"
        for address in (
            reverse("labeling:adjudication_queue"),
            reverse("labeling:adjudicate", args=[chat, "polite"]),
        ):
            assert f'href="{address}{query}"' in shown
    first = lead.get(reverse("labeling:adjudication_queue") + f"?criterion=polite&job={job.pk}")
    assert first.context["counts"].disputed == 1


def test_the_most_evenly_split_chats_come_first(lead: Client, compared: Compared) -> None:
    chat = compared.chat(39)
    Label.objects.filter(chat=chat, rater__name="ben").delete()
    items = lead.get(set_page(compared, "criterion")).context["items"]
    assert [item.chat.external_id for item in items[:3]] == ["chat-39", "chat-3", "chat-6"]


def test_a_rushed_answer_is_marked_among_the_others(lead: Client, compared: Compared) -> None:
    job = job_of(compared)
    Assignment.objects.filter(job=job, rater__name="cleo").update(active_ms=1)
    items = lead.get(pages(compared, job)["job_id criterion"]).context["items"]
    labels = [label for item in items for group in item.groups for label in group.labels]
    rushed = {label.rater for label in labels if label.rushed}
    assert rushed == {"cleo"}


def test_the_team_page_goes_through_the_criteria_in_the_rubrics_order(
    lead: Client, compared: Compared
) -> None:
    job = job_of(compared)
    first = lead.get(pages(compared, job)["job_id team"])
    keys = [one["row"].key for one in first.context["criteria"]]
    assert (first.context["criterion"].key, first.context["previous_url"]) == (keys[0], "")
    seen, response = [first.context["criterion"].key], first
    while response.context["next_url"]:
        response = lead.get(response.context["next_url"])
        seen.append(response.context["criterion"].key)
    assert seen == keys
    assert sorted(keys) == ["polite", "welcome", "wrong_fact"]
    text = text_of(lead.get(pages(compared, job)["job_id team"] + "?criterion=polite"))
    assert "Is polite so?" in text
    assert "1 of 4" in text


def test_the_team_page_names_the_jobs_that_start_after_the_round(lead: Client, compared: Compared) -> None:
    job = job_of(compared)
    later = LabelingJob.objects.create(
        chat_set=compared.chat_set, name="Main", state="waiting", calibration=job
    )
    LabelingJob.objects.create(chat_set=compared.chat_set, name="Begun", calibration=job)
    assert lead.get(pages(compared, job)["job_id team"]).context["next_jobs"] == [later]
