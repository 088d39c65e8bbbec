"""How the judge decided, on the chat page: checked quotes, samples, windows, passages, flags, attempts."""

from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import Settings

from alignment.chat_detail.queries import page
from evaluation.engines.core.flags import flag_words
from evaluation.models.judges import Judge
from evaluation.models.prompts import ArticleVersion, KnowledgeArticle
from evaluation.models.runs import Attempt, ModelCall, Passage, Run, UnitCall, Verdict
from evaluation.runs.queries.steps import final_rationales
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Split
from labeling.models.labels import Consensus
from tests.factories.compared_runs import text_of
from tests.factories.runs import always, answering, block, evaluate, the_run, workspace
from tests.stub_endpoint import Answer, Body, StubReply, asked_keys, asked_text

pytestmark = pytest.mark.django_db(transaction=True)

ADVOCATE = "Answers to argue for"
QUOTED = '[m1: "In case c0"] and [m2: "I have told the shop"]'


@dataclass(frozen=True)
class Judged:
    """One chat that one run has judged."""

    run: Run
    chat: Chat

    @property
    def verdict(self) -> Verdict:
        return Verdict.objects.get(run=self.run)

    @property
    def url(self) -> str:
        return reverse("alignment:chat", args=[self.run.pk, self.chat.pk])

    def flag(self, *flags: str, **fields: Any) -> None:
        Verdict.objects.filter(run=self.run).update(flags=list(flags), **fields)

    def set_config(self, **config: Any) -> None:
        judge = Judge.objects.get(pk=self.run.judge_id)
        Judge.objects.filter(pk=judge.pk).update(config=judge.config | config)


def judged(settings: Settings, engine: str, answer: Answer) -> Judged:
    chat = workspace("polite", chats=1).members.get().chat
    with answering(settings, answer):
        evaluate("--set", "calibration", "--engine", engine)
    return Judged(the_run(), chat)


def focus_of(client: Client, case: Judged) -> Any:
    return client.get(case.url).context["focus"]


def add_answer(case: Judged, value: bool, *, sample: int = 0, window: int = 0) -> None:
    """Another answer to the same question, as a further sample or for a further window."""
    first = UnitCall.objects.filter(unit__run=case.run, role="direct").select_related("call").earliest("id")
    call = ModelCall.objects.get(pk=first.call_id)
    call.pk, call.key = None, f"{sample}-{window}"
    call.reply = f"Answer {sample} of part {window}.\n\nVERDICTS\npolite: {str(value).upper()}"
    call.save()
    UnitCall.objects.create(unit=first.unit, call=call, role="direct", step=1, sample=sample, window=window)


# ---------- debate ----------


def debating(body: Body) -> StubReply:
    if ADVOCATE in asked_text(body):
        return StubReply(f"The case rests on {QUOTED}. [verified]")
    return block(dict.fromkeys(asked_keys(body), True), prose="Weighed.")


def test_a_debate_has_three_columns_with_quote_marks_as_chips(lead: Client, settings: Settings) -> None:
    case = judged(settings, "debate", debating)
    shown = text_of(lead.get(case.url))
    assert shown.count('<span class="good">verified</span>') == 2  # one a side
    assert shown.count('<span class="bad">not in turn 2</span>') == 2
    assert "[mark removed]" in shown  # a side cannot mark its own quotes
    assert 'class="steps n3"' in shown
    assert [step.argued for step in focus_of(lead, case)["steps"]] == [False, True, None]
    assert "The Judge sided with the defender" in shown


# ---------- reflection ----------


def changing(body: Body) -> StubReply:
    audit = "colleague" in asked_text(body)
    return block(dict.fromkeys(asked_keys(body), not audit), prose="CHANGE it." if audit else "A draft.")


def test_reflection_shows_both_answers_and_that_it_changed(lead: Client, settings: Settings) -> None:
    case = judged(settings, "reflection", changing)
    focus = focus_of(lead, case)
    assert [(step.verdict.state, step.verdict.value) for step in focus["steps"]] == [
        ("read", True),
        ("read", False),
    ]
    assert focus["change"]["changed"]
    shown = text_of(lead.get(case.url))
    assert "changed" in shown
    assert "Change without a reason" in shown


# ---------- samples and windows ----------


def test_samples_are_listed_and_the_deciding_one_comes_first(lead: Client, settings: Settings) -> None:
    case = judged(settings, "direct", always(False))
    add_answer(case, True, sample=1)
    add_answer(case, True, sample=2)
    case.flag("from_sample:1", value=True, votes_true=2, votes_false=1, votes_na=0)
    focus = focus_of(lead, case)
    assert [(answer.verdict.value, answer.is_final) for answer in focus["answers"]] == [
        (False, False),
        (True, True),
        (True, False),
    ]
    assert focus["deciding"][0].text == "Answer 1 of part 0."
    shown = text_of(lead.get(case.url))
    assert "2 × True, 1 × False" in " ".join(shown.split())
    assert "They differ, so the verdict is uncertain" in shown
    assert shown.count("Sent the same text as an earlier call above.") == 2
    assert "From sample" not in shown


def test_windows_name_their_turns_and_the_rule(lead: Client, settings: Settings) -> None:
    case = judged(settings, "direct", always(True))
    case.set_config(windows={"tokens": 5, "overlap": 0, "rule": "any_fails"})
    add_answer(case, False, window=1)
    said = "Judged in 2 overlapping windows; the failing answer decides: by window 2. A long rationale."
    case.flag("windows:2", "from_window:1", value=False, explanation=said)
    focus = focus_of(lead, case)
    assert [(answer.turns, answer.verdict.value) for answer in focus["answers"]] == [
        ("turn 1", True),
        ("turn 2", False),
    ]
    assert focus["deciding"][0].text == "Answer 0 of part 1."
    shown = text_of(lead.get(case.url))
    assert "Judged in 2 overlapping windows; the failing answer decides: by window 2." in shown
    assert "A long rationale" not in shown


