"""What lines of labels, adjudications and verdicts have in common: chats, criteria and raters by name."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

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
    """A criterion as a line refers to it."""

    id: int
    key: str
    versions: Mapping[int, VersionRef]

    @cached_property
    def newest(self) -> VersionRef:
        """The version in force."""
        return self.versions[max(self.versions)]

    def version(self, number: int | None) -> VersionRef:
        """The version of that number, by default the newest."""
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
    """Every criterion of the workspace with its versions."""
    versions: dict[tuple[int, str], dict[int, VersionRef]] = {}
    rows = CriterionVersion.objects.values_list("criterion_id", "criterion__key", "pk", "number", "allow_na")
    for criterion_id, key, pk, number, allow_na in rows.order_by():
        versions.setdefault((criterion_id, key), {})[number] = VersionRef(pk, number, allow_na)
    return {key: CriterionRef(pk, key, found) for (pk, key), found in versions.items()}


def criterion_named(key: str, criteria: Mapping[str, CriterionRef]) -> CriterionRef:
    """The criterion of that key, or a FieldProblem."""
    if key not in criteria:
        raise FieldProblem("criterion", f"no criterion {shown(key)}")
    return criteria[key]


def chat_named(external_id: str, chats: Mapping[str, ChatRef]) -> ChatRef:
    """The chat of that external id, or a FieldProblem."""
    if external_id not in chats:
        raise FieldProblem("chat_id", f"no chat {shown(external_id)}")
    return chats[external_id]


def contents_of(chat_ids: Collection[int]) -> dict[int, dict[int, str]]:
    """Message number → text of these chats."""
    contents: dict[int, dict[int, str]] = {}
    for batch in in_batches(chat_ids, AT_ONCE):
        for pk, messages in Chat.objects.filter(pk__in=batch).values_list("pk", "messages"):
            contents[pk] = {int(message["n"]): str(message["content"]) for message in messages}
    return contents


class Raters:
    """Raters by name, made on first mention."""

    def __init__(self, default_kind: str) -> None:
        self._default = default_kind
        self._known: dict[str, Rater] = {}

    def load(self, kinds: Mapping[str, str]) -> None:
        """Find or make the raters of some lines: name → kind as said first, '' = not said."""
        missing = [name for name in kinds if name not in self._known]
        for batch in in_batches(missing, AT_ONCE):
            self._find(batch)
            new = [name for name in batch if name not in self._known]
            Rater.objects.bulk_create(
                [Rater(name=name, kind=kinds[name] or self._default) for name in new], ignore_conflicts=True
            )
            self._find(new)

    def _find(self, names: Collection[str]) -> None:
        self._known.update({rater.name: rater for rater in Rater.objects.filter(name__in=names)})

    def named(self, name: str, kind: str) -> int:
        """The rater's id; a line that calls a known rater another kind is refused."""
        rater = self._known[name]
        if kind and kind != rater.kind:
            raise FieldProblem("kind", f"the rater {shown(name)} is known as {rater.kind}, not {kind}")
        return rater.pk
