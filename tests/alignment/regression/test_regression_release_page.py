"""One regression test's page: pause, resume, cancel; release of what passed, and of what did not."""

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from alignment.models.regressions import Policy, RegressionTest
from alignment.regression.services.policies import policy_revise
from alignment.regression.worker import runs_of
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.profiles import default_profile
from evaluation.judges.services.profiles import profile_save
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import Promotion
from evaluation.models.runs import EndpointState, Run
from labeling.models.chats import ChatSet
from labeling.models.people import User
from tests.factories.compared_runs import Compared, text_of
from tests.factories.decided_tests import body_of, make_test
from tests.factories.gate_reference import (
    MARK,
    carried_out,
    champion_of,
    judging,
    version_of,
)
from tests.factories.gate_verdicts import verdicts
from tests.factories.page_text import words_of
from tests.factories.runs import answering
from tests.factories.workers import purge_tasks
from tests.stub_endpoint import StubEndpoint

pytestmark = pytest.mark.django_db(transaction=True)

OTHER = "Look three times."


@pytest.fixture
def stub(settings: Settings) -> Iterator[StubEndpoint]:
    purge_tasks()
    with answering(settings, judging(champion=1, wrong={MARK: 1, OTHER: 20})) as endpoint:
        yield endpoint


def start(client: Client, golden: ChatSet, **fields: Any) -> RegressionTest:
    given = {"criterion": "polite", "version": 2, "set": golden.pk, "split": "dev", **fields}
    answer = client.post(reverse("alignment:regression_new"), given)
    assert answer.status_code == 302, answer.context["form"].errors
    return RegressionTest.objects.latest("id")


def page(client: Client, test: RegressionTest, **more: Any) -> Any:
    return client.get(reverse("alignment:regression_detail", args=[test.pk]), **more)


def act(client: Client, test: RegressionTest, what: str, **given: Any) -> Any:
    return client.post(reverse("alignment:regression_act", args=[test.pk, what]), given, follow=True)


def release(client: Client, test: RegressionTest, **given: Any) -> Any:
    return client.post(reverse("alignment:regression_release", args=[test.pk]), given, follow=True)


def states(test: RegressionTest) -> list[str]:
    return [run.state for run in runs_of(RegressionTest.objects.get(pk=test.pk))]


# ---------- while it goes on ----------


def test_progress_sums_up_the_runs_and_the_controls_do_what_they_say(golden: ChatSet, author: Client) -> None:
    test = start(author, golden, noise="on")
    shown = words_of(page(author, test))
    assert "Version 2 against champion version 1 Running" in shown
    assert "Units done 0 of 330, all runs" in shown
    assert "Resume" not in shown
    paused = words_of(act(author, test, "pause"))
    assert (states(test), f"test {test.pk} paused" in paused) == (["paused"] * 3, True)
    assert "Candidate, run" in paused
    resumed = words_of(act(author, test, "resume"))
    assert (states(test), f"test {test.pk} resumed" in resumed) == (["running"] * 3, True)
    cancelled = words_of(act(author, test, "cancel"))
    assert (states(test), "Cancelled" in cancelled) == (["cancelled"] * 3, True)
    assert "not changed: regression test" in words_of(act(author, test, "pause"))


def test_a_finished_run_stays_finished_when_the_other_is_paused(golden: ChatSet, lead: Client) -> None:
    test = start(lead, golden)
    Run.objects.filter(pk=test.baseline_run_id).update(state="done", finished_at=timezone.now())
    act(lead, test, "pause")
    assert states(test) == ["done", "paused"]
    act(lead, test, "resume")
    assert states(test) == ["done", "running"]


def test_the_page_asks_for_its_progress_alone_until_a_state_is_another(golden: ChatSet, lead: Client) -> None:
    test = start(lead, golden)
    seen = page(lead, test).context["seen"]
    url = reverse("alignment:regression_detail", args=[test.pk]) + f"?seen={seen}"
    part = lead.get(url, headers={"HX-Request": "true"})
    assert "<html" not in text_of(part)
    assert "HX-Retarget" not in part.headers
    act(lead, test, "pause")
    whole = lead.get(url, headers={"HX-Request": "true"})
    assert whole.headers["HX-Retarget"] == "#main"


def test_a_test_that_no_worker_takes_up_says_so(golden: ChatSet, lead: Client) -> None:
    test = start(lead, golden)
    Run.objects.update(rung_at=None)
    assert "No worker is running." in words_of(page(lead, test))


