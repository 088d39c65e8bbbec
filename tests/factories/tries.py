"""A labelled workspace whose champion errs, and a draft that mends it, for tests of previews and tries."""

from pathlib import Path
from typing import Any

from alignment.prompts.tries.queries.results import TryResult, try_result
from alignment.prompts.tries.services import TryChoice
from evaluation.judges.services.profiles import profile_save, profiles_ensure
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptDraft, PromptVersion
from evaluation.models.runs import Run
from evaluation.prompts.services.drafts import draft_save
from evaluation.prompts.services.versions import champions_ensure
from evaluation.tasks import process_units
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.runs import block, command
from tests.files import chat, criterion, label, rubric, run, write_json, write_jsonl
from tests.stub_endpoint import Answer, Body, StubReply, asked_keys, case_of, conversation

CASES = [f"c-{n:02}" for n in range(16)]
TRUTH: dict[str, dict[str, bool | None]] = {
    case: {"polite": n % 2 == 0, "exact": True} for n, case in enumerate(CASES)
}
TRAIN, HOLDOUT = CASES[10:12], CASES[12:]
# Where the champion errs: six chats of dev, one of train, two of the holdout.
WRONG = {*CASES[:6], CASES[10], *CASES[12:14]}
# The draft mends all of these but one.
STILL_WRONG = CASES[5]
OPEN_AND_WRONG = sorted(WRONG - set(HOLDOUT))
MARK = "Look twice."
DRAFT = f"# Context\nA shop.\n\n# Objective\nIs polite so?\n\n# Style\n{MARK}\n"


def labelled(folder: Path, *, tier: str = "simple", judged: bool = True) -> ChatSet:
    """Two criteria that share a call where they are simple; the champion has judged every chat."""
    criteria = [criterion("polite", tier=tier), criterion("exact", tier=tier)]
    run("import_rubric", write_json(folder / "rubric.json", rubric(*criteria)))
    chats = [chat(case, f"This is case {case}, where is my order?", "On its way.") for case in CASES]
    run("import_chats", write_jsonl(folder / "chats.jsonl", *chats), "--set", "golden")
    for cases, split in ((TRAIN, "train"), (HOLDOUT, "holdout")):
        ChatSetMember.objects.filter(chat__external_id__in=cases).update(split=split)
    labels = [label(case, key, value=value) for case in CASES for key, value in TRUTH[case].items()]
    run("import_labels", write_jsonl(folder / "labels.jsonl", *labels))
    profiles_ensure()
    if judged:
        assert command("evaluate", "--set", "golden", "--engine", "direct").code == 0
    return ChatSet.objects.select_related("rubric").get(name="golden")


def judge(body: Body) -> StubReply:
    """Errs on `WRONG` with the champion's prompt, with the draft's on `STILL_WRONG` alone."""
    case = case_of(body, TRUTH)
    wrong = {STILL_WRONG} if MARK in conversation(body) else WRONG
    keys = asked_keys(body)
    says = {key: TRUTH[case][key] != (key == "polite" and case in wrong) for key in keys}
    return block(says, prose='Because of [m1: "where is my order"].')


ANSWER: Answer = judge


def polite() -> Criterion:
    return Criterion.objects.get(key="polite")


def champion() -> PromptVersion:
    return champions_ensure(criteria=[polite()], by=None)[polite().pk]


def drafted(author: User, text: str = DRAFT, *, examples: Any = ()) -> PromptDraft:
    """The author's draft as the editor stores it."""
    stored = PromptDraft.objects.filter(author=author).first()
    return draft_save(
        criterion=polite(),
        author=author,
        base=champion(),
        text=text,
        examples=examples,
        revision=stored.revision if stored else 0,
    )


def profile(name: str = "default", **recipe: Any) -> JudgeProfile:
    """The default profile, or one of this recipe."""
    if name == "default":
        return JudgeProfile.objects.get(is_default=True)
    return profile_save(name=name, **recipe)


def on_chat(case: str, **more: Any) -> TryChoice:
    found = Chat.objects.get(external_id=case).pk
    return TryChoice(profile=more.pop("profile", None) or profile(), chat_id=found, **more)


def on_disagreements(n: int = 10, **more: Any) -> TryChoice:
    return TryChoice(profile=more.pop("profile", None) or profile(), n=n, **more)


def carried_out(started: Run) -> Run:
    """The run as a worker leaves it."""
    process_units(started.pk)
    started.refresh_from_db()
    return started


def result(run: Run, author: User) -> TryResult:
    return try_result(run=run, criterion=polite(), user=author)


def cases(found: TryResult) -> list[str]:
    return [one.chat.external_id for one in found.chats]
