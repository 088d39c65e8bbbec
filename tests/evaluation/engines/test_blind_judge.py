"""A judge that can see the labels is no judge: a whole run touches no label table."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.db.backends.signals import connection_created
from django.utils import timezone
from pytest_django import Settings

from labeling.models import labels
from labeling.models.labels import Label
from labeling.models.rubric import CriterionVersion
from tests.factories.rows import make_rater
from tests.factories.runs import always, answering, by_role, evaluate, formatted, workspace
from tests.stub_endpoint import StubReply

pytestmark = pytest.mark.django_db(transaction=True)

LABEL_TABLES = {
    model._meta.db_table
    for model in apps.get_app_config("labeling").get_models()
    if model.__module__ == labels.__name__
}


@contextmanager
def recorded() -> Iterator[list[str]]:
    """The SQL of this thread and of every thread that connects meanwhile."""
    seen: list[str] = []

    def record(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, params, many, context)

    def watch(sender: Any, connection: Any, **kwargs: Any) -> None:
        if record not in connection.execute_wrappers:
            connection.execute_wrappers.append(record)

    connection_created.connect(watch)
    try:
        with connection.execute_wrapper(record):
            yield seen
    finally:
        connection_created.disconnect(watch)


def tables_in(statements: list[str]) -> set[str]:
    return {name for sql in statements for name in re.findall(r'"(\w+)"', sql)}


def test_the_label_tables_are_known() -> None:
    assert {
        "labeling_label",
        "labeling_labelrevision",
        "labeling_adjudication",
        "labeling_consensus",
    } < LABEL_TABLES
    assert {"labeling_assignment", "labeling_labelingjob"} < LABEL_TABLES


@pytest.mark.parametrize("engine", ["direct", "reflection", "debate"])
def test_a_whole_run_touches_no_label_table(settings: Settings, engine: str) -> None:
    chat_set = workspace("polite", chats=2)
    version = CriterionVersion.objects.select_related("criterion").get()
    answer = {"value": True, "state": "submitted", "version": version, "given_at": timezone.now()}
    for member in chat_set.members.all():
        Label.objects.create(chat=member.chat, criterion=version.criterion, rater=make_rater(), **answer)
    answers = by_role(
        reasoning=lambda body: StubReply("Kind."), formatter=lambda body: formatted({"polite": "true"})
    )
    args = ("--set", "calibration", "--engine", engine)
    with answering(settings, answers) as stub, recorded() as statements:
        evaluate(*args, "--dry-run")
        stub.answer = lambda body: StubReply(status=404)
        stopped = evaluate(*args)
        stub.answer = answers
        assert evaluate("--resume", str(stopped.answer["run"])).code == 0
        stub.answer = always(True)
        assert evaluate(*args, "--replicate", "1").code == 0
    touched = tables_in(statements)
    assert {"evaluation_attempt", "evaluation_verdict", "labeling_chat"} <= touched
    assert not touched & LABEL_TABLES
