"""One version of a prompt: what it says, what changed, taking it up again; pages and API alike."""

from typing import Any

import pytest
from django.db.models import Value
from django.db.models.functions import Concat
from django.test import Client

from alignment.models.regressions import RegressionTest
from alignment.prompts.queries.versions import version_rows
from alignment.regression.services.releases import ReleaseRefused, changed_prompts, release
from evaluation.models.prompts import FewShotExample, PromptVersion
from evaluation.models.runs import Verdict
from evaluation.prompts.queries.versions import champions
from evaluation.prompts.services.restores import RestoreRefused, prompt_restore
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.labels import Label
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared, text_of
from tests.factories.page_text import words_of
from tests.factories.prompt_versions import a_test, a_version, example_chat, judge_with, promote, run_of
from tests.factories.rater_quality import polite

pytestmark = pytest.mark.django_db

URL = "/criteria/polite/versions/{}/"
API = "/api/criteria/polite/prompts/{}/"


@pytest.fixture
def three(compared: Compared) -> list[PromptVersion]:
    """Version 1 with an example, champion version 2 with another, draft 3 of other words."""
    first = a_version(
        polite(), "# Objective\nWas it polite?\n\n# Tone\nCalm.", example_chat(compared, "an-old-one")
    )
    second = a_version(
        polite(),
        "# Objective\nWas it always polite?\n\n# Tone\nCalm.",
        example_chat(compared, "a-new-one"),
        base=first,
    )
    promote(second)
    return [first, second, a_version(polite(), "# Objective\nSomething else.")]


# ---------- reading and comparing ----------


def test_a_version_shows_its_text_by_section_and_its_examples(
    three: list[PromptVersion], author: Client
) -> None:
    shown = words_of(author.get(URL.format(1)))
    for words in (
        "Version 1 of Polite",
        "Was it polite?",
        "Tone Calm.",
        "an-old-one",
        "Why an-old-one is True.",
    ):
        assert words in shown
    assert "Compare with version" in shown


def test_two_versions_are_compared_word_by_word_and_section_by_section(
    three: list[PromptVersion], author: Client
) -> None:
    shown = text_of(author.get(URL.format(2) + "?against=1"))
    assert "From version 1 to version 2" in shown
    assert '<ins><span class="vh"> [added: </span>always ' in shown
    assert "<h3>Objective</h3>" in shown
    words = words_of(author.get(URL.format(2) + "?against=1"))
    assert "Example added: a-new-one" in words and "Example removed: an-old-one" in words


def test_the_comparison_goes_either_way(three: list[PromptVersion], author: Client) -> None:
    shown = text_of(author.get(URL.format(1) + "?against=2"))
    assert '<del><span class="vh"> [removed: </span>always ' in shown


@pytest.mark.parametrize("against", ["9", "x", "", "-1", "99999999999999999999", "²"])
def test_an_unknown_version_is_compared_with_nothing(
    three: list[PromptVersion], author: Client, against: str
) -> None:
    answer = author.get(URL.format(1), {"against": against})
    assert (answer.status_code, answer.context["diff"]) == (200, None)
    if against:
        assert author.get(API.format(1), {"against": against}).status_code == 400


def test_a_changed_example_shows_what_it_was(three: list[PromptVersion], author: Client) -> None:
    old = three[0].examples.get()
    FewShotExample.objects.filter(prompt_version=three[1]).update(
        chat=old.chat, rationale="Why not?", value=False
    )
    body = author.get(API.format(2), {"against": 1}).json()["changes"]
    (change,) = body["examples"]
    assert (change["kind"], change["old"]["value"], change["example"]["value"]) == ("changed", True, False)


@pytest.mark.parametrize(
    "url", [URL.format(8), API.format(8), "/criteria/none/versions/1/", "/api/criteria/none/"]
)
def test_what_is_not_there_is_not_found(three: list[PromptVersion], author: Client, url: str) -> None:
    assert author.get(url).status_code == 404


# ---------- what an author must not read ----------


def test_an_example_whose_chat_was_held_out_since_is_shown_to_leads_alone(
    three: list[PromptVersion], compared: Compared, author: Client, lead: Client
) -> None:
    held = ChatSet.objects.create(name="later", rubric=compared.rubric)
    for version in three[:2]:
        chat = version.examples.get().chat
        ChatSetMember.objects.create(chat_set=held, chat=chat, split="holdout", position=chat.pk)
    urls = (
        "/criteria/polite/",
        URL.format(1),
        URL.format(2) + "?against=1",
        API.format(1),
        API.format(2) + "?against=1",
    )
    for url in urls:
        for secret in ("an-old-one", "a-new-one"):
            assert secret not in author.get(url).content.decode(), url
        assert "-one" in lead.get(url).content.decode(), url
    assert author.get(API.format(1)).json()["hidden_examples"] == 1
    assert "on a chat that you cannot see" in words_of(author.get(URL.format(1)))


