"""References in import lines: chats, criteria and raters by name."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from common.import_watch import import_watch
from common.jsonl import in_batches
from common.problems import FieldProblem, shown
from labeling.chats.queries import AT_ONCE, ChatRef
from labeling.models.chats import Chat
from labeling.models.people import Rater
from labeling.models.rubric import CriterionVersion


@dataclass(frozen=True, slots=True)
class VersionRef:
    """A version of a criterion."""

    id: int
    number: int
    allow_na: bool


@dataclass(frozen=True)
class CriterionRef:
    """A criterion of an import line."""

    id: int
    key: str
    versions: Mapping[int, VersionRef]

    @cached_property
    def newest(self) -> VersionRef:
        """The current version."""
        return self.versions[max(self.versions)]

    def version(self, number: int | None) -> VersionRef:
        """Return the version of that number, by default the newest."""
        if number is None:
            return self.newest
        if number not in self.versions:
            raise FieldProblem("version", f"{self.key} has no version {number}")
        return self.versions[number]


def check_answer(value: bool | None, criterion: CriterionRef, version: VersionRef) -> None:
    """Refuse "not applicable" where the criterion always applies."""
    if value is None and not version.allow_na:
        raise FieldProblem("value", f"null (not applicable) is not allowed for {criterion.key}")


def criteria_by_key() -> dict[str, CriterionRef]:
    """Return all criteria of the workspace with their versions."""
    versions: dict[tuple[int, str], dict[int, VersionRef]] = {}
    rows = CriterionVersion.objects.values_list("criterion_id", "criterion__key", "pk", "number", "allow_na")
    for criterion_id, key, pk, number, allow_na in rows.order_by():
        versions.setdefault((criterion_id, key), {})[number] = VersionRef(pk, number, allow_na)
    return {key: CriterionRef(pk, key, numbered) for (pk, key), numbered in versions.items()}


def criterion_named(key: str, criteria: Mapping[str, CriterionRef]) -> CriterionRef:
    """Return the criterion of that key; raise FieldProblem where there is none."""
    if key not in criteria:
        raise FieldProblem("criterion", f"no criterion {shown(key)}")
    return criteria[key]


def origin_named(key: str, criterion: CriterionRef, criteria: Mapping[str, CriterionRef]) -> int | None:
    """Return the id of the criterion that an answer has carried over from; None for a blank key.

    Raises FieldProblem for an unknown key, or that of the answer's own criterion.
    """
    if not key:
        return None
    if key not in criteria:
        raise FieldProblem("carried_from", f"no criterion {shown(key)}")
    if key == criterion.key:
        raise FieldProblem("carried_from", "is the criterion itself")
    return criteria[key].id


def chat_named(external_id: str, chats: Mapping[str, ChatRef]) -> ChatRef:
    """Return the chat of that external id; raise FieldProblem where there is none, or more than one."""
    if external_id not in chats:
        raise FieldProblem("chat_id", f"no chat {shown(external_id)}")
    if chats[external_id].sources > 1:
        raise FieldProblem(
            "chat_id", f"{chats[external_id].sources} sources hold a chat {shown(external_id)}"
        )
    return chats[external_id]


def contents_of(chat_ids: Collection[int]) -> dict[int, dict[int, str]]:
    """Map each of these chats to its texts by message number."""
    contents: dict[int, dict[int, str]] = {}
    for batch in in_batches(chat_ids, AT_ONCE):
        for pk, messages in Chat.objects.filter(pk__in=batch).values_list("pk", "messages"):
            contents[pk] = {int(message["n"]): str(message["content"]) for message in messages}
    return contents


class Raters:
    """Raters by name, created on first use."""

    def __init__(self, default_kind: str) -> None:
        self._default = default_kind
        self._known: dict[str, Rater] = {}

    def load(self, kinds: Mapping[str, str]) -> None:
        """Find or create the raters of some lines; `kinds` maps names to kinds, '' = default."""
        missing = [name for name in kinds if name not in self._known]
        for batch in in_batches(missing, AT_ONCE):
            self._find(batch)
            new = [name for name in batch if name not in self._known]
            Rater.objects.bulk_create(
                [Rater(name=name, kind=kinds[name] or self._default) for name in new], ignore_conflicts=True
            )
            self._find(new)
            import_watch().created(self._known[name] for name in new)

    def _find(self, names: Collection[str]) -> None:
        rows = Rater.objects.select_related("user").filter(name__in=names)
        self._known.update({rater.name: rater for rater in rows})

    def named(self, name: str, kind: str) -> int:
        """Return the rater's id; raise FieldProblem where the line's kind differs from the rater's."""
        rater = self._known[name]
        if kind and kind != rater.kind:
            raise FieldProblem("kind", f"the rater {shown(name)} is known as {rater.kind}, not {kind}")
        return rater.pk

    def account(self, name: str) -> str:
        """Return the user name of the rater's account, "" without one."""
        user = self._known[name].user
        return user.get_username() if user else ""
