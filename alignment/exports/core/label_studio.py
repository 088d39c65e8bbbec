"""Label Studio: the labelling configuration, and tasks with annotations and predictions; plain Python."""

import re
from collections.abc import Iterable, Sequence
from typing import Any
from xml.etree import ElementTree as Xml

from alignment.exports.core import ToolAnswer, ToolChat, ToolCriterion, ToolRater

DIALOGUE = "dialogue"
# Label Studio takes `completed_by` of its own accounts only, so the rater's name is an answer, too.
RATER = "rater"
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def configuration(criteria: Sequence[ToolCriterion]) -> str:
    """
    Return the labelling configuration: the dialogue, then a choice and a text for each criterion.

    Examples
    --------
    >>> print(configuration([ToolCriterion("polite", "Was it polite?", "Rude words.", False)])[:6])
    <View>
    """
    view = Xml.Element("View")
    paragraphs = {"value": f"${DIALOGUE}", "layout": "dialogue", "nameKey": "author", "textKey": "text"}
    _add(view, "Paragraphs", name=DIALOGUE, **paragraphs)
    for one in criteria:
        _add(view, "Header", value=one.question, size="4")
        control = _add(view, "Choices", name=one.answer, toName=DIALOGUE, choice="single", showInline="true")
        control.set("title", one.definition and _xml(one.definition))
        for choice in one.choices:
            _add(control, "Choice", value=choice)
        _text(view, one.rationale, "Why?")
    _text(view, RATER, "Rater, if not you")
    Xml.indent(view)
    return f"{Xml.tostring(view, encoding='unicode')}\n"


def task(chat: ToolChat) -> dict[str, Any]:
    """Return the task of a chat, in the shape that Label Studio imports."""
    return {
        "data": {
            "chat_id": chat.external_id,
            "topic": chat.topic,
            "split": chat.split,
            DIALOGUE: [{"author": one["role"], "text": one["content"]} for one in chat.messages],
        },
        "annotations": [_annotation(rater) for rater in chat.raters],
        "predictions": [
            {"model_version": judge, "result": list(_results(answers))}
            for judge, answers in chat.judges.items()
        ],
    }


def _annotation(rater: ToolRater) -> dict[str, Any]:
    named = _result(RATER, "textarea", {"text": [rater.name]})
    return {
        "result": [*_results(rater.answers), named],
        "was_cancelled": False,
        "ground_truth": False,
        "lead_time": rater.active_ms / 1000,
        "created_at": rater.at,
        "updated_at": rater.at,
    }


def _results(answers: Iterable[ToolAnswer]) -> Iterable[dict[str, Any]]:
    for one in answers:
        yield _result(one.criterion.answer, "choices", {"choices": [one.choice]})
        if one.rationale:
            yield _result(one.criterion.rationale, "textarea", {"text": [one.rationale]})


def _result(name: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "from_name": name, "to_name": DIALOGUE, "type": kind, "value": value}


def _add(parent: Xml.Element, tag: str, **attributes: str) -> Xml.Element:
    return Xml.SubElement(parent, tag, {name: _xml(value) for name, value in attributes.items()})


def _text(parent: Xml.Element, name: str, placeholder: str) -> None:
    about = {"placeholder": placeholder, "rows": "2", "maxSubmissions": "1", "editable": "true"}
    _add(parent, "TextArea", name=name, toName=DIALOGUE, **about)


def _xml(text: str) -> str:
    """Return a text without what XML cannot hold."""
    return _NO_XML.sub("\ufffd", text)