def test_no_route_of_criteria_names_a_holdout_chat_to_an_author(
    three: list[PromptVersion], compared: Compared, author: Client
) -> None:
    """The counts of a holdout are aggregates and may be read; a chat, a label or a verdict may not."""
    run_of(three[1], compared.chat_set, wrong=2)
    held = compared.chat_set.members.filter(split="holdout").values("chat")
    Label.objects.filter(chat__in=held).update(rationale="CANARY")
    Verdict.objects.filter(chat__in=held).update(explanation="CANARY", rationale="CANARY")
    Chat.objects.filter(pk__in=held).update(external_id=Concat(Value("CANARY-"), "external_id"))
    urls = ["/criteria/", "/criteria/polite/", URL.format(2) + "?against=1", API.format(2) + "?against=1"]
    urls += ["/api/criteria/", "/api/criteria/polite/", "/api/criteria/polite/prompts/"]
    for url in urls:
        assert "CANARY" not in author.get(url).content.decode(), url
    assert '"split":"holdout"' in author.get("/api/criteria/polite/").content.decode()


# ---------- taking a version up again ----------


def test_a_restore_is_a_new_version_with_the_old_text_and_examples(
    three: list[PromptVersion], author_user: User
) -> None:
    restored = prompt_restore(version=three[0], reason=" The newer one was worse. ", by=author_user)
    assert (restored.number, restored.text, restored.base) == (4, three[0].text, three[0])
    assert (restored.reason, restored.author, restored.origin) == (
        "The newer one was worse.",
        author_user,
        "author",
    )
    assert restored.content_hash == three[0].content_hash
    assert restored.examples.get().chat == three[0].examples.get().chat
    assert champions(criteria=[polite()])[polite().pk] == three[1]


def test_what_a_model_suggested_keeps_that_mark(three: list[PromptVersion]) -> None:
    suggested = a_version(polite(), origin="suggested")
    a_version(polite())
    assert prompt_restore(version=suggested, reason="Again").origin == "suggested"


def test_a_restore_needs_a_reason(three: list[PromptVersion]) -> None:
    with pytest.raises(RestoreRefused, match="needs a reason"):
        prompt_restore(version=three[0], reason="  ")


def test_what_the_champion_or_the_newest_says_is_not_restored(three: list[PromptVersion]) -> None:
    with pytest.raises(RestoreRefused, match="version 2, the champion, has the same"):
        prompt_restore(version=three[1], reason="Again")
    prompt_restore(version=three[0], reason="Once")
    with pytest.raises(RestoreRefused, match="version 4, the latest one, has the same"):
        prompt_restore(version=three[0], reason="Twice")


def test_a_retired_criterion_gets_no_new_version(three: list[PromptVersion]) -> None:
    Criterion.objects.filter(key="polite").update(state="retired")
    with pytest.raises(RestoreRefused, match="is retired"):
        prompt_restore(version=three[0], reason="Again")


def test_an_example_that_is_measured_by_now_is_refused_without_its_name(
    three: list[PromptVersion], compared: Compared
) -> None:
    other = ChatSet.objects.create(name="later", rubric=compared.rubric)
    chat = three[0].examples.get().chat
    ChatSetMember.objects.create(chat_set=other, chat=chat, split="holdout", position=1)
    with pytest.raises(
        RestoreRefused, match="the chat of example 1 is no longer for training alone"
    ) as refused:
        prompt_restore(version=three[0], reason="Again")
    assert "an-old-one" not in str(refused.value)
    assert PromptVersion.objects.filter(criterion=polite()).count() == 3


def test_the_page_restores_and_goes_to_the_new_version(three: list[PromptVersion], author: Client) -> None:
    assert "Restore version 1" in words_of(author.get(URL.format(1)))
    answer = author.post(URL.format(1) + "restore/", {"reason": "The newer one was worse."}, follow=True)
    assert answer.redirect_chain == [(URL.format(4), 302)]
    shown = words_of(answer)
    assert "Version 1 was restored as version 4, a draft." in shown
    assert "Same text as version 1" in shown


def test_a_refused_restore_says_why_and_keeps_the_reason(three: list[PromptVersion], author: Client) -> None:
    answer = author.post(URL.format(1) + "restore/", {"reason": " "})
    assert (answer.status_code, PromptVersion.objects.filter(criterion=polite()).count()) == (200, 3)
    assert "Restoring a version needs a reason" in words_of(answer)
    refused = author.post(URL.format(2) + "restore/", {"reason": "Again"})
    assert "Version 2, the champion, has the same" in words_of(refused)
    assert "Restore version" not in words_of(author.get(URL.format(2)))