def test_a_test_whose_endpoint_asks_to_wait_says_until_when(golden: ChatSet, lead: Client) -> None:
    test = start(lead, golden)
    run = Run.objects.get(pk=test.candidate_run_id)
    endpoint = run.judge.config["endpoint"]
    EndpointState.objects.create(endpoint=endpoint, model=run.judge.model, not_before=time.time() + 900)
    assert re.search(r"The endpoint asks to wait: next call in \d{3} s\.", words_of(page(lead, test)))


@pytest.mark.heavy
def test_the_page_takes_as_many_queries_for_one_criterion_as_for_many(
    compared: Compared, lead: Client
) -> None:
    counts = []
    for keys in (["polite", "exact"], [f"key_{n}" for n in range(20)]):
        body = body_of(*(verdicts(right=200, key=key) for key in keys))
        test = make_test(compared, body=body, candidate=None, kind="judge")
        page(lead, test)  # what is known of the covered chats is kept from now on
        with CaptureQueriesContext(connection) as queries:
            page(lead, test)
        counts.append(len(queries))
    assert counts[0] == counts[1]


# ---------- releasing ----------


def test_a_pass_is_released_by_a_lead_and_asked_in_new_runs(
    golden: ChatSet, lead: Client, author: Client, lead_user: User
) -> None:
    test = carried_out(start(author, golden))
    assert "Only a lead can release it" in words_of(page(author, test))
    assert "Release v2" in words_of(page(lead, test))
    assert release(author, test).status_code == 404
    shown = words_of(release(lead, test))
    assert champion_of().number == 2
    assert "Released. New runs use this candidate; older runs keep their prompts." in shown
    assert f"by {lead_user}" in shown
    assert "Release v2" not in shown
    assert "is already released" in words_of(release(lead, test))


@pytest.mark.heavy
def test_authors_release_what_passed_where_the_policy_says_so(
    golden: ChatSet, author: Client, lead_user: User
) -> None:
    policy_revise(changes={"authors_release": True}, reason="A small team", by=lead_user)
    test = carried_out(start(author, golden))
    assert "Release v2" in words_of(page(author, test))
    release(author, test)
    assert champion_of().number == 2


def test_what_failed_is_released_against_the_gate_with_a_reason_that_stays(
    golden: ChatSet, lead: Client, author: Client
) -> None:
    version_of(mark=OTHER)
    test = carried_out(start(author, golden, version=3))
    assert test.result == "fail"
    assert "a second run of the candidate failed too" in words_of(page(lead, test))
    assert "Only a lead can release a version that did not pass" in words_of(page(author, test))
    assert release(author, test, reason="I like it").status_code == 404
    assert "Not released: Enter a reason." in words_of(release(lead, test))
    long = "The law says so. " * 200
    kept = release(lead, test, reason=long)
    assert kept.context["override"]["reason"].value() == long
    assert '<details class="override" open>' in kept.content.decode()
    assert champion_of().number == 1
    shown = words_of(release(lead, test, reason="The <b>law</b> says so"))
    assert "Released by override" in shown
    assert "The gate said fail. Reason: The &lt;b&gt;law&lt;/b&gt; says so" in shown
    listed = words_of(author.get(reverse("alignment:regression_list")))
    assert "Override" in listed
    assert "The &lt;b&gt;law&lt;/b&gt; says so" in listed
    assert Promotion.objects.latest("id").overridden


@pytest.mark.heavy
def test_a_test_against_an_older_champion_leads_to_a_new_one(
    golden: ChatSet, lead: Client, stub: StubEndpoint
) -> None:
    stub.answer = judging()
    first = carried_out(start(lead, golden))
    version_of(mark=OTHER)
    second = carried_out(start(lead, golden, version=3))
    release(lead, second)
    shown = page(lead, first)
    assert "The champion of Polite is now version 3: test again." in words_of(shown)
    assert "/regressions/new/?criterion=polite&amp;version=2" in text_of(shown)
    assert "Not released: the champion of Polite is now version 3" in words_of(release(lead, first))
    assert champion_of().number == 3


