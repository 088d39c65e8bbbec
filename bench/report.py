"""The alignment report: its arithmetic over a million pairs, and its page over 10,000 chats."""

import json
import random
import tempfile
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import numpy as np
from django.test import Client
from django.urls import reverse

from alignment.core.report import CriterionData, CriterionSpec, ReportData, build_report
from alignment.core.status import StatusPolicy
from bench import Figure, Time, time_figures, timed
from bench._files import chat_lines, rubric, write_lines
from evaluation.services.verdicts import verdicts_import
from labeling.models.people import User
from labeling.services.chats import chats_import
from labeling.services.labels import labels_import
from labeling.services.rubric import rubric_import

PAIRS_CHATS, PAIRS_CRITERIA = 50_000, 20
ARITHMETIC_SECONDS = 0.1
PAGE_CHATS = 10_000
PAGE_SECONDS = 1.0
KEYS = ("first", "second")
RATERS = ("Ada", "Ben")
SET = "bench"


def figures() -> Iterator[Figure]:
    """The arithmetic at its best of five, then the page: computed, and read back."""
    data = random_pairs()
    tries = [timed(lambda: build_report(data, policy=StatusPolicy(), seed=1)) for _ in range(5)]
    best = Time(min(one.wall for one in tries), min(one.cpu for one in tries))
    pairs = PAIRS_CHATS * PAIRS_CRITERIA
    yield from time_figures(f"report arithmetic over {pairs:,} pairs", best, limit=ARITHMETIC_SECONDS)
    url = reverse("alignment:report_run", args=[filled_workspace()])
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.create_superuser("bench"))
    for what in ("first opened", "opened again"):
        spent = timed(lambda: open_page(client, url))
        yield from time_figures(f"report page of {PAGE_CHATS:,} chats, {what}", spent, limit=PAGE_SECONDS)


def open_page(client: Client, url: str) -> None:
    """One GET; anything but a page is a fault."""
    status = client.get(url).status_code
    if status != HTTPStatus.OK:
        raise RuntimeError(f"{url} answered {status}")


def random_pairs() -> ReportData:
    """Three labels a chat and criterion, and a judge that is right nine times in ten."""
    draw = np.random.default_rng(1)
    criteria = []
    for n in range(PAIRS_CRITERIA):
        human = (draw.random(PAIRS_CHATS) < 0.2).astype(np.int8)
        judge = np.where(draw.random(PAIRS_CHATS) < 0.9, human, 1 - human).astype(np.int8)
        false = draw.binomial(1, 0.1, PAIRS_CHATS) + human
        counts = np.column_stack([3 - false, false, np.zeros_like(false)]).astype(np.int32)
        spec = CriterionSpec(f"c{n}", f"d{n % 5}", f"D{n % 5}", "simple", True)
        criteria.append(CriterionData(spec, human, judge, counts, 3))
    return ReportData([f"chat {n}" for n in range(PAIRS_CHATS)], tuple(criteria))


def filled_workspace() -> int:
    """Chats, labels by two raters and a judge's verdicts, through the imports; returns the run's id."""
    draw = random.Random(3)
    cells = [(f"chat-{n}", key) for n in range(PAGE_CHATS) for key in KEYS]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rubric.json").write_text(json.dumps(rubric(KEYS)), encoding="utf-8")
        rubric_import(path=folder / "rubric.json", articles_set=lambda criterion, keys: False)
        chats = write_lines(folder / "chats.jsonl", chat_lines(PAGE_CHATS, prefix="chat-", seed=3))
        chats_import(path=chats, set_name=SET)
        labels = write_lines(
            folder / "labels.jsonl",
            (
                {"chat_id": chat, "criterion": key, "rater": rater, "value": draw.random() < 0.8}
                for chat, key in cells
                for rater in RATERS
            ),
        )
        labels_import(path=labels)
        verdicts = write_lines(
            folder / "verdicts.jsonl",
            (
                {"chat_id": chat, "criterion": key, "judge": "bench", "value": draw.random() < 0.8}
                for chat, key in cells
            ),
        )
        return verdicts_import(path=verdicts, set_name=SET).runs[0].id
