"""A certificate holds only while today's report of its run qualifies for every certified criterion."""

from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import DjangoAssertNumQueries

from alignment.certificates.queries import todays_report
from alignment.certificates.queries.certificates import certificate_states, certificate_whole
from alignment.certificates.services.certificates import certificate_issue, certificate_revoke
from alignment.comparison.queries.answers import report_data
from alignment.models.certificates import Certificate
from alignment.models.reports import Report
from alignment.reports.core.status import StatusPolicy
from alignment.reports.queries import reports
from labeling.adjudication.services import adjudication_decide
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.labels import Consensus, Label
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.certificates import invert, make_qualifying, relabel, stored_certificate, why
from tests.factories.compared_runs import Compared, add_chats
from tests.factories.page_text import words_of
from tests.factories.rater_quality import polite

pytestmark = pytest.mark.django_db
build_compared = make_qualifying

# The judge was wrong on chats 10 and 20 of `polite`.
STILL = "labels changed since; today's report still qualifies"
LOST = "polite: not aligned with today's labels: TPR 0.20 is below 0.80; "


def answers(row: Certificate, lead: Client) -> dict[str, tuple[str, list[str], list[str]]]:
    """State, reasons and notes, wherever they can be read."""
    listed = lead.get("/certificates/").context["items"]
    given = lead.get(f"/api/certificates/{row.pk}/").json()
    found = {
        "page": lead.get(f"/certificates/{row.pk}/").context["state"],
        "list": next(one["state"] for one in listed if one["row"].pk == row.pk),
    }
    told = {
        "api": given,
        "api list": next(one for one in lead.get("/api/certificates/").json() if one["id"] == row.pk),
        "verify": lead.post("/api/certificates/verify/", given, content_type="application/json").json(),
    }
    return {name: (one.word, list(one.reasons), list(one.notes)) for name, one in found.items()} | {
        name: (one["state"], one["reasons"], one["notes"]) for name, one in told.items()
    }


def shown(lead: Client, url: str) -> str:
    return unescape(words_of(lead.get(url)))


def one_answer(row: Certificate, lead: Client) -> tuple[str, list[str], list[str]]:
    """The answer that every place gives."""
    found = answers(row, lead)
    first = found["page"]
    assert found == dict.fromkeys(found, first)
    return first


# ---------- labels ----------


def test_inverted_labels_end_it_everywhere_with_criterion_and_reason(
    certificate: Certificate, lead: Client
) -> None:
    invert(polite())
    word, (reason,), notes = one_answer(certificate, lead)
    assert (word, notes) == ("expired", [])
    assert reason.startswith(LOST) and "TNR 0.20 is below 0.80" in reason
    page = shown(lead, f"/certificates/{certificate.pk}/")
    for words in ("No longer valid", f"P{reason[1:]}", "Today's report", "It no longer permits any use."):
        assert words in page, words
    assert "0 of 3 criteria" in shown(lead, "/certificates/")


def test_every_lost_criterion_is_named(certificate: Certificate) -> None:
    for criterion in Criterion.objects.filter(key__in=["polite", "wrong_fact"]):
        invert(criterion)
    reasons = why(certificate)[1]
    assert [reason.split(":")[0] for reason in reasons] == ["polite", "wrong_fact"]


def test_changed_labels_that_still_qualify_are_named_everywhere(
    certificate: Certificate, compared: Compared, lead: Client
) -> None:
    relabel(polite(), compared.chat(10))
    assert one_answer(certificate, lead) == ("valid", [], [STILL])
    for url in ("/certificates/", f"/certificates/{certificate.pk}/"):
        assert STILL.capitalize() in shown(lead, url)


def test_adjudications_count_like_labels(
    certificate: Certificate, compared: Compared, lead_user: User
) -> None:
    for n in range(1, 81, 2):  # raters and judge said True
        adjudication_decide(
            chat=compared.chat(n), criterion=polite(), value=False, reason="No", by=lead_user, seen=None
        )
    word, (reason,) = why(certificate)
    assert (word, reason.split(": ")[:2]) == ("expired", ["polite", "not aligned with today's labels"])


def test_too_few_labels_are_a_reason(certificate: Certificate, compared: Compared) -> None:
    Label.objects.filter(criterion=polite()).exclude(chat__external_id__in=["chat-1", "chat-2"]).delete()
    refresh(compared)
    _, (reason,) = why(certificate)
    assert reason.startswith("polite: not enough labels with today's labels: needs 29 more human True labels")


def test_labels_given_back_let_it_hold_without_a_word(certificate: Certificate, lead: Client) -> None:
    invert(polite())
    invert(polite())
    assert one_answer(certificate, lead) == ("valid", [], [])


def test_labels_on_other_chats_say_nothing(
    certificate: Certificate, compared: Compared, lead: Client
) -> None:
    add_chats(compared, to=201)
    other = compared.chat(201)
    for rows in (compared.run.verdicts, compared.run.run_chats):
        rows.filter(chat=other).delete()
    relabel(polite(), other)
    assert one_answer(certificate, lead) == ("valid", [], [])


def test_labels_of_a_criterion_that_it_does_not_certify_cannot_end_it(certificate: Certificate) -> None:
    invert(Criterion.objects.get(key="welcome"))
    assert why(certificate) == ("valid", ())