@pytest.mark.heavy
def test_the_reason_of_an_override_that_comes_too_late_is_still_there_to_be_copied(
    golden: ChatSet, lead: Client
) -> None:
    version_of(mark=OTHER)
    failed = carried_out(start(lead, golden, version=3))
    release(lead, carried_out(start(lead, golden)))
    shown = words_of(release(lead, failed, reason="The <b>law</b> says so"))
    assert "Not released: the champion of Polite is now version 2" in shown
    assert "Your reason was not saved: The &lt;b&gt;law&lt;/b&gt; says so" in shown
    assert champion_of().number == 2


@pytest.mark.heavy
def test_a_whole_judge_becomes_the_default_unless_it_was_changed_since(
    golden: ChatSet, lead: Client, stub: StubEndpoint
) -> None:
    stub.answer = judging()
    profile = profile_save(name="reflecting", choice=JudgeSpec("reflection"))
    given = {"kind": "judge", "candidate_profile": profile.pk, "set": golden.pk, "split": "dev"}
    lead.post(reverse("alignment:regression_new"), given)
    test = carried_out(RegressionTest.objects.get())
    updated = JudgeProfile.objects.get(pk=profile.pk).updated_at
    profile_save(name="reflecting", choice=JudgeSpec("debate"), profile=profile)
    assert "The profile reflecting has changed since the test" in words_of(page(lead, test))
    JudgeProfile.objects.filter(pk=profile.pk).update(updated_at=updated)
    release(lead, test)
    assert default_profile() == profile


def test_nothing_is_done_to_a_test_by_other_means(golden: ChatSet, lead: Client) -> None:
    test = start(lead, golden)
    assert act(lead, test, "explode").status_code == 404
    assert lead.get(reverse("alignment:regression_release", args=[test.pk])).status_code == 405
    assert "is not finished" in words_of(release(lead, test, reason="Now"))


def test_authors_have_no_way_from_a_holdout_test_to_its_chats(
    compared: Compared, lead: Client, author: Client
) -> None:
    body = body_of(verdicts(fixed=3, broken=2, right=183))
    test = make_test(compared, body=body, split="holdout")
    cell = reverse("alignment:regression_cell", args=[test.pk, "polite", "broken"])
    assert cell in text_of(page(lead, test))
    assert cell not in text_of(page(author, test))
    assert "2 broken" in words_of(page(author, test))
    assert text_of(page(lead, test)).count('?criterion=polite"') == 1  # by topic


def test_each_criterion_of_a_test_is_counted_by_topic_once(compared: Compared, lead: Client) -> None:
    body = body_of(*(verdicts(right=200, key=key) for key in ("polite", "welcome")))
    shown = text_of(page(lead, make_test(compared, body=body, candidate=None, kind="judge")))
    assert [shown.count(f'topics/?criterion={key}"') for key in ("polite", "welcome")] == [1, 1]


def test_a_subjective_criterion_is_reported_and_marked(compared: Compared, lead: Client) -> None:
    body = body_of(verdicts(broken=20, right=100, tier="subjective"))
    shown = words_of(page(lead, make_test(compared, body=body)))
    assert "Polite Directional only" in shown
    assert "For information only" in shown
    assert body["gate"] == "pass"


def test_without_a_measure_of_the_noise_the_page_says_how_to_get_one(
    compared: Compared, lead: Client
) -> None:
    body = body_of(verdicts(fixed=3, broken=2, right=183))
    body["criteria"][0]["noise"] = None
    assert "noise was not measured" in words_of(page(lead, make_test(compared, body=body)))


# ---------- the list ----------


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", 3),
        ("?criterion=polite", 3),
        ("?criterion=wrong_fact", 0),
        ("?state=pass", 1),
        ("?state=open", 1),
        ("?state=cancelled", 1),
        ("?state=overridden", 0),
        ("?state=nonsense", 3),
    ],
)
def test_the_list_is_narrowed_by_criterion_and_state(
    compared: Compared, lead: Client, query: str, shown: int
) -> None:
    make_test(compared, body=body_of(verdicts(right=200)))
    make_test(compared, state="cancelled")
    make_test(compared)
    answer = lead.get(reverse("alignment:regression_list") + query)
    assert len(answer.context["page_obj"]) == shown
    assert ("No matches" in text_of(answer)) is (shown == 0)


def test_the_list_and_a_test_link_to_start_and_policy(compared: Compared, author: Client) -> None:
    empty = text_of(author.get(reverse("alignment:regression_list")))
    assert reverse("alignment:regression_new") in empty
    test = make_test(compared)
    assert f"/regressions/policies/#policy-{Policy.objects.get().pk}" in text_of(page(author, test))
