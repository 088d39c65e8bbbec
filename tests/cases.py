"""Who may make which call: people, and the rows that `tests/routes.py` is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NOBODY: tuple[str, ...] = ()
# `rater` has the assignment of the row; `other` labels in the same job and has another one. `both` is a
# third rater of the job and an author too; they may what either may, so no row names them.
RATER = ("rater",)
OTHER = ("other",)
RATERS = ("rater", "other")
LEADS = ("lead",)
AUTHORS = ("author", "lead")
SIGNED_IN = (*RATERS, *AUTHORS)
NAMED = ("anonymous", *SIGNED_IN)
PEOPLE = (*NAMED, "both")

UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
METHODS = ("GET", *UNSAFE)
# Django's own admin guards itself: superusers only.
ADMIN = "admin:"
# Tokens never open these: a draft may hold what a scope hides.
WITHOUT_TOKEN = {"api_form_draft"}


@dataclass(frozen=True)
class Case:
    """Who may make one call, and what they are answered.

    `args`, and what `body` and `query` hold, are values of the world by name, or the value itself.
    `says` is the status for those who may; 0: the one of success, which for a page's form is 302.
    """

    may: tuple[str, ...]
    method: str = "GET"
    body: Mapping[str, Any] = field(default_factory=dict)
    args: Mapping[str, Any] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    says: int = 0

    def allows(self, person: str) -> bool:
        """Whether the person may make the call."""
        if person != "both":
            return person in self.may
        return "author" in self.may or set(RATERS) <= set(self.may)


def get(may: tuple[str, ...], *, query: Mapping[str, Any] | None = None, says: int = 0, **args: Any) -> Case:
    """A page, or a read of the API."""
    return Case(may, args=args, query=query or {}, says=says)


def post(
    may: tuple[str, ...],
    body: Mapping[str, Any] | None = None,
    *,
    query: Mapping[str, Any] | None = None,
    says: int = 0,
    **args: Any,
) -> Case:
    """A change, with a body by which who may does change something."""
    return Case(may, "POST", body or {}, args, query or {}, says)


ANSWER = {"client_id": "6f1c4f0e-0000-4000-8000-000000000001", "value": True}
NEW_PASSWORD = {"oldpassword": "correct horse battery"} | dict.fromkeys(
    ("password1", "password2"), "another horse battery"
)
JOIN = {"username": "joined"} | dict.fromkeys(("password1", "password2"), "another horse battery")
NOTE = {"client_id": "6f1c4f0e-0000-4000-8000-000000000002", "kind": "flag", "text": "Look."}
DECISION = {"value": True, "reason": "Turn 2.", "seen": "decision"}
GUIDELINE = {"text": "Be fair.", "reason": "Shorter.", "base": 1, "meaning": "wording"}
TEXT = {"question": "Is it so?", "definition": "When it is.", "reason": "Clearer.", "base": 1} | {
    "meaning": "new"
}
CRITERION = {"question": "Is it so?", "definition": "When it is.", "dimension": "compliance"} | {
    "tier": "simple",
    "passes_when": "True",
    "articles": "tier",
}
JOB = {
    "name": "November",
    "overlap": 1,
    "order": "topic",
    "criteria": "criterion_id",
    "raters": "rater_account",
}
PROFILE = {"name": "A recipe", "engine": "direct", "samples": 1, "knowledge": "none", "grouping": "auto"} | {
    "layout": "auto",
    "role_in": "user",
    "passage_tokens": 700,
}
# Authors try prompts on chats of train and dev; nobody does on the holdout.
TRY = {"only": "chat_id", "profile": "profile_id"}
WEBHOOK = {"name": "New", "address": "https://new.test/hook", "kinds": "verdicts.stored"}
RUN = {"set": "set_id", "profile": "profile_id", "mode": "live"}
TEST = {"criterion": "polite", "version": 2, "set": "set_id", "split": ""}
API_TEST = {"criterion": "polite", "version": 2, "set": "calibration", "split": ""}
LIMITS = {"floor": 0.8}
DRAW = {"criteria": "polite", "chats": 1, "name": "More of them", "seed": 1}
API_DRAW = {"criteria": ["polite"], "chats": 1, "name": "More of them", "seed": 1}
TO_SET = {"misalignments": ["misalignment_id"], "set": "calibration", "split": "dev"}
LOOK = (get(AUTHORS),)
# Authors read what raters found unclear, where the chat is not held out; the rest is for leads.
NOTED = (get(LEADS), get(LEADS, note_id="holdout_note"), get(AUTHORS, note_id="unclear_note"))
SETTLE = (post(LEADS), post(LEADS, note_id="holdout_note"), post(AUTHORS, note_id="unclear_note"))