def test_the_api_restores_and_refuses_with_a_code(three: list[PromptVersion], author: Client) -> None:
    def restore(number: int, **body: Any) -> Any:
        url = API.format(number) + "restore/"
        return author.post(url, body, content_type="application/json")

    assert restore(1).status_code == 400
    added = restore(1, reason="Again")
    assert (added.status_code, added.json()["number"], added.json()["same_as"]) == (201, 4, 1)
    refused = restore(2, reason="Again")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_restored")


def test_a_restored_version_that_passed_is_what_is_released(
    three: list[PromptVersion], compared: Compared, lead_user: User
) -> None:
    """It shares its judge with the version it repeats: the release must not name that one."""
    champion = run_of(three[1], compared.chat_set)
    run_of(three[0], compared.chat_set)
    restored = prompt_restore(version=three[0], reason="Again")
    again = run_of(restored, compared.chat_set)
    assert again.judge == judge_with(three[0])
    test = a_test(restored, again, baseline_run=champion, result="pass")
    assert changed_prompts(test) == [restored]
    release(test=test, by=lead_user)
    assert champions(criteria=[polite()])[polite().pk] == restored


def a_judges_test(version: PromptVersion, champion: PromptVersion, chat_set: ChatSet) -> RegressionTest:
    """A test of a whole judge that passed; the version's prompt is all that it changes."""
    given = {"candidate": None, "kind": "judge", "baseline_run": run_of(champion, chat_set), "result": "pass"}
    return a_test(version, run_of(version, chat_set), **given)


def test_a_whole_judges_test_is_about_the_newest_version_of_the_content_it_asked(
    three: list[PromptVersion], compared: Compared, lead_user: User
) -> None:
    before = a_judges_test(three[0], three[1], compared.chat_set)
    restored = prompt_restore(version=three[0], reason="Again")
    test = a_judges_test(restored, three[1], compared.chat_set)
    assert test.candidate_run.judge.prompts.get().prompt_version == three[0]
    assert (changed_prompts(before), changed_prompts(test)) == ([three[0]], [restored])
    rows = version_rows(criteria=[polite()])[polite().pk]
    tests = {row.prompt: list(row.tests) for row in rows if row.tests}
    assert tests == {three[0]: [before], restored: [test]}
    release(test=test, by=lead_user)
    assert champions(criteria=[polite()])[polite().pk] == restored


def test_what_the_champion_says_already_is_not_released_again_under_another_number(
    three: list[PromptVersion], compared: Compared, lead_user: User
) -> None:
    test = a_judges_test(three[0], three[1], compared.chat_set)
    promote(prompt_restore(version=three[0], reason="Again"))
    with pytest.raises(ReleaseRefused, match="nothing to release"):
        release(test=test, by=lead_user)


def test_a_test_against_what_the_champion_repeats_still_counts(
    three: list[PromptVersion], compared: Compared, lead_user: User
) -> None:
    promote(prompt_restore(version=three[0], reason="Again"))
    same_judge = run_of(three[0], compared.chat_set)
    test = a_test(three[2], run_of(three[2], compared.chat_set), baseline_run=same_judge, result="pass")
    assert release(test=test, by=lead_user).released_by == lead_user


# ---------- API ----------


def test_the_api_gives_versions_with_state_tests_and_alignment(
    three: list[PromptVersion], compared: Compared, author: Client
) -> None:
    run = run_of(three[1], compared.chat_set)
    test = a_test(three[1], run, result="pass")
    body = author.get("/api/criteria/polite/prompts/").json()
    assert [row["state"] for row in body["results"]] == ["draft", "released", "draft"]
    found = body["results"][1]
    assert found["tests"] == [
        {"id": test.pk, "set": "calibration", "split": "dev", "state": "done", "result": "pass"}
    ]
    dev = next(row for row in found["measured"] if row["split"] == "dev")
    assert sum(dev["confusion"].values()) == 20
    assert dev["balanced_accuracy"]["low"] < dev["balanced_accuracy"]["value"]
    assert "text" not in found


def test_the_api_gives_a_criterion_with_its_champion_and_releases(
    three: list[PromptVersion], author: Client
) -> None:
    found = author.get("/api/criteria/polite/").json()
    assert (found["champion"], found["waiting"], found["passes_when"]) == (2, 3, True)
    assert [row["version"] for row in found["releases"]] == [2]
    listed = author.get("/api/criteria/").json()["criteria"]
    assert sorted(row["key"] for row in listed) == ["polite", "welcome", "wrong_fact"]