# ---------- the status policy ----------


def policy(monkeypatch: pytest.MonkeyPatch, **limits: Any) -> None:
    """Another version in force."""
    now = StatusPolicy(name="other values", version=99, **limits)
    for module in (reports, todays_report):
        monkeypatch.setattr(module, "POLICY", now)


def test_a_stricter_policy_ends_it_and_is_named(
    certificate: Certificate, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy(monkeypatch, minimum_rate=0.82)
    word, (reason,), _ = one_answer(certificate, lead)
    assert word == "expired"
    assert reason.startswith(
        "polite: not aligned under status policy “other values, version 99”: TPR 0.80 is below 0.82"
    )


def test_stored_reports_keep_the_figures_and_policy_of_a_certificate(
    certificate: Certificate, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = lead.get(f"/api/reports/{certificate.report_id}/").json()
    policy(monkeypatch, minimum_rate=0.82)
    one_answer(certificate, lead)
    assert lead.get(f"/api/reports/{certificate.report_id}/").json() == before


def test_a_policy_under_which_it_still_qualifies_is_named(
    certificate: Certificate, compared: Compared, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy(monkeypatch)
    named = "status policy changed to “other values, version 99” since; today's report still qualifies"
    assert one_answer(certificate, lead) == ("valid", [], [named])
    relabel(polite(), compared.chat(10))
    both = "labels changed and " + named
    assert one_answer(certificate, lead) == ("valid", [], [both])


# ---------- certificates that certified nothing ----------


def test_one_on_which_no_criterion_qualified_does_not_hold(
    certificate: Certificate, lead_user: User, compared: Compared, lead: Client
) -> None:
    """Earlier versions issued such certificates."""
    row = stored_certificate(compared.run, by=lead_user, split="holdout")
    reason = "it certifies no criterion for production use"
    assert one_answer(row, lead) == ("expired", [reason], [])


# ---------- who reads the figures ----------


def test_who_may_not_see_the_certificate_verifies_it_without_todays_figures(
    certificate: Certificate, lead: Client, author: Client
) -> None:
    given = lead.get(f"/api/certificates/{certificate.pk}/").json()
    Certificate.objects.update(few_held_out=True)
    invert(polite())

    def reasons(client: Client) -> list[str]:
        found = client.post("/api/certificates/verify/", given, content_type="application/json").json()
        assert found["state"] == "expired"
        return list(found["reasons"])

    assert reasons(author) == ["polite: not aligned with today's labels"]
    assert reasons(lead)[0].startswith(LOST)


# ---------- cost ----------


def documents() -> list[int]:
    return list(Report.objects.filter(kind=Report.Kind.CERTIFIED).values_list("pk", flat=True))


def test_without_a_change_no_report_is_computed_and_nothing_is_written(
    certificate: Certificate, lead: Client
) -> None:
    before = Report.objects.count()
    one_answer(certificate, lead)
    assert Report.objects.count() == before


def test_todays_report_is_computed_once_for_each_change_and_never_stored(
    certificate: Certificate, compared: Compared, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = []

    def counted(*args: Any, **options: Any) -> Any:
        computed.append(args)
        return report_data(*args, **options)

    monkeypatch.setattr(todays_report, "report_data", counted)
    certificate_issue(run=compared.run, by=certificate.issued_by, days=200)  # on the same report
    relabel(polite(), compared.chat(10))
    one_answer(certificate, lead)
    one_answer(certificate, lead)
    assert (len(computed), documents()) == (1, [])
    relabel(polite(), compared.chat(20))
    one_answer(certificate, lead)
    assert len(computed) == 2


def test_read_again_a_changed_one_takes_a_few_queries_and_no_label_or_verdict(
    certificate: Certificate, compared: Compared, lead: Client
) -> None:
    relabel(polite(), compared.chat(10))
    lead.get("/certificates/")
    with CaptureQueriesContext(connection) as caught:
        lead.get("/certificates/")
    tables = ("labeling_label", "labeling_consensus", "evaluation_verdict")
    assert not any(f'FROM "{table}"' in query["sql"] for query in caught for table in tables)
    assert not any(query["sql"].startswith(("INSERT", "UPDATE", "DELETE")) for query in caught)


def test_of_one_that_has_ended_no_report_is_computed(
    certificate: Certificate, lead_user: User, lead: Client
) -> None:
    certificate_revoke(certificate=certificate, reason="Wrong", by=lead_user)
    invert(polite())
    assert one_answer(certificate, lead) == ("revoked", ["Wrong"], [])
    assert documents() == []


@pytest.mark.heavy
def test_changed_ones_take_the_same_queries_however_many(
    certificate: Certificate,
    compared: Compared,
    lead_user: User,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    stored_certificate(compared.run, by=lead_user, split="dev")
    relabel(polite(), compared.chat(10))
    certificate_states(list(certificate_whole()))
    for number in (1, 2):
        rows = list(certificate_whole()[:number])
        with django_assert_num_queries(9):
            assert {state.notes for state in certificate_states(rows).values()} == {(STILL,)}


def refresh(compared: Compared) -> None:
    ids = Consensus.objects.values_list("chat_id", flat=True).distinct()
    consensus_refresh(criterion_ids=[row.pk for row in compared.criteria], chat_ids=list(ids))