def test_an_export_has_the_rationale_of_the_deciding_answer(settings: Settings, lead: Client) -> None:
    case = judged(settings, "direct", always(False))
    add_answer(case, True, sample=1)
    case.flag("from_sample:1")
    assert final_rationales([case.verdict]) == {case.verdict.pk: "Answer 1 of part 0."}


# ---------- knowledge, probabilities, flags ----------


def test_passages_are_shown_with_article_version_and_score(lead: Client, settings: Settings) -> None:
    case = judged(settings, "direct", always(True))
    case.set_config(knowledge={"mode": "retrieved"})
    assert "No article matched" in text_of(lead.get(case.url))
    article = KnowledgeArticle.objects.create(key="refunds")
    version = ArticleVersion.objects.create(
        article=article,
        number=4,
        title="Refunds",
        text="Before. Refunds take 3 days. After.",
        content_hash="x",
    )
    unit = case.verdict.unit
    assert unit is not None
    Passage.objects.create(
        unit=unit,
        criterion=case.verdict.criterion,
        article_version=version,
        rank=1,
        start=8,
        end=28,
        score=7.25,
    )
    (passage,) = focus_of(lead, case)["passages"]
    assert (passage.key, passage.version, passage.text) == ("refunds", 4, "Refunds take 3 days.")
    assert "score 7.25" in text_of(lead.get(case.url))


def test_a_token_probability_is_called_one_of_the_answer_only_where_labels_calibrate_it(
    lead: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = judged(settings, "direct", always(True))
    assert "probability of T" not in text_of(lead.get(case.url))
    case.flag(p_true=0.83)
    assert "Token probability of TRUE: <b>0.83</b>, not calibrated" in text_of(lead.get(case.url))
    monkeypatch.setattr(page, "MINIMUM_VERDICTS", 1)
    Consensus.objects.create(chat=case.chat, criterion=case.verdict.criterion, state="unresolved")
    assert "not calibrated" in text_of(lead.get(case.url))
    Consensus.objects.update(state="true")
    shown = text_of(lead.get(case.url))
    assert "Judge's probability of True: <b>0.83</b>" in shown
    assert f'href="/reports/runs/{case.run.pk}/criteria/polite/#reliability"' in shown


def test_how_many_quotes_were_found_is_shown_where_there_are_some(lead: Client, settings: Settings) -> None:
    case = judged(settings, "direct", always(True))
    assert "in the turn named" not in text_of(lead.get(case.url))
    case.flag(quotes=3, quotes_verified=2, quotes_close=1)
    assert "2 of 3 quotes found in the turn named, 1 close to it." in " ".join(
        text_of(lead.get(case.url)).split()
    )


@pytest.mark.parametrize(
    "flag", ["one_sided", "audit_contradicts", "suspect_instruction", "support_concedes"]
)
def test_a_flag_is_shown_in_words_with_its_meaning(lead: Client, settings: Settings, flag: str) -> None:
    case = judged(settings, "direct", always(True))
    case.flag(flag)
    words, shown = flag_words(flag), text_of(lead.get(case.url))
    assert words.meaning
    assert words.name in shown
    assert flag not in shown


def test_an_unknown_flag_is_shown_by_its_own_name(lead: Client, settings: Settings) -> None:
    case = judged(settings, "direct", always(True))
    case.flag("brand_new_thing")
    assert "Brand new thing" in text_of(lead.get(case.url))


# ---------- calls ----------


def test_each_attempt_of_a_call_is_shown_with_how_it_ended(lead: Client, settings: Settings) -> None:
    case = judged(settings, "direct", always(True))
    call = ModelCall.objects.get()
    sent = Attempt.objects.get()
    Attempt.objects.create(
        call=call, number=2, sent_at=sent.sent_at, ended_at=sent.sent_at, outcome="rate_limited", status=429
    )
    (step,) = focus_of(lead, case)["calls"]
    assert [(row.number, row.outcome, row.status) for row in step.attempts] == [
        (1, "Answered", 200),
        (2, "Rate limited", 429),
    ]
    assert "2 attempts" in text_of(lead.get(case.url))


@pytest.mark.heavy
def test_the_queries_do_not_grow_with_samples_and_attempts(lead: Client, settings: Settings) -> None:
    case = judged(settings, "direct", always(True))
    lead.get(case.url)
    with CaptureQueriesContext(connection) as one:
        lead.get(case.url)
    for sample in range(1, 9):
        add_answer(case, True, sample=sample)
    with CaptureQueriesContext(connection) as nine:
        lead.get(case.url)
    assert len(nine) == len(one)


def test_a_holdout_chat_stays_invisible_for_authors(author: Client, lead: Client, settings: Settings) -> None:
    case = judged(settings, "direct", always(True))
    assert author.get(case.url).status_code == 200
    ChatSetMember.objects.filter(chat=case.chat).update(split=Split.HOLDOUT)
    assert author.get(case.url).status_code == 404
    assert lead.get(case.url).status_code == 200
    assert ChatSet.objects.count() == 1


def test_a_failed_verdict_says_why_and_has_no_deciding_answer(lead: Client, settings: Settings) -> None:
    chat = workspace("polite", chats=1).members.get().chat
    with answering(settings, lambda body: StubReply("{}", status=400)):
        evaluate("--set", "calibration", "--engine", "direct", "--samples", "3")
    page = text_of(lead.get(Judged(the_run(), chat).url))
    assert "Request refused: HTTP 400" in page
    assert "bad_request" not in page
    assert "gives the verdict" not in page
