"""What the tests of the editor share: a criterion with a champion, training chats that people decided on."""

import re
from typing import Any

from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from evaluation.models.prompts import PromptDraft, PromptVersion
from evaluation.prompts.services.drafts import draft_save
from evaluation.prompts.services.examples import prompt_version_add
from evaluation.prompts.services.versions import champions_ensure
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import Chat
from labeling.models.labels import Consensus, Label
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.rows import make_chat, make_criterion, make_rater, make_rubric, make_set

QUESTION = "Is polite so?"
TEXT = f"# Context\nA shop.\n\n# Objective\n{QUESTION}\n\n# Style\nRead all.\n\n# Tone\nCalm.\n"
SECTIONS = {"context": "A shop.", "objective": QUESTION, "style": "Read all.", "tone": "Calm."}
EDIT = reverse("alignment:prompt_edit", args=["polite"])
SAVED = re.compile(r"^Saved \d\d:\d\d$")


def make_prompted() -> Criterion:
    """The criterion `polite`, whose champion is version 1, made from question and definition."""
    rubric = make_rubric()
    criterion = make_criterion("polite", rubric=rubric, allow_na=True)
    champions_ensure(criteria=[criterion], by=None)
    return criterion


def champion_of(criterion: Criterion) -> PromptVersion:
    return PromptVersion.objects.get(criterion=criterion, number=1)


def saved(criterion: Criterion, text: str = TEXT, **more: Any) -> PromptVersion:
    return prompt_version_add(criterion=criterion, text=text, **{"reason": "Clearer", **more})


def decided(
    criterion: Criterion, name: str, *, split: str = "train", value: bool | None = True, **chat: Any
) -> Chat:
    """A chat of four turns on which two raters agree, in a set of its own."""
    turns = [("user", f"{name} asks"), ("assistant", f"{name} is told"), ("user", "Thanks."), ("tool", "ok")]
    row = make_chat(name, **{"messages": turns, **chat})
    make_set(criterion.rubric, row, name=f"set of {name}", split=split)
    label(criterion, row, value)
    return row


def label(criterion: Criterion, chat: Chat, value: bool | None) -> None:
    """Two raters give this answer, each with a reason."""
    for _ in range(2):
        rater = make_rater()
        Label.objects.create(
            chat=chat,
            criterion=criterion,
            rater=rater,
            version=criterion.versions.latest("number"),
            value=value,
            rationale=f"{rater.name} on {chat.external_id}",
            state="submitted",
            given_at=chat.created_at,
        )
    consensus_refresh(criterion_ids=[criterion.pk], chat_ids=[chat.pk])
    assert Consensus.objects.filter(chat=chat, criterion=criterion).exists()


def line(chat: Chat | str, **changes: Any) -> dict[str, Any]:
    """An example of a draft."""
    name = chat if isinstance(chat, str) else chat.external_id
    return {"chat": name, "turns": [1, 2], "value": True, "rationale": "It thanks.", **changes}


def draft_of_text(criterion: Criterion, author: User, text: str = TEXT, **more: Any) -> Any:
    """The author's stored draft."""
    given = {"base": champion_of(criterion), "examples": [], "revision": 0, **more}
    return draft_save(criterion=criterion, author=author, text=text, **given)


# ---------- in a browser ----------


def opened(page: Page, live_server: LiveServer, query: str = "") -> None:
    page.goto(f"{live_server.url}{EDIT}{query}")
    expect(page.locator("#findings")).not_to_contain_text("Looking.")


def write(page: Page, section: str, words: str) -> None:
    page.get_by_label(section, exact=True).fill(words)


def status(page: Page) -> Any:
    """The line that tells how saving goes."""
    return page.locator("#save")


def stored() -> str:
    return PromptDraft.objects.get().text
