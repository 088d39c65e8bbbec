"""Change the topic prompt, switch it on and off, and measure it on chats whose topic is known."""

import random
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any

from django.db import transaction

from alignment.models.topic_prompt import TopicAnswer, TopicPrompt
from alignment.topic_prompt.core import topics_checked
from alignment.topic_prompt.queries import answers_open, asked_of, chats_with_topic, fingerprint_of
from alignment.topic_prompt.worker import ROWS
from common.problems import FieldProblem, InputProblem
from evaluation.gateway.budget import budget_check
from evaluation.gateway.current import prices_at
from evaluation.gateway.embedded import EmbeddedModelError
from labeling.models.people import User
from labeling.people.services.audit import audit

FIELDS = ("active", "endpoint", "model", "topics", "budget_usd")
MEASURED = 200  # chats of a measurement
NEWEST = 20_000  # of which they are a random sample


@transaction.atomic
def topic_prompt_change(*, values: Mapping[str, Any], by: User) -> TopicPrompt:
    """
    Set these of FIELDS and log the changed ones. Topics that were given stay.

    Raises FieldProblem for a wrong list of topics, an endpoint that cannot be asked, and a budget without a
    known price.
    """
    TopicPrompt.objects.get_or_create(id=1)
    row = TopicPrompt.objects.select_for_update(of=("self",)).get()
    changed = {name: values[name] for name in FIELDS if name in values and getattr(row, name) != values[name]}
    if "topics" in changed:
        topics = [one.as_json() for one in topics_checked(changed["topics"])] if changed["topics"] else []
        changed["topics"] = topics
    for name, value in changed.items():
        setattr(row, name, value)
    if row.active:
        _check(row)
    if changed:
        answers_open().delete()  # a measurement of the earlier prompt
        row.changed_by, row.problem, row.problem_at, row.tries = by, "", None, 0
        row.save(update_fields=[*changed, "changed_by", "problem", "problem_at", "tries"])
        logged = {name: _logged(value) for name, value in changed.items()}
        audit(actor=by, verb="settings changed", obj=row, **logged)
    return row


def _check(row: TopicPrompt) -> None:
    """Raise FieldProblem if the prompt could not be asked as it is."""
    if not row.topics:
        raise FieldProblem("topics", "list the topics first")
    try:
        asked = asked_of(row)
        at = asked.request.at
        budget_check(budget=row.budget_usd, models=[at], prices=prices_at([at]))
    except FieldProblem:
        raise
    except (InputProblem, EmbeddedModelError) as problem:
        raise FieldProblem("endpoint", str(problem)) from None


def _logged(value: Any) -> Any:
    if isinstance(value, list):
        return f"{len(value)} topics"
    return str(value) if isinstance(value, Decimal) else value


@transaction.atomic
def topic_prompt_measure(*, by: User) -> int:
    """
    Ask the prompt about a random sample of chats whose topic is known; return how many are to be asked.

    It need not be switched on. The cost counts against the day's budget.

    Raises FieldProblem as `topic_prompt_change` does, and InputProblem if a measurement is at work or no chat
    is left.
    """
    row = TopicPrompt.objects.select_for_update(of=("self",)).filter(id=1).first()
    if row is None or not row.topics:
        raise FieldProblem("topics", "list the topics first")
    _check(row)
    mark = fingerprint_of(row)
    if answers_open().exists():
        raise InputProblem("a measurement is at work: wait for its end")
    chats = list(chats_with_topic().values_list("pk", "topic__key")[:NEWEST])
    done = set(TopicAnswer.objects.filter(fingerprint=mark).values_list("chat", flat=True))
    left = [(chat, topic) for chat, topic in chats if chat not in done]
    if not left:
        raise InputProblem("no chat with a known topic is left: send chats with their topics")
    taken = random.Random(f"{mark} {len(done)}").sample(left, min(MEASURED, len(left)))  # noqa: S311
    TopicAnswer.objects.bulk_create(
        [TopicAnswer(chat_id=chat, fingerprint=mark, given=topic) for chat, topic in taken]
    )
    audit(actor=by, verb="topic prompt measured", obj=row, chats=len(taken))
    transaction.on_commit(partial(ROWS.enqueue, row.pk))
    return len(taken)
