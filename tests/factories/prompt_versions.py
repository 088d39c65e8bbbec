"""Prompt versions of `polite` that were run, tested and released, as rows."""

import hashlib
from typing import Any

from django.utils import timezone

from alignment.models.regressions import RegressionTest
from alignment.regression.services.policies import policy_in_force
from evaluation.models.judges import Judge, JudgePrompt
from evaluation.models.prompts import FewShotExample, Promotion, PromptVersion
from evaluation.models.runs import Run, RunChat, Verdict
from evaluation.prompts.services.examples import ExampleChoice, prompt_hash
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared
from tests.factories.rows import make_chat

CONFIG = {
    "endpoint": "http://localhost/v1",
    "model": "judge-model",
    "samples": 1,
    "groups": [{"engine": "direct", "criteria": []}],
}


def a_version(
    criterion: Criterion, text: str = "", *examples: Chat, author: User | None = None, **fields: Any
) -> PromptVersion:
    """The next version, with an example of each chat; its human answer is True."""
    number = PromptVersion.objects.filter(criterion=criterion).count() + 1
    said = text or f"# Objective\nIs {criterion.key} so?\n\n# Tone\nCalm, take {number}."
    chosen = [ExampleChoice(chat, 1, 2, True, f"Why {chat.external_id} is True.") for chat in examples]
    row = PromptVersion.objects.create(
        criterion=criterion,
        number=number,
        text=said,
        content_hash=prompt_hash(text=said, examples=chosen),
        author=author,
        **{"reason": f"Reason {number}", **fields},
    )
    FewShotExample.objects.bulk_create(
        FewShotExample(
            prompt_version=row,
            position=place,
            chat=one.chat,
            first_turn=1,
            last_turn=2,
            value=True,
            rationale=one.rationale,
        )
        for place, one in enumerate(chosen)
    )
    return row


def promote(version: PromptVersion, **fields: Any) -> Promotion:
    return Promotion.objects.create(criterion=version.criterion, version=version, **fields)


def judge_with(version: PromptVersion, **config: Any) -> Judge:
    """The judge that asks with this version's content; a version that repeats another one shares it."""
    name = f"{version.criterion_id} {version.content_hash} {sorted(config.items())}"
    judge, created = Judge.objects.get_or_create(
        fingerprint=hashlib.sha256(name.encode()).hexdigest(),
        defaults={"name": "direct, judge-model", "engine": "direct", "config": CONFIG | config},
    )
    if created:
        JudgePrompt.objects.create(
            judge=judge,
            criterion=version.criterion,
            criterion_version=version.criterion.versions.latest("number"),
            prompt_version=version,
            group=0,
        )
    return judge


def run_of(version: PromptVersion, chat_set: ChatSet, *, wrong: int = 5, **fields: Any) -> Run:
    """A finished run over the set; the judge is wrong on every `wrong`-th chat."""
    config = fields.pop("config", {})
    run = Run.objects.create(
        judge=judge_with(version, **config),
        chat_set=chat_set,
        **{"state": "done", "finished_at": timezone.now(), **fields},
    )
    members = list(chat_set.members.order_by("position").values_list("chat_id", "split"))
    RunChat.objects.bulk_create(RunChat(run=run, chat_id=chat, split=split) for chat, split in members)
    people = dict(Consensus.objects.filter(criterion=version.criterion).values_list("chat_id", "state"))
    Verdict.objects.bulk_create(
        Verdict(
            run=run,
            chat_id=chat,
            criterion=version.criterion,
            state="read",
            value=(people.get(chat) == "true") is (n % wrong != 0),
            explanation=f"The judge on place {n}.",
            stored_at=timezone.now(),
        )
        for n, (chat, _) in enumerate(members, 1)
    )
    return run


def a_test(version: PromptVersion, run: Run, **fields: Any) -> RegressionTest:
    """A test of the version; done where a result is given."""
    state = "done" if fields.get("result") else "running"
    assert run.chat_set is not None
    return RegressionTest.objects.create(
        chat_set=run.chat_set,
        policy=policy_in_force(),
        candidate_run=run,
        **{"baseline_run": run, "split": "dev", "candidate": version, "state": state, **fields},
    )


def example_chat(compared: Compared, name: str) -> Chat:
    """A chat that is for training alone, and like no other."""
    chat = make_chat(name, messages=[("user", f"Hello, {name}?"), ("assistant", f"Yes, {name}.")])
    ChatSetMember.objects.create(
        chat_set=compared.chat_set, chat=chat, split="train", position=1000 + chat.pk
    )
    return chat
