"""Every page with a prompt or its verdicts says that the criterion's text changed since it was written."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.judges.services.profiles import profiles_ensure
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Run
from labeling.models.people import User
from labeling.rubric.services.guidelines import CriterionWords, criterion_write
from tests.factories.compared_runs import Compared
from tests.factories.page_text import words_of
from tests.factories.prompt_versions import a_version, promote, run_of
from tests.factories.rater_quality import polite

pytestmark = pytest.mark.django_db

SAID = "written for an older definition of polite: text 1, now 2 (guideline changed)"


@pytest.fixture
def run(compared: Compared) -> Run:
    """A run of the champion, which was written for the first text."""
    version = a_version(polite(), written_for=polite().versions.get(number=1))
    promote(version)
    profiles_ensure()
    return run_of(version, compared.chat_set)


def new_guideline(by: User) -> None:
    newest = polite().versions.latest("number")
    words = CriterionWords(newest.question, newest.definition, "Thanks count.")
    criterion_write(criterion=polite(), words=words, reason="Clearer", base=1, by=by)


def pages(run: Run) -> list[str]:
    return [
        "/criteria/polite/",
        reverse("alignment:prompt_version", args=["polite", 1]),
        reverse("alignment:prompt_edit", args=["polite"]),
        reverse("evaluation:profile_detail", args=[JudgeProfile.objects.get(is_default=True).pk]),
        reverse("evaluation:run_detail", args=[run.pk]),
        reverse("alignment:report_run", args=[run.pk]),
        reverse("alignment:criterion_report", args=[run.pk, "polite"]),
        reverse("alignment:chat", args=[run.pk, run.run_chats.earliest("pk").chat_id]),
    ]


def test_pages_with_the_prompt_or_its_verdicts_say_so(lead: Client, lead_user: User, run: Run) -> None:
    for page in pages(run):
        assert SAID not in words_of(lead.get(page)), page
    new_guideline(lead_user)
    for page in pages(run):
        assert SAID in words_of(lead.get(page)), page


def test_the_criterions_page_says_what_to_do(lead: Client, lead_user: User, run: Run) -> None:
    new_guideline(lead_user)
    assert "Revise and test it, or save it again if it still fits" in words_of(lead.get("/criteria/polite/"))
