"""`add_prompt`: a prompt and its examples from files; a draft unless it is promoted at once."""

from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from evaluation.models.prompts import Promotion, PromptVersion
from evaluation.prompts.queries.versions import champions
from labeling.models.chats import Chat
from labeling.models.people import AuditEvent, User
from labeling.models.rubric import Criterion
from tests.factories.runs import always, answering, evaluate, workspace
from tests.files import refused, run, write_jsonl

pytestmark = pytest.mark.django_db

TEXT = "# Objective\nIs polite so?\n\nRude words count.\n"


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    workspace("polite", name="training")
    Chat.objects.get(external_id="c0").memberships.update(split="train")
    Chat.objects.get(external_id="c1").memberships.update(split="train")
    file = tmp_path / "polite.md"
    file.write_text(TEXT, encoding="utf-8")
    return file


def line(chat_id: str = "c0", **changes: Any) -> dict[str, Any]:
    return {"chat_id": chat_id, "turns": [1, 2], "value": True, "rationale": "m02 helps."} | changes


def options(prompt: Path, *lines: dict[str, Any], key: str = "polite") -> list[Any]:
    """The command's options, with an examples file when there are lines."""
    examples = ["--examples", write_jsonl(prompt.parent / "examples.jsonl", *lines)] if lines else []
    return ["--criterion", key, "--prompt", prompt, *examples]


def test_it_prints_the_new_versions_number_and_does_not_promote(prompt: Path) -> None:
    answer = run("add_prompt", *options(prompt), "--reason", "Clearer")
    assert answer.document == {"criterion": "polite", "version": 2, "promoted": False}
    version = PromptVersion.objects.get(number=2)
    assert (version.text, version.reason) == (TEXT, "Clearer")
    event = AuditEvent.objects.get(verb="prompt imported")
    assert (event.object_id, event.detail["file"], event.detail["promoted"]) == (
        version.pk,
        "polite.md",
        False,
    )
    assert champions(criteria=[version.criterion])[version.criterion_id].number == 1


def test_examples_come_from_a_file_and_unknown_fields_are_named(prompt: Path) -> None:
    lines = line(), line("c1", value=False, turns=[2, 2], note="x")
    answer = run("add_prompt", *options(prompt, *lines))
    rows = PromptVersion.objects.get(number=2).examples
    assert list(rows.values_list("chat__external_id", "first_turn", "last_turn", "value")) == [
        ("c0", 1, 2, True),
        ("c1", 2, 2, False),
    ]
    assert "ignored field 'note' on 1 line" in answer.notes


def test_advice_goes_to_stderr(prompt: Path) -> None:
    assert (
        "1 True and 0 False; as many of each is advised" in run("add_prompt", *options(prompt, line())).notes
    )


def test_the_promoted_version_is_the_champion_with_its_reason(prompt: Path) -> None:
    answer = run("add_prompt", *options(prompt), "--promote", "--reason", "Tried by hand")
    assert answer.document == {"criterion": "polite", "version": 2, "promoted": True}
    promotion = Promotion.objects.latest("id")
    assert (promotion.version.number, promotion.reason, promotion.overridden) == (2, "Tried by hand", True)


def test_promotion_of_a_labelled_criterion_names_an_account_that_may_release(
    prompt: Path, author_user: User, lead_user: User
) -> None:
    Criterion.objects.filter(key="polite").update(labels_seq=1)
    promote = [*options(prompt), "--promote", "--reason", "Urgent"]
    assert "name an account that may release with --by" in refused("add_prompt", *promote)
    assert "may not release prompts" in refused("add_prompt", *promote, "--by", author_user.username)
    assert "there is no account 'zoe'" in refused("add_prompt", *promote, "--by", "zoe")
    assert not PromptVersion.objects.filter(origin="author").exists()
    run("add_prompt", *promote, "--by", lead_user.username)
    event = AuditEvent.objects.filter(verb="champion changed").latest("pk")
    assert event.actor == lead_user
    assert event.detail["champion"] == {"old": 1, "new": 2}
    assert event.detail["overridden"] is True


def test_a_prompt_with_errors_is_stored_as_a_draft_but_not_promoted(prompt: Path) -> None:
    prompt.write_text("# Objektive\nIs polite so?\n", encoding="utf-8")
    refusal = refused("add_prompt", *options(prompt), "--promote", "--reason", "Quick")
    assert refusal == f"{prompt}: not promoted: # Objective: is missing or empty"
    assert not PromptVersion.objects.filter(number=2).exists()
    assert run("add_prompt", *options(prompt)).document["promoted"] is False


@pytest.mark.django_db(transaction=True)
def test_a_judge_shows_the_promoted_examples_but_never_to_their_own_chat(
    prompt: Path, settings: Settings
) -> None:
    run("add_prompt", *options(prompt, line()), "--promote", "--reason", "Tried by hand")
    with answering(settings, always(True)) as stub:
        assert evaluate("--set", "training", "--engine", "direct").code == 0
    seen = dict.fromkeys(("c0", "c1", "c2"), "")
    for request in stub.requests:
        system, user = (message["content"] for message in request["messages"])
        (name,) = (name for name in seen if f"case {name}" in user)
        seen[name] = system
    assert "m02 helps.\npolite: TRUE" in seen["c1"]
    assert seen["c1"] == seen["c2"]
    assert "m02 helps." not in seen["c0"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"chat_id": "nobody"}, "line 1, chat_id: no chat 'nobody'"),
        ({"chat_id": "c2"}, "line 1, chat_id: 'c2' is dev in a set"),
        ({"turns": [1]}, "line 1, turns: must be the first and the last turn, as [2, 5], not [1]"),
        ({"turns": [1, True]}, "line 1, turns: must be the first and the last turn"),
        ({"turns": [1, 3]}, "line 1, turns: must be the first and the last of turns 1 to 2, not 1 to 3"),
        ({"value": None}, "line 1, value: must be true or false"),
        ({"value": "yes"}, "line 1, value: must be true, false or null"),
        ({"rationale": ""}, "line 1, rationale: must not be blank"),
    ],
)
def test_a_wrong_example_is_refused_with_its_line(
    prompt: Path, changes: dict[str, Any], problem: str
) -> None:
    assert f"examples.jsonl {problem}" in refused("add_prompt", *options(prompt, line() | changes))
    assert not PromptVersion.objects.filter(origin="author").exists()


def test_what_is_wrong_with_all_examples_names_the_file(prompt: Path) -> None:
    problem = refused("add_prompt", *options(prompt, line(), line("c1")))
    assert problem.endswith(
        "examples.jsonl, examples: are 2 True and 0 False: half of each, or one more of one"
    )


def test_wrong_options_are_refused(prompt: Path, tmp_path: Path) -> None:
    assert "there is no criterion 'zebra'" in refused("add_prompt", *options(prompt, key="zebra"))
    assert "--promote needs a --reason" in refused("add_prompt", *options(prompt), "--promote")
    assert "no such file" in refused("add_prompt", *options(tmp_path / "none.md"))
    empty = tmp_path / "empty.md"
    empty.write_text("\n")
    assert refused("add_prompt", *options(empty)) == f"{empty}: is empty"
