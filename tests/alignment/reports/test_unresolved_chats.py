"""Unresolved chats: what they leave open about a judge's rates, and where raters may settle them."""

from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from alignment.comparison.core.codes import JudgeCode
from alignment.reports.core.sensitivity import sensitivity
from alignment.reports.core.terminal_table import report_table
from labeling.adjudication.services import adjudication_decide
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import Chat
from labeling.models.labels import Consensus, Label
from labeling.models.people import User
from tests.factories.compared_runs import Compared, add_chats, one_of_each_status, share_report, urls
from tests.factories.page_text import words_of
from tests.factories.report_data import UNLABELLED, UNRESOLVED, F, T, criterion, pairs, report
from tests.factories.sampled_labels import sampled


def test_the_best_and_the_worst_case_give_every_unresolved_chat_to_one_side() -> None:
    human, judge = pairs(40, 10, 5, 45)
    said = [*judge, *[T] * 6, *[F] * 4, JudgeCode.REFUSED]
    found = report(criterion(human + [UNRESOLVED] * 11, said))["criteria"][0]["sensitivity"]
    cases = {"best": (46 / 56, 49 / 54), "worst": (40 / 54, 45 / 56)}
    assert found["chats"] == 10
    for name, (tpr, tnr) in cases.items():
        expected = {"tpr": tpr, "tnr": tnr, "balanced_accuracy": (tpr + tnr) / 2}
        assert found[name] == pytest.approx(expected)


def test_no_answers_to_the_unresolved_chats_lead_outside_these_cases() -> None:
    human, judge = pairs(12, 3, 4, 11)
    said = [*judge, *[T] * 5, *[F] * 5]
    found = sensitivity(criterion(human + [UNRESOLVED] * 10, said))
    assert found is not None
    draw = np.random.default_rng(3)
    for _ in range(50):
        settled = human + draw.choice([T, F], size=10).tolist()
        entry = report(criterion(settled, said))["criteria"][0]
        for name, worst in found["worst"].items():
            assert worst - 1e-12 <= entry[name]["value"] <= found["best"][name] + 1e-12


def test_without_unresolved_chats_nothing_is_open() -> None:
    human, judge = pairs(40, 10, 5, 45)
    assert report(criterion(human, judge))["criteria"][0]["sensitivity"] is None
    assert report(criterion([*human, UNRESOLVED], None))["criteria"][0]["sensitivity"] is None


def test_weighted_rates_have_weighted_cases() -> None:
    human = [T] * 20 + [F] * 10 + [UNRESOLVED] * 10
    judge = [T] * 18 + [F] * 12 + [F] * 10
    data = sampled(human, judge, [1.0] * 18 + [3.0] * 22)
    found, plain = sensitivity(data, weighted=True), sensitivity(data)
    assert found is not None and plain is not None
    assert found["worst"]["tpr"] < found["best"]["tpr"] == pytest.approx(plain["best"]["tpr"], abs=0.2)
    # 20 of 22 chats judged False weigh as much as those 22 together: the weights have mean 1.
    assert found["best"]["tnr"] == 1.0


# ---------- reports without a status ----------

HUMAN_ONLY = (None, "consensus")
EACH = ([T, F] * 100, "each-rater")


def cautions_of(human: list[Any], counts: list[list[int]], *, about: tuple[Any, str]) -> list[str]:
    judge, against = about
    data = criterion(human, judge and judge[: len(human)], counts=counts)
    (entry,) = report(data, against=against)["criteria"]
    assert entry["status"] is None
    return [words for words in entry["cautions"] if not words.startswith("raters gave the same label")]


