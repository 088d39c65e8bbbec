"""What ends a certificate, and what does not."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from alignment.certificates.queries.certificates import (
    certificate_state,
    certificate_states,
    certificate_whole,
)
from alignment.certificates.services.certificates import CertificateRefused, certificate_revoke
from alignment.models.certificates import Certificate
from evaluation.models.judges import Judge, JudgeProfile
from evaluation.models.prompts import ArticleVersion, KnowledgeArticle, Promotion, PromptVersion
from labeling.models.people import AuditEvent, Role, User
from labeling.models.rubric import Criterion
from labeling.rubric.services.guidelines import CriterionWords, criterion_write
from tests.factories.certificates import RECIPE, article, make_qualifying, stored_certificate, why
from tests.factories.prompt_versions import a_version
from tests.factories.rater_quality import polite
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db
build_compared = make_qualifying


def test_a_fresh_one_holds(in_use: Certificate) -> None:
    assert why(in_use) == ("valid", ())


def test_its_time_ends_it(certificate: Certificate) -> None:
    past = timezone.now() - timedelta(days=100)
    Certificate.objects.update(issued_at=past, expires_at=past + timedelta(days=90))
    word, (reason,) = why(certificate)
    assert (word, reason[:16]) == ("expired", "it expired on 20")


def test_a_promoted_prompt_ends_it(in_use: Certificate) -> None:
    Promotion.objects.create(criterion=polite(), version=a_version(polite()), reason="Better")
    assert why(in_use) == ("expired", ("polite: another prompt has been released",))


def test_the_same_prompt_promoted_again_does_not(in_use: Certificate) -> None:
    last = Promotion.objects.filter(criterion=polite()).latest("pk")
    Promotion.objects.create(criterion=polite(), version=last.version, reason="Once more")
    assert why(in_use) == ("valid", ())


def test_another_model_ends_it(in_use: Certificate, settings: Settings) -> None:
    settings.LACE_REASONING_MODEL = "model-b"
    assert why(in_use) == ("expired", ("the model of the default profile has changed: model, formatter",))


def test_another_endpoint_ends_it(in_use: Certificate, settings: Settings) -> None:
    settings.OPENAI_BASE_URL = "http://localhost:10/v1"
    assert why(in_use) == ("expired", ("the model of the default profile has changed: endpoint",))


@pytest.mark.parametrize("changes", [{"engine": "debate"}, {"samples": 3}, {"grouping": "criterion"}])
def test_other_settings_end_it(in_use: Certificate, changes: dict[str, Any]) -> None:
    JudgeProfile.objects.update(config=RECIPE | changes)
    assert why(in_use) == ("expired", ("the settings of the default profile have changed",))


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("templates", "an upgrade changed the fixed texts of the judge's prompts"),
        ("reader", "an upgrade changed how the judge's answers are read"),
    ],
)
def test_an_upgrade_that_changes_the_judge_ends_it_and_says_so(
    in_use: Certificate, name: str, cause: str
) -> None:
    judge = in_use.judge
    Judge.objects.filter(pk=judge.pk).update(config=judge.config | {name: "earlier"})
    assert why(in_use) == ("expired", (cause,))


def test_another_default_profile_ends_it(in_use: Certificate) -> None:
    JudgeProfile.objects.update(is_default=False)
    assert why(in_use)[0] == "expired"
    JudgeProfile.objects.create(name="same", config=RECIPE, is_default=True)
    assert why(in_use) == ("valid", ())


def test_a_new_guideline_is_noted_and_does_not_end_it(in_use: Certificate) -> None:
    newest = polite().versions.latest("number")
    PromptVersion.objects.filter(criterion=polite()).update(written_for=newest)
    assert certificate_state(in_use).notes == ()
    words = CriterionWords(newest.question, newest.definition, "Thanks count.")
    criterion_write(criterion=polite(), words=words, reason="Clearer", base=newest.number, by=None)
    state = certificate_state(in_use)
    assert state.holds
    (note,) = state.notes
    assert "written for an older definition of polite" in note and "(guideline changed)" in note


def test_newer_knowledge_ends_it(in_use: Certificate) -> None:
    article(polite(), "refunds", "Within 30 days.")
    assert why(in_use) == ("expired", ("the judge's knowledge articles have changed",))


def test_an_article_that_no_criterion_of_it_reads_does_not(in_use: Certificate) -> None:
    row = KnowledgeArticle.objects.create(key="unread")
    ArticleVersion.objects.create(article=row, number=1, title="Unread", text="No.", content_hash="n")
    assert why(in_use) == ("valid", ())


@pytest.mark.usefixtures("compared")
@pytest.mark.parametrize("whose", ["certificate", "in_use"])
def test_another_question_ends_it_of_every_judge(request: pytest.FixtureRequest, whose: str) -> None:
    row = request.getfixturevalue(whose)
    version = polite().versions.latest("number")
    version.pk, version.number = None, version.number + 1
    version.save()
    assert why(row) == ("valid", ())  # a guideline alone is no other question
    version.pk, version.number, version.content_hash = None, version.number + 1, "other"
    version.save()
    assert why(row) == ("expired", ("polite: the question was changed",))


def test_a_retired_criterion_ends_it(certificate: Certificate) -> None:
    Criterion.objects.filter(key="polite").update(state="retired")
    assert why(certificate) == ("expired", ("polite: the criterion was retired",))


@pytest.mark.usefixtures("compared")
@pytest.mark.parametrize("whose", ["certificate", "in_use"])
def test_another_tier_ends_it_of_every_judge(request: pytest.FixtureRequest, whose: str) -> None:
    row = request.getfixturevalue(whose)
    Criterion.objects.filter(key="polite").update(tier="subjective")
    state, reasons = why(row)
    assert (state, reasons[0]) == ("expired", "polite: its tier has changed")


def test_revoking_ends_it_for_good_with_a_reason(certificate: Certificate, lead_user: User) -> None:
    with pytest.raises(CertificateRefused, match="give a reason"):
        certificate_revoke(certificate=certificate, reason=" ", by=lead_user)
    certificate_revoke(certificate=certificate, reason="Labels were wrong", by=lead_user)
    assert why(certificate) == ("revoked", ("Labels were wrong",))
    with pytest.raises(CertificateRefused, match="is already revoked"):
        certificate_revoke(certificate=certificate, reason="Again", by=lead_user)
    assert AuditEvent.objects.filter(verb="certificate revoked", object_id=certificate.pk).count() == 1


def test_without_an_endpoint_nobody_can_know_and_it_does_not_hold(
    in_use: Certificate, settings: Settings
) -> None:
    settings.OPENAI_BASE_URL = "nonsense"
    word, (reason,) = why(in_use)
    assert (word, "the current judge is unknown" in reason) == ("expired", True)


def test_with_a_recipe_that_cannot_be_read_nobody_can_know_either(in_use: Certificate) -> None:
    JudgeProfile.objects.update(config={"speed": "x"})
    word, (reason,) = why(in_use)
    assert (word, reason) == (
        "expired",
        "the current judge is unknown: speed: is not a setting of a judge",
    )


@pytest.mark.heavy
def test_states_take_the_same_queries_however_many(in_use: Certificate, lead_user: User) -> None:
    def queries(rows: list[Certificate]) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert {state.word for state in certificate_states(rows).values()} == {"valid"}
        return len(captured)

    run = in_use.judge.runs.get()
    olga = make_user("olga", Role.LEAD)
    for user, split in ((lead_user, "dev"), (olga, "dev"), (olga, "")):
        stored_certificate(run, by=user, split=split)
    one, every = [certificate_whole().get(pk=in_use.pk)], list(certificate_whole())
    assert len(every) == 4
    assert queries(one) == queries(every) <= 17


def test_reading_a_state_writes_nothing(in_use: Certificate) -> None:
    before = Judge.objects.count(), Promotion.objects.count()
    JudgeProfile.objects.update(config=RECIPE | {"samples": 5})
    certificate_state(in_use)
    assert (Judge.objects.count(), Promotion.objects.count()) == before
