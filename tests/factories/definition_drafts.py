"""Drafted definitions: a model that writes one, and drafts asked for and worked off."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection

from alignment.models.rubric_drafts import CriterionDraft
from alignment.rubric_drafts.services import DraftChoice, draft_start
from alignment.tasks import draft_definition
from labeling.models.people import User
from labeling.models.rubric import Rubric
from tests.stub_endpoint import Body, StubReply

REMARKS = "“Wrong” could mean outdated or false. Close to stated_wrong_fact."
DEFINITION = "True when a price that the bot states differs from the shop's.\n\nFalse when it states none."
QUESTION = "Did the bot state a wrong price?"


def defines(body: Body) -> StubReply:
    """A model that drafts a definition as it is asked to."""
    return StubReply(f"{REMARKS}\n\nDEFINITION\n{DEFINITION}")


def choice_of(rubric: Rubric, **changed: Any) -> DraftChoice:
    """A new criterion as it stands in the form."""
    start = {"question": QUESTION, "dimension": "compliance", "tier": "simple"}
    return DraftChoice(rubric=rubric, **start | changed)


def drafted(rubric: Rubric, by: User, *, anew: bool = False, **changed: Any) -> CriterionDraft:
    """A draft asked for, and worked off in this process."""
    row = draft_start(choice=choice_of(rubric, **changed), by=by, anew=anew)
    draft_work_off(row)
    return row


def draft_work_off(row: CriterionDraft) -> None:
    """What a worker does; in a thread, for a browser test has an event loop running in its own."""

    def work() -> None:
        draft_definition(row.pk)
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
    row.refresh_from_db()
