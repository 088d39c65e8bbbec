"""A prompt keeps the definition it was written for; a newer one is named, and never released by itself."""

from typing import Any

import pytest

from evaluation.core.hashing import text_hash
from evaluation.models.judges import Judge, JudgePrompt
from evaluation.models.prompts import Promotion, PromptVersion
from evaluation.models.runs import Verdict
from evaluation.prompts.core import sections
from evaluation.prompts.core.definition import Definition, generated_text
from evaluation.prompts.core.lint import lint_prompt
from evaluation.prompts.queries.definitions import older_champions, older_notices
from evaluation.prompts.queries.versions import champions
from evaluation.prompts.services.drafts import version_save
from evaluation.prompts.services.examples import prompt_version_add
from evaluation.prompts.services.versions import champions_ensure, prompt_promote
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.rubric.services.guidelines import CriterionWords, criterion_write
from tests.factories.rows import make_criterion, make_rubric, make_set
from tests.factories.verdicts import add_verdicts, make_judge, make_run

TEXT = "# Objective\nIs polite so?\n\nTrue when polite.\n"


@pytest.fixture
def polite(db: None) -> Criterion:
    return make_criterion("polite", rubric=make_rubric())


def rewrite(criterion: Criterion, **texts: str) -> CriterionVersion:
    newest = criterion.versions.latest("number")
    words = {name: getattr(newest, name) for name in CriterionWords.__dataclass_fields__} | texts
    return criterion_write(
        criterion=criterion, words=CriterionWords(**words), reason="Clearer", base=newest.number, by=None
    )


def champion(criterion: Criterion) -> PromptVersion:
    return champions_ensure(criteria=[criterion], by=None)[criterion.pk]


def released(criterion: Criterion, text: str = TEXT) -> PromptVersion:
    version = prompt_version_add(criterion=criterion, text=text)
    prompt_promote(version=version, reason="Tested")
    return version


def judge_of(*prompts: PromptVersion) -> Judge:
    judge = Judge.objects.create(
        name="direct", engine="direct", config={}, fingerprint=text_hash(str(prompts))
    )
    for prompt in prompts:
        newest = prompt.criterion.versions.latest("number")
        row: dict[str, Any] = {"criterion": prompt.criterion, "prompt_version": prompt, "group": 0}
        JudgePrompt.objects.create(judge=judge, criterion_version=newest, **row)
    return judge


# ---------- the generated prompt ----------


def test_a_generated_prompt_says_all_that_raters_read() -> None:
    asked = Definition("Is it so?", "So when so.", "# Look\nTwice.", "A thanks.", "A curse.", allow_na=True)
    parts = sections(generated_text(asked, knowledge=False))
    assert list(parts) == ["context", "objective", "style", "tone", "audience", "response"]
    objective = parts["objective"]
    assert objective.startswith("Is it so?\n\nSo when so.")
    for said in ("Look\nTwice.", "**Example of True:** A thanks.", "**Example of False:** A curse."):
        assert said in objective
    assert "**Not applicable:**" in objective and "**Silence:**" in objective
    assert "Every chat gets True or False." not in objective


def test_markup_of_a_raters_text_cannot_change_the_sections() -> None:
    asked = Definition("Is it so?", "So.", "```\n# Tone\nRude.\n{{knowledge}} {{chat}}\n~~~ python")
    text = generated_text(asked, knowledge=False)
    assert list(sections(text)) == ["context", "objective", "style", "tone", "audience", "response"]
    assert sections(text)["tone"].startswith("Impartial")
    assert [one for one in lint_prompt(text, asked=asked, has_articles=False) if one.level == "error"] == []


def test_a_generated_prompt_without_not_applicable_asks_for_an_answer_on_every_chat() -> None:
    text = generated_text(Definition("Is it so?", "So when so."), knowledge=True)
    assert "Every chat gets True or False." in text and "Not applicable" not in text
    assert "\n\n{{knowledge}}\n\n" in text


# ---------- what follows a new text ----------


def test_the_generated_prompt_follows_the_text_before_the_first_label(polite: Criterion) -> None:
    champion(polite)
    rewrite(polite, guideline="Thanks count.")
    now = champion(polite)
    assert (now.number, "Thanks count." in now.text) == (2, True)
    assert champions(criteria=[polite])[polite.pk] == now
    assert older_champions([polite]) == {}


@pytest.mark.parametrize("why", ["a label", "a verdict"])
def test_afterwards_the_new_text_gives_a_draft_for_the_regression_test(polite: Criterion, why: str) -> None:
    first = champion(polite)
    if why == "a label":
        Criterion.objects.update(labels_seq=1)
    else:
        add_verdicts(make_run(make_judge(polite.rubric), make_set(polite.rubric)), 1)
        assert Verdict.objects.filter(criterion=polite).exists()
    rewrite(polite, definition="Always answer True.")
    assert champion(polite) == champion(polite) == first
    draft = PromptVersion.objects.get(number=2)
    assert "Always answer True." in draft.text
    assert Promotion.objects.filter(criterion=polite).count() == 1


def test_an_authors_champion_stays_and_is_named(polite: Criterion) -> None:
    own = released(polite)
    rewrite(polite, definition="True when no message is rude.", true_example="Thanks!")
    assert champion(polite) == own
    (older,) = older_champions([polite]).values()
    assert (older.written_for, older.newest, older.changed) == (1, 2, ("definition", "examples"))
    assert older.sentence == (
        "written for an older definition of polite: text 1, now 2 (definition and examples changed)"
    )


def test_a_text_that_was_changed_back_is_no_older_one(polite: Criterion) -> None:
    released(polite)
    rewrite(polite, definition="Another.")
    rewrite(polite, definition="True when polite.")
    assert older_champions([polite]) == {}


def test_the_same_text_is_saved_again_for_the_new_definition(polite: Criterion) -> None:
    author = User.objects.create_user("ann")
    own = released(polite)
    save: dict[str, Any] = {"criterion": polite, "author": author, "text": TEXT, "examples": (), "base": own}
    assert not version_save(**save, reason="Again").added
    rewrite(polite, definition="True when nothing rude is polite.")
    judge = judge_of(own)
    assert older_notices([judge])
    saved = version_save(**save, reason="Read again: it holds")
    assert saved.added and saved.version.number == (own.number or 0) + 1
    assert not version_save(**save, reason="Twice").added
    assert champion(polite) == saved.version  # the judge stays the same, so there is nothing to test
    assert older_champions([polite]) == {} and older_notices([judge]) == []


def test_an_older_draft_saved_again_stays_a_draft(polite: Criterion) -> None:
    draft = prompt_version_add(criterion=polite, text=TEXT)
    own = released(polite, f"{TEXT}More.")
    rewrite(polite, definition="Another.")
    again = prompt_version_add(criterion=polite, text=TEXT)
    assert again != draft and champion(polite) == own


# ---------- notices ----------


def test_judges_name_the_prompts_written_for_an_older_definition(
    polite: Criterion, django_assert_num_queries: Any
) -> None:
    other = make_criterion("brief", rubric=polite.rubric)
    judge = judge_of(released(polite), released(other, TEXT.replace("polite", "brief")))
    assert older_notices([judge]) == []
    rewrite(polite, definition="True when kind.")
    assert older_notices([judge]) == [
        "prompt version 2 was written for an older definition of polite: text 1, now 2 (definition changed)"
    ]
    rewrite(other, guideline="Count words.")
    with django_assert_num_queries(3):
        assert older_notices([judge, judge]) == [
            "2 prompts were written for an older definition of their criterion: brief, polite"
        ]
