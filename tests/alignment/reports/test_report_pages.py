"""Report list, report, cell and chat pages: permissions and links."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from evaluation.models.judges import Judge
from evaluation.models.runs import Run, Verdict
from labeling.models.labels import Adjudication, Label
from labeling.models.people import Rater, Role, User
from tests.factories.compared_runs import (
    HUMAN,
    JUDGE,
    SPLITS,
    Compared,
    add_chats,
    cell,
    cell_url,
    chat_url,
    text_of,
    urls,
)
from tests.factories.rows import analyze, make_chat, make_set, make_user
from tests.factories.stored_reports import forget_documents

OPEN = ("open_true", "open_false")

pytestmark = pytest.mark.django_db

DIFFERING = [n for n in range(1, 41) if HUMAN["polite"](n) != JUDGE["polite"](n)]  # 5, 10, …, 40


# ---------- rights ----------


def test_strangers_are_sent_to_the_sign_in(compared: Compared, client: Client) -> None:
    for name, url in urls(compared).items():
        response = client.get(url)
        if name.startswith("api"):
            assert response.status_code == 403
        else:
            assert (response.status_code, response.headers["Location"].split("?")[0]) == (
                302,
                reverse("account_login"),
            )


def test_for_a_rater_none_of_it_exists(compared: Compared, client: Client, rater_user: User) -> None:
    client.force_login(rater_user)
    for url in urls(compared).values():
        response = client.get(url)
        assert response.status_code == 404
        assert "outside judge" not in text_of(response)


def test_leads_and_authors_may_open_all_of_it(compared: Compared, lead: Client, author: Client) -> None:
    for url in urls(compared).values():
        assert lead.get(url).status_code == 200
        assert author.get(url).status_code == 200


def test_a_rater_who_is_also_lead_may_open_it(compared: Compared, client: Client) -> None:
    client.force_login(make_user("both", Role.RATER, Role.LEAD))
    assert client.get(urls(compared)["report"]).status_code == 200


# ---------- holdout ----------


def test_an_author_gets_numbers_of_the_holdout_and_none_of_its_chats(
    compared: Compared, author: Client
) -> None:
    held = [n for n in range(1, 41) if SPLITS[n % 4] == "holdout"]
    page = author.get(urls(compared)["report"])
    assert page.context["report"]["chats"] == 40
    for name in ("tp", "fn", "fp", "tn"):
        shown = author.get(cell_url(compared, "polite", name))
        listed = {item.chat_id for item in shown.context["items"]}
        wanted = {n for n in range(1, 41) if cell("polite", n) == name and n not in held}
        assert listed == {f"chat-{n}" for n in wanted}
    for n in held:
        assert author.get(chat_url(compared, n)).status_code == 404
    listed = {row["chat_id"] for row in author.get(urls(compared)["api_run"]).json()["disagreements"]}
    assert listed and not listed & {f"chat-{n}" for n in held}


def test_a_lead_gets_the_holdout_as_well(compared: Compared, lead: Client) -> None:
    assert lead.get(chat_url(compared, 20)).status_code == 200
    listed = {row["chat_id"] for row in lead.get(urls(compared)["api_run"]).json()["disagreements"]}
    assert "chat-20" in listed
    assert [item.chat_id for item in lead.get(cell_url(compared, "polite", "fp")).context["items"]] == [
        f"chat-{n}" for n in DIFFERING if n % 2 == 0
    ]


def test_holdout_in_another_set_is_holdout_for_an_author(compared: Compared, author: Client) -> None:
    assert author.get(chat_url(compared, 5)).status_code == 200
    make_set(compared.rubric, compared.chat(5), name="gold", split="holdout")
    assert author.get(chat_url(compared, 5)).status_code == 404
    assert "chat-5" not in {
        item.chat_id for item in author.get(cell_url(compared, "polite", "fn")).context["items"]
    }


def test_an_authors_way_through_the_disagreements_leaves_the_holdout_out(
    compared: Compared, author: Client
) -> None:
    page = author.get(chat_url(compared, 15))
    assert page.context["prev_url"].startswith(chat_url(compared, 10))
    assert page.context["next_url"].startswith(chat_url(compared, 25))  # 20 is holdout


# ---------- from the matrix to the chats ----------


def test_each_number_of_a_matrix_leads_to_its_chats(compared: Compared, lead: Client) -> None:
    report = lead.get(urls(compared)["report"])
    for row in report.context["report"]["criteria"]:
        for name, count in row["confusion"].items():
            url = row["cells"][name]
            assert f'href="{url}"' in text_of(report)
            items = lead.get(url).context["items"]
            assert [item.chat_id for item in items] == [
                f"chat-{n}" for n in range(1, 41) if cell(row["key"], n) == name
            ]
            assert len(items) == count
            for item in items:
                assert (item.human, item.judge) == (name in ("tp", "fn"), name in ("tp", "fp"))


def test_abstentions_of_the_judge_are_listed_by_human_answer_with_the_reason(
    compared: Compared, lead: Client, author: Client
) -> None:
    verdicts = Verdict.objects.filter(run=compared.run, criterion__key="polite")
    places = {1: "unparsed", 2: "refused", 3: "failed", 5: "read"}  # 5: not applicable
    for n, state in places.items():
        verdicts.filter(chat=compared.chat(n)).update(state=state, value=None)
    verdicts.filter(chat=compared.chat(6)).delete()
    people = {name: [n for n in (*places, 6) if HUMAN["polite"](n) is (name == "open_true")] for name in OPEN}
    (row,) = [
        row
        for row in lead.get(urls(compared)["report"]).context["report"]["criteria"]
        if row["key"] == "polite"
    ]
    assert row["unjudged"] == {"true": len(people["open_true"]), "false": len(people["open_false"])}
    page = text_of(lead.get(f"{urls(compared)['report']}criteria/polite/"))
    for name in OPEN:
        listed = lead.get(row["cells"][name]).context["items"]
        assert [(item.chat_id, item.state) for item in listed] == [
            (f"chat-{n}", places.get(n, "none")) for n in sorted(people[name])
        ]
        assert f'href="{row["cells"][name]}"' in page
        seen = [item.split for item in author.get(row["cells"][name]).context["items"]]
        assert "holdout" not in seen


def test_split_and_ground_truth_stay_on_the_way(compared: Compared, lead: Client) -> None:
    query = "?split=dev&against=rater%3Acleo"
    report = lead.get(urls(compared)["report"] + query)
    url = next(row["cells"]["tn"] for row in report.context["report"]["criteria"] if row["key"] == "polite")
    assert url.endswith(query)
    listed = lead.get(url)
    counted = next(row for row in report.context["report"]["criteria"] if row["key"] == "polite")
    assert len(listed.context["items"]) == counted["confusion"]["tn"] > 0
    assert {item.split for item in listed.context["items"]} == {"dev"}
    assert listed.context["report_url"].endswith(query)
    first = lead.get(listed.context["items"][0].url)
    assert first.status_code == 200
    assert first.context["run_url"].endswith(query)


def test_a_cell_is_listed_in_pages_that_keep_their_query(compared: Compared, lead: Client) -> None:
    add_chats(compared, to=140)
    total = sum(cell("welcome", n) == "tp" for n in range(1, 141))
    first = lead.get(cell_url(compared, "welcome", "tp", "?against=rater%3Aanna"))
    assert len(first.context["items"]) == 50
    assert first.context["page_obj"].paginator.count == total
    assert "?against=rater%3Aanna&amp;page=2" in text_of(first)
    last = lead.get(cell_url(compared, "welcome", "tp", "?page=99"))
    assert len(last.context["items"]) == total % 50


def test_cells_that_do_not_exist_are_not_found(compared: Compared, lead: Client) -> None:
    assert lead.get(cell_url(compared, "polite", "xx")).status_code == 404
    assert lead.get(cell_url(compared, "nothing", "tp")).status_code == 404
    for query in ("?against=rater%3Anobody", "?against=each-rater", "?split=test"):
        assert lead.get(cell_url(compared, "polite", "tp", query)).status_code == 404
    assert lead.get(chat_url(compared, 5, "?against=rater%3Anobody")).status_code == 404


def test_a_rater_who_left_a_criterion_out_has_empty_cells(compared: Compared, lead: Client) -> None:
    Label.objects.filter(rater__name="anna", criterion__key="polite").delete()
    shown = lead.get(cell_url(compared, "polite", "tp", "?against=rater%3Aanna"))
    assert (shown.status_code, shown.context["items"]) == (200, [])
    assert "No chats here" in text_of(shown)


# ---------- one chat ----------


def test_a_disagreeing_chat_shows_labels_verdict_and_the_whole_rationale(
    compared: Compared, lead: Client
) -> None:
    page = lead.get(chat_url(compared, 15))
    focus = page.context["focus"]
    assert focus["criterion"]["key"] == "polite"
    assert [(row["rater"], row["value"]) for row in focus["labels"]] == [
        ("anna", True),
        ("ben", True),
        ("cleo", False),
    ]
    assert focus["verdict"].value is False
    shown = text_of(page)
    for name in ("anna", "ben", "cleo"):
        assert f"{name} on polite: see m2" in shown
    assert "The judge on polite of chat 15" in shown
    assert "Order 15 is on its way." in shown
    line = next(
        row for group in page.context["rows"] for row in group["rows"] if row["criterion"]["key"] == "polite"
    )
    assert line["differ"]
    assert (line["human"].agreeing, line["human"].raters) == (2, 3)


def test_without_a_named_criterion_the_first_disagreement_is_open(compared: Compared, lead: Client) -> None:
    for n, key in ((5, "polite"), (7, "wrong_fact"), (9, "welcome")):
        assert [name for name in HUMAN if HUMAN[name](n) != JUDGE[name](n)] == [key]
        assert lead.get(chat_url(compared, n, "")).context["focus"]["criterion"]["key"] == key


def test_previous_and_next_walk_through_the_disagreements(compared: Compared, lead: Client) -> None:
    walked = [DIFFERING[0]]
    page = lead.get(chat_url(compared, DIFFERING[0]))
    assert "prev_url" not in page.context
    while "next_url" in page.context:
        page = lead.get(page.context["next_url"])
        walked.append(int(page.context["chat"]["external_id"].removeprefix("chat-")))
    assert walked == DIFFERING
    back = lead.get(page.context["prev_url"])
    assert back.context["chat"]["external_id"] == f"chat-{DIFFERING[-2]}"


def test_a_chat_that_agrees_lies_between_two_disagreements(compared: Compared, lead: Client) -> None:
    page = lead.get(chat_url(compared, 12))
    assert page.context["prev_url"].startswith(chat_url(compared, 10))
    assert page.context["next_url"].startswith(chat_url(compared, 15))


def test_a_chat_outside_the_run_is_not_found(compared: Compared, lead: Client) -> None:
    stranger = make_chat("stranger")
    assert lead.get(reverse("alignment:chat", args=[compared.run.pk, stranger.pk])).status_code == 404


def test_a_decision_and_a_missing_verdict_are_named(compared: Compared, lead: Client) -> None:
    chat, polite = compared.chat(5), next(row for row in compared.criteria if row.key == "polite")
    Adjudication.objects.create(
        chat=chat,
        criterion=polite,
        value=False,
        reason="m2 is curt",
        by_name="Ines",
        created_at=timezone.now(),
    )
    Verdict.objects.filter(chat=chat, criterion=polite).update(state="refused", value=None)
    shown = text_of(lead.get(chat_url(compared, 5)))
    assert "m2 is curt" in shown
    assert "No verdict: refused" in shown


def test_what_chats_raters_and_judges_wrote_is_text(compared: Compared, lead: Client) -> None:
    attack = "<img src=x onerror=alert(1)>"
    chat = compared.chat(5)
    chat.messages[0]["content"] = attack
    chat.save()
    Rater.objects.filter(name="anna").update(name=attack)
    Label.objects.filter(chat=chat).update(rationale=attack)
    Verdict.objects.filter(chat=chat).update(rationale=attack)
    Judge.objects.update(name=attack)
    for url in urls(compared).values():
        response = lead.get(url)
        if response["Content-Type"].startswith("text/html"):
            assert "<img" not in text_of(response)
    assert text_of(lead.get(chat_url(compared, 5))).count(escape("<img")) >= 4


# ---------- size ----------


def counted(client: Client, pages: dict[str, str]) -> dict[str, int]:
    """Queries of each page, its report computed first and then read back."""
    found = {}
    for name, url in pages.items():
        for what in ("computed", "stored"):
            if what == "computed":
                forget_documents()
            with CaptureQueriesContext(connection) as queries:
                assert client.get(url).status_code == 200
            found[f"{name}, {what}"] = len(queries)
    return found


@pytest.mark.heavy
def test_no_page_asks_more_queries_of_4000_chats_than_of_40(compared: Compared, lead: Client) -> None:
    pages = urls(compared)
    pages["each rater"] = pages["report"] + "?against=each-rater"
    pages["one rater"] = pages["report"] + "?against=rater%3Acleo"
    pages["chat"] = chat_url(compared, 15)
    pages["disagreements of one rater"] = pages["disagreements"] + "?against=rater%3Acleo"
    lead.get(pages["report"])  # the session and the content types are read once
    small = counted(lead, pages)
    add_chats(compared, to=4000)
    analyze()
    Run.objects.update(finished_at=timezone.now() + timedelta(seconds=1))
    assert counted(lead, pages) == small