@pytest.mark.parametrize("about", [HUMAN_ONLY, EACH])
def test_reports_without_a_status_caution_of_unresolved_chats(about: tuple[Any, str]) -> None:
    def found(unresolved: int) -> list[str]:
        human = [T, F] * ((200 - unresolved) // 2) + [UNRESOLVED] * unresolved
        agreed = [[3, 0, 0], [0, 3, 0]] * ((200 - unresolved) // 2)
        # Of three raters one did not know: no majority, and raters mostly agree.
        return cautions_of(human, [*agreed, *[[1, 1, 1]] * unresolved], about=about)

    assert found(10) == []
    assert found(20) == ["20 of 200 labelled chats are unresolved, adjudicate them"]
    words = "not enough agreed labels: 42 of 200 labelled chats are unresolved, adjudicate them"
    assert words in found(42)


@pytest.mark.parametrize("about", [HUMAN_ONLY, EACH])
def test_reports_without_a_status_caution_of_raters_who_disagree(about: tuple[Any, str]) -> None:
    counts = [[2, 1, 0], [1, 2, 0]] * 100
    found = cautions_of([T, F] * 100, counts, about=about)
    assert found[0].startswith("raters disagree: the upper bound of their own accuracy")


@pytest.mark.parametrize("about", [HUMAN_ONLY, EACH])
def test_reports_without_a_status_caution_of_unknown_agreement(about: tuple[Any, str]) -> None:
    one_label = [[1, 0, 0], [0, 1, 0]] * 30
    found = cautions_of([T, F] * 30, one_label, about=about)
    assert found == ["human agreement unknown: 0 of 30 needed chats have two labels"]
    assert cautions_of([UNLABELLED] * 60, [[0, 0, 0]] * 60, about=about) == []


@pytest.mark.django_db
@pytest.mark.parametrize(("page", "against"), [("set", "consensus"), ("report", "each-rater")])
def test_pages_without_a_status_show_these_cautions(
    compared: Compared, lead: Client, page: str, against: str
) -> None:
    add_chats(compared, to=140)
    cleo_says(compared, opposite=True)
    shown = lead.get(urls(compared)[page], {"against": against})
    assert "Raters disagree: the upper bound of their own accuracy" in words_of(shown)
    assert "labelled chats are unresolved, adjudicate them" in words_of(shown)


def entry_of(client: Client, compared: Compared, key: str) -> dict[str, Any]:
    rows = client.get(urls(compared)["report"]).context["report"]["criteria"]
    found: dict[str, Any] = next(row for row in rows if row["key"] == key)
    return found


@pytest.mark.django_db
def test_half_of_the_chats_disputed_leave_no_judge_aligned(compared: Compared, lead: Client) -> None:
    one_of_each_status(compared)
    disputed = Consensus.objects.filter(criterion__key="wrong_fact", chat_id__gt=compared.chat(70).pk)
    disputed.update(state=Consensus.State.UNRESOLVED)
    row = entry_of(lead, compared, "wrong_fact")
    assert row["status"] == "not_enough_labels"
    assert row["reasons"][0].startswith("not enough agreed labels: 70 of 140 labelled chats are unresolved")
    (first, *_) = row["next_steps"]
    assert first.words == "adjudicate 70 unresolved chats"
    assert first.url.startswith(reverse("labeling:adjudication_queue"))
    assert not any(step.words.startswith("label ") for step in row["next_steps"])
    assert "Worst and best case" in words_of(lead.get(urls(compared)["report"]))


def labels_of(name: str, *, value: bool | None = None) -> Any:
    """The labels of one rater on `polite`, from chat 21 on."""
    labels = Label.objects.filter(criterion__key="polite", rater__name=name)
    labels = labels.filter(chat__in=[row.pk for row in Chat.objects.all() if int(row.external_id[5:]) > 20])
    return labels if value is None else labels.filter(value=value)


def cleo_says(compared: Compared, *, opposite: bool) -> None:
    """Cleo labels each chat like anna or the other way round; ben labels none of them."""
    labels_of("ben").delete()
    said = {
        value: list(labels_of("anna", value=value).values_list("chat", flat=True)) for value in (True, False)
    }
    for value, chats in said.items():
        labels_of("cleo").filter(chat__in=chats).update(value=value is not opposite)
    polite = next(row for row in compared.criteria if row.key == "polite")
    chats = list(compared.chat_set.members.values_list("chat_id", flat=True))
    consensus_refresh(criterion_ids=[polite.pk], chat_ids=chats)


@pytest.mark.django_db
def test_labels_given_again_end_a_disagreement_and_adjudication_does_not(
    compared: Compared, lead: Client, lead_user: User
) -> None:
    add_chats(compared, to=140)
    cleo_says(compared, opposite=True)
    for row in Consensus.objects.filter(criterion__key="polite", state=Consensus.State.UNRESOLVED):
        adjudication_decide(
            chat=row.chat, criterion=row.criterion, value=True, reason="m2", by=lead_user, seen=None
        )
    settled = entry_of(lead, compared, "polite")
    assert (settled["unresolved"], settled["status"]) == (0, "raters_disagree")
    assert settled["next_steps"][0].words == "refine the guideline, then label these chats again"
    cleo_says(compared, opposite=False)
    assert entry_of(lead, compared, "polite")["status"] != "raters_disagree"


@pytest.mark.django_db
def test_raters_who_disagree_lead_to_the_guideline(compared: Compared, lead: Client, author: Client) -> None:
    add_chats(compared, to=140)
    cleo_says(compared, opposite=True)
    row = entry_of(lead, compared, "polite")
    assert row["status"] == "raters_disagree"
    assert row["reasons"][0].startswith("raters disagree: the upper bound of their own accuracy")
    guideline = reverse("labeling:guideline_detail", args=[compared.rubric.pk])
    steps = [(step.words, step.url) for step in row["next_steps"][:2]]
    assert steps[0] == ("refine the guideline, then label these chats again", guideline)
    assert steps[1][0] == "adjudicate 120 unresolved chats"
    live = lead.get(urls(compared)["report"])
    then = share_report(lead, compared)
    assert "Raters disagree" in words_of(live) and "Raters disagree" in words_of(then)
    assert "On 1 the raters disagree." in live.context["headline"]
    assert "; on 1 the raters disagreed." in then.context["headline"]
    words = "On 1 of 3 criteria the raters disagree: refine the guideline, then label these chats again."
    assert words in report_table(live.context["report"]).splitlines()
    assert "1 raters disagree" in words_of(lead.get(urls(compared)["list"]))
