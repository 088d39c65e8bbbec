"""What can be exported and in which formats; the shapes of other tools. Plain Python."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ANSWERS: Mapping[bool | None, str] = {True: "True", False: "False", None: "Not applicable"}

TABLE = ("jsonl", "csv", "xlsx")
CONTENT_TYPES = {
    "jsonl": "application/x-ndjson; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "zip": "application/zip",
}
KINDS = {"jsonl": "JSONL", "csv": "CSV", "xlsx": "Excel", "json": "JSON", "zip": "ZIP"}


@dataclass(frozen=True, slots=True)
class Export:
    """One thing to export. `leads`: not for authors; `runs`: of the chosen run, or of each judge's newest."""

    title: str
    about: str
    kinds: Sequence[str] = TABLE
    leads: bool = False
    runs: bool = False


EXPORTS: Mapping[str, Export] = {
    "chats": Export("Chats", "messages, topic and split", ("jsonl", "xlsx")),
    "labels": Export("Labels", "submitted answers of all raters"),
    "adjudications": Export("Adjudications", "decisions of leads"),
    "verdicts": Export("Verdicts", "answers of judges with rationales", runs=True),
    "session_scores": Export("Session scores", "each chat's score by judge and raters", runs=True),
    "notes": Export("Notes", "comments and flags of raters", leads=True),
    "revisions": Export("Label history", "every saved answer, drafts too", leads=True),
    "assignments": Export("Assignments", "which rater got which chat in each labelling job", leads=True),
    "label_studio": Export(
        "Label Studio",
        "tasks, labelling configuration, labels as annotations, verdicts as predictions",
        ("zip",),
        runs=True,
    ),
    "argilla": Export(
        "Argilla", "dataset, labels as responses, verdicts as suggestions", ("zip",), runs=True
    ),
    "rubric": Export("Rubric", "dimensions and criteria", ("json",)),
    "prompts": Export("Prompts", "champions with their examples as Markdown", ("zip",)),
    "knowledge": Export("Knowledge", "newest articles as Markdown", ("zip",)),
}


@dataclass(frozen=True, slots=True)
class ToolCriterion:
    """A criterion as a question of another tool."""

    key: str
    question: str
    definition: str
    allow_na: bool

    @property
    def answer(self) -> str:
        """Return the name of the control with the answer; no two controls have one name."""
        return f"{self.key}_answer"

    @property
    def rationale(self) -> str:
        """Return the name of the control with the rationale."""
        return f"{self.key}_rationale"

    @property
    def choices(self) -> list[str]:
        """Return the answers to choose from."""
        return [ANSWERS[True], ANSWERS[False], *([ANSWERS[None]] if self.allow_na else [])]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """A label or a verdict."""

    criterion: ToolCriterion
    value: bool | None
    rationale: str
    p_true: float | None = None

    @property
    def choice(self) -> str:
        """Return the answer as a choice."""
        return ANSWERS[self.value]

    @property
    def confidence(self) -> float | None:
        """Return the probability of this answer, where the judge gave one."""
        if self.p_true is None or self.value is None:
            return None
        return self.p_true if self.value else 1 - self.p_true


@dataclass(slots=True)
class ToolRater:
    """One rater's labels on a chat: the last time, and the time spent."""

    name: str
    at: str = ""
    active_ms: int = 0
    answers: list[ToolAnswer] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ToolChat:
    """A chat with the labels of its raters and the verdicts of judges, by name."""

    external_id: str
    topic: str
    split: str
    messages: Sequence[Mapping[str, Any]]
    raters: Sequence[ToolRater]
    judges: Mapping[str, Sequence[ToolAnswer]]


def mapping_json(criteria: Sequence[ToolCriterion], **fields: Any) -> dict[str, Any]:
    """Return the mapping file with which `import_labels` reads the labels of a tool back."""
    return {
        "criteria": {
            one.key: {
                "question": one.answer,
                "comment": one.rationale,
                "true": [ANSWERS[True]],
                "false": [ANSWERS[False]],
                "not_applicable": [ANSWERS[None]],
            }
            for one in criteria
        },
        **fields,
    }
