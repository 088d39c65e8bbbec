"""Only leads find the quality of labels; its downloads agree with its pages, and foreign text stays text."""

import csv
import io
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from labeling.models.chats import ChatSetMember
from labeling.models.labels import Label, LabelingJob
from labeling.models.people import Rater, Role, User
from tests.factories.compared_runs import Compared, text_of
from tests.factories.rater_quality import DIFFERING, job_of, pages, rows_of, set_page
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db


def table_of(response: Any) -> str:
    return text_of(response).removeprefix("\ufeff")


def test_only_leads_find_any_of_it(compared: Compared, lead: Client, author: Client) -> None:
    routes = pages(compared, job_of(compared))
    rater, nobody = Client(), Client()
    rater.force_login(make_user("anna", Role.RATER))
    Rater.objects.filter(name="anna").update(user=User.objects.get(username="anna"))
    for name, url in routes.items():
        assert (name, lead.get(url).status_code) == (name, 200)
        for client in (rater, author):
            assert (name, client.get(url).status_code) == (name, 404)
        assert nobody.get(url).status_code == (403 if "api" in name else 302)


def test_unknown_pages_get_404(lead: Client, compared: Compared) -> None:
    for name in ("overview", "pairs", "team", "raters_csv"):
        for page in (f"quality:{name}", f"quality:set_{name}"):
            assert lead.get(reverse(page, args=[10**9])).status_code == 404
    missing = reverse("quality:set_criterion", args=[compared.chat_set.pk, "nonsense"])
    assert lead.get(missing).status_code == 404


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_names_in_the_csv_are_no_formulas(lead: Client, compared: Compared, start: str) -> None:
    name = f'{start}cmd|"/c calc"!A1'
    Rater.objects.filter(name="anna").update(name=name)
    response = lead.get(set_page(compared, "raters_csv"))
    assert response["Content-Type"].startswith("text/csv")
    head, *rows = csv.reader(io.StringIO(table_of(response), newline=""))
    names = [dict(zip(head, row, strict=True))["rater"] for row in rows]
    assert f"'{name}" in names
    assert name not in names


def test_the_file_and_the_api_have_the_figures_of_the_page(lead: Client, compared: Compared) -> None:
    page = rows_of(lead, compared)
    reader = csv.DictReader(io.StringIO(table_of(lead.get(set_page(compared, "raters_csv")))))
    lines = {line["rater"]: line for line in reader}
    body = lead.get(set_page(compared, "api")).json()
    raters = {row["rater"]: row for row in body["raters"]}
    assert set(page) == set(lines) == set(raters)
    for name, row in page.items():
        share = row.others.share
        assert lines[name]["agreement"] == str(round(share.value, 4))
        assert lines[name]["compared"] == str(row.others.n)
        assert raters[name]["others"]["agreement"] == share.as_json()
        assert raters[name]["others"]["tied"] == row.tied
    assert [pair["raters"] for pair in body["pairs"]] == [["anna", "ben"], ["anna", "cleo"], ["ben", "cleo"]]
    assert {row["key"]: row["parted_chats"] for row in body["criteria"]}["polite"] == DIFFERING
    assert body["everybody"]["n"] == 282


def test_hostile_names_and_texts_stay_text(lead: Client, compared: Compared) -> None:
    attack = "<script>alert(1)</script>"
    Rater.objects.filter(name="cleo").update(name=attack)
    Label.objects.filter(rater__name=attack).update(
        rationale=attack, evidence=[{"n": 1, "start": 0, "end": 1, "quote": attack}]
    )
    job = job_of(compared, raters=(attack, "anna"))
    LabelingJob.objects.filter(pk=job.pk).update(name=attack)
    for name, url in pages(compared, job).items():
        if "csv" not in name and "api" not in name:
            assert (name, attack in text_of(lead.get(url))) == (name, False)


def test_an_empty_workspace_says_what_to_do_next(lead: Client) -> None:
    assert ">Open chat sets</a>" in text_of(lead.get(reverse("quality:list")))


def test_a_set_without_labels_says_so(lead: Client, compared: Compared) -> None:
    Label.objects.all().delete()
    assert "No labels yet" in text_of(lead.get(set_page(compared)))
    for name, url in pages(compared).items():
        assert (name, lead.get(url).status_code) == (name, 200)


def test_chats_of_the_holdout_are_kept_from_those_who_may_not_see_them(compared: Compared) -> None:
    user = make_user("petra")
    user.user_permissions.add(Permission.objects.get(codename="manage_labeling"))
    client = Client()
    client.force_login(user)
    names = {item.chat.external_id for item in client.get(set_page(compared, "criterion")).context["items"]}
    held = ChatSetMember.objects.filter(split="holdout").values_list("chat__external_id", flat=True)
    assert names
    assert not names & set(held)
