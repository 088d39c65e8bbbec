"""One release of each kind through the whole product: an endpoint whose verdicts follow planted errors."""

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.core.management import call_command
from numpy.typing import NDArray

from alignment.models.regressions import RegressionTest
from alignment.regression.services.policies import policy_in_force
from alignment.regression.services.tests import RegressionChoice, judge_test_start
from alignment.regression.worker import regression_advance, runs_of
from bench import Figure
from bench._child import in_child
from bench._files import rubric, write_lines
from bench.gate import CRITERIA, TRUTHS, planted
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.services.examples import prompt_version_add
from evaluation.prompts.services.versions import champions_ensure
from evaluation.runs.worker.execute import run_execute
from labeling.chats.services.chats import chats_import
from labeling.models.chats import ChatSet
from labeling.models.rubric import Criterion
from labeling.rubric.services.rubric import rubric_import
from labeling.transfer.services.labels import labels_import
from tests.stub_endpoint import Body, StubEndpoint, StubReply, asked_keys, conversation

CHATS, SEED, SET = 200, 7, "golden"
KEYS = [f"criterion_{n}" for n in range(CRITERIA)]
# Stands in a candidate's prompts, so that the endpoint knows whom it answers.
MARK = "Second edition."
_CASE = re.compile(r"case c-(\d+)\b")


@dataclass(frozen=True, slots=True)
class Planted:
    """People's answers, and who is right, by criterion and chat."""

    human: NDArray[np.int8]
    champion: NDArray[np.bool_]
    candidate: NDArray[np.bool_]
    second: NDArray[np.bool_]


def figures() -> Iterator[Figure]:
    """What the gate says of each kind of release, and the calls it took: every chat once a run."""
    for number, truth in enumerate(TRUTHS):
        with tempfile.TemporaryDirectory() as folder:
            database = {"DATABASE_URL": f"sqlite:///{folder}/releases.sqlite3"}
            found = in_child("releases", "released", {"number": number}, database)
        name = f"{truth.name}, {CHATS} chats: {found['gate'].upper()}, calls"
        yield Figure(name, found["calls"], CHATS * found["runs"], "calls")


# ---------- in a process of their own ----------


def released(number: int) -> dict[str, Any]:
    """Start a test of new prompts for all criteria, carry it out, and say what the gate answers."""
    call_command("migrate", verbosity=0)
    truth = Planted(*planted(TRUTHS[number], CHATS, np.random.default_rng(SEED)))
    golden = labelled_set(truth)
    asked: dict[int, int] = {}
    with StubEndpoint(lambda body: answer(body, truth, asked)) as stub:
        settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = stub.base_url, "bench"
        test = judge_test_start(
            judge=JudgeSpec("direct", grouping="rubric"),
            choice=RegressionChoice(
                golden, "dev", JudgeSpec("direct", grouping="rubric"), policy_in_force(), on_worker=False
            ),
            prompts=candidates(),
        )
        test = carried_out(test)
        return {"gate": test.result, "calls": stub.count, "runs": len(runs_of(test))}


def carried_out(test: RegressionTest) -> RegressionTest:
    """Every run of the test, the confirming one too."""
    while test.is_open:
        for run in runs_of(test):
            run_execute(run, on_unit=lambda failed: None)
        test = regression_advance(test.pk)
    return test


def answer(body: Body, truth: Planted, asked: dict[int, int]) -> StubReply:
    """The planted verdicts; a candidate that is asked about a chat again gives its second answers."""
    said = conversation(body)
    found = _CASE.search(said)
    assert found is not None
    chat, right = int(found[1]), truth.champion
    if MARK in said:
        asked[chat] = asked.get(chat, 0) + 1
        right = truth.candidate if asked[chat] == 1 else truth.second
    lines = []
    for key in asked_keys(body):
        row = KEYS.index(key)
        says_true = (truth.human[row, chat] == 0) == right[row, chat]
        lines.append(f"{key}: {'TRUE' if says_true else 'FALSE'}")
    return StubReply("What was said.\n\nVERDICTS\n" + "\n".join(lines))


def candidates() -> list[PromptVersion]:
    """A new version of every champion, told apart by its mark."""
    champions = champions_ensure(criteria=list(Criterion.objects.all()), by=None)
    return [
        prompt_version_add(criterion=champion.criterion, text=f"{champion.text}\n{MARK}\n")
        for champion in champions.values()
    ]


def labelled_set(truth: Planted) -> ChatSet:
    """The chats, and people's answers as one rater's labels, through the imports."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rubric.json").write_text(json.dumps(rubric(KEYS)), encoding="utf-8")
        rubric_import(path=folder / "rubric.json", articles_set=lambda criterion, keys: False)
        chats = (
            {"id": f"c-{n}", "messages": [{"role": "user", "content": f"This is case c-{n}."}]}
            for n in range(CHATS)
        )
        chats_import(path=write_lines(folder / "chats.jsonl", chats), set_name=SET)
        labels = (
            {"chat_id": f"c-{n}", "criterion": key, "rater": "Ada", "value": bool(truth.human[row, n] == 0)}
            for row, key in enumerate(KEYS)
            for n in range(CHATS)
        )
        labels_import(path=write_lines(folder / "labels.jsonl", labels))
    return ChatSet.objects.select_related("rubric").get(name=SET)
