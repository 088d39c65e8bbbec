"""A report warns if labels and verdicts answer different texts: page, JSON and table."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from evaluation.models.judges import JudgePrompt
from evaluation.models.prompts import PromptVersion
from labeling.models.labels import Label
from labeling.models.rubric import CriterionVersion
from tests.factories.compared_runs import Compared, text_of, urls
from tests.factories.rater_quality import polite

pytestmark = pytest.mark.django_db


def reworded(number: int, *, question: str) -> CriterionVersion:
    """A newer text of `polite`; the same `question` again is a change of the guideline alone."""
    return CriterionVersion.objects.create(
        criterion=polite(), number=number, question=question, definition="D.", content_hash=question
    )


def asked(compared: Compared, version: CriterionVersion) -> None:
    prompt = PromptVersion.objects.create(
        criterion=polite(), number=1, text="p", content_hash="p", reason="first"
    )
    JudgePrompt.objects.create(
        judge=compared.run.judge,
        criterion=polite(),
        criterion_version=version,
        prompt_version=prompt,
        group=1,
    )


def questions_of(compared: Compared, client: Client, query: str = "") -> dict[str, Any]:
    """`questions` of `polite`, the same from API and command, and whether page and table say the words."""
    body = client.get(urls(compared)["api_run"] + query).json()
    (entry,) = (row for row in body["criteria"] if row["key"] == "polite")
    questions: dict[str, Any] = entry["questions"]
    shown = text_of(client.get(urls(compared)["report"] + query))
    out = StringIO()
    call_command("alignment_report", "--run", compared.run.pk, stdout=out)
    if words := questions["words"]:
        assert words[0].upper() + words[1:] in shown
        assert "Labels and judge answer different versions of the question on 1 criterion" in shown
        assert query or f"polite: {words}." in out.getvalue()
    else:
        assert "different versions of the question" not in shown
        assert "verdicts answer version" not in out.getvalue()
    return questions


def test_labels_to_an_older_text_than_the_judges_are_named(compared: Compared, lead: Client) -> None:
    asked(compared, reworded(2, question="new"))
    assert questions_of(compared, lead) == {
        "judge": 2,
        "labels": 1,
        "same": False,
        "words": "labels answer version 1, verdicts answer version 2",
    }


def test_once_a_chat_is_labelled_again_only_answers_to_the_new_text_count(
    compared: Compared, lead: Client
) -> None:
    newer = reworded(2, question="new")
    asked(compared, newer)
    again = [compared.chat(n).pk for n in range(1, 11)]
    Label.objects.filter(criterion=polite(), chat__in=again).update(version=newer)
    assert questions_of(compared, lead) == {"judge": 2, "labels": 2, "same": True, "words": ""}


def test_another_guideline_is_no_other_question(compared: Compared, lead: Client) -> None:
    first = polite().versions.get()
    asked(compared, reworded(2, question=first.content_hash))
    assert questions_of(compared, lead)["words"] == ""


def test_without_a_known_question_of_the_judge_nothing_is_compared(compared: Compared, lead: Client) -> None:
    reworded(2, question="new")
    assert questions_of(compared, lead) == {"judge": None, "labels": 1, "same": None, "words": ""}
