"""The demo's topic prompt: the simulated judge gives topics, measured on chats whose topic is known."""

import json

from alignment.demo_workspace.queries import FOLDER
from alignment.models.topic_prompt import TopicAnswer, TopicPrompt
from alignment.topic_prompt.queries import answers_open
from alignment.topic_prompt.services import topic_prompt_change, topic_prompt_measure
from alignment.topic_prompt.worker import ROWS, topics_work
from evaluation.gateway.endpoints import SIMULATED
from labeling.models.people import User


def topic_prompt_ensure(lead: User) -> None:
    """Let the lead list the topics and measure the prompt; it stays off until somebody switches it on.

    NB: outside a transaction, as requests are recorded by a thread of their own.
    """
    if not TopicPrompt.current().topics:
        texts = json.loads((FOLDER / "topics.json").read_text(encoding="utf-8"))
        topics = [{"key": key, "description": text} for key, text in texts.items()]
        topic_prompt_change(values={"endpoint": SIMULATED, "topics": topics}, by=lead)
    if not TopicAnswer.objects.exclude(given="").exists():
        topic_prompt_measure(by=lead)
    row = TopicPrompt.objects.get()
    if answers_open().exists():
        ROWS.reopen_abandoned()
        topics_work(row.pk)
