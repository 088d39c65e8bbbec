"""Chat sets: create them by name, add chats in order, assign splits."""

from collections.abc import Mapping

from django.db.models import Count, Max

from common.import_watch import import_watch
from common.jsonl import in_batches
from common.problems import InputProblem, shown
from common.sql import insert_rows
from labeling.chats.core.splits import Candidate, splits_of
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Split
from labeling.models.rubric import Rubric

NAME_LIMIT = 120
AT_ONCE = 1000
SPLITS_AT_ONCE = 200


# A sample is drawn, so no file makes one.
KINDS = tuple(kind.value for kind in ChatSet.Kind if kind is not ChatSet.Kind.SAMPLE)


def chat_set_ensure(*, name: str, rubric_name: str = "", kind: str = "") -> ChatSet:
    """
    Return the set of that name, created if new; with a single rubric `rubric_name` is optional.

    `kind` is that of a new set, one of KINDS, "" = curated.

    Raises InputProblem where the rubric is unknown, ambiguous, or not the set's, or the set has another kind.
    """
    if not 0 < len(name.strip()) <= NAME_LIMIT:
        raise InputProblem(f"--set: a name has 1 to {NAME_LIMIT} characters")
    chat_set = ChatSet.objects.select_related("rubric").filter(name=name).first()
    if chat_set is None:
        chat_set = ChatSet.objects.create(
            name=name, rubric=_rubric(rubric_name), kind=kind or ChatSet.Kind.CURATED
        )
        import_watch().created([chat_set], ("kind",))
        return chat_set
    if kind and kind != chat_set.kind:
        raise InputProblem(
            f"--kind: the set {shown(name)} is of the kind {chat_set.kind}; "
            "a lead changes it on the set’s page"
        )
    if rubric_name and rubric_name != chat_set.rubric.name:
        raise InputProblem(f"--rubric: the set {shown(name)} belongs to {shown(chat_set.rubric.name)}")
    return chat_set


def _rubric(name: str) -> Rubric:
    rubrics = list(Rubric.objects.filter(**({"name": name} if name else {})).order_by("name"))
    if len(rubrics) == 1:
        return rubrics[0]
    if name:
        raise InputProblem(f"--rubric: no rubric {shown(name)}")
    if rubrics:
        names = ", ".join(shown(rubric.name) for rubric in rubrics)
        raise InputProblem(f"--rubric is needed for a new set: one of {names}")
    raise InputProblem("no rubric yet: run import_rubric first")


class MembersImport:
    """
    Adds chats to a set while a file is read.

    A split in the line overrides the chat's split in the set. `finish` assigns splits by proportions to the
    chats added without one; near-duplicates and chats of one cluster, earlier members included, get the same
    split.
    """

    def __init__(self, chat_set: ChatSet, proportions: Mapping[str, float]) -> None:
        self.chat_set = chat_set
        self.proportions = proportions
        self.added = self.kept = 0
        members = ChatSetMember.objects.filter(chat_set=chat_set)
        self._next = self._first = (members.aggregate(last=Max("position"))["last"] or 0) + 1
        self._given: set[int] = set()  # chats that were added with a split in the line
        self._own = import_watch().own(ChatSetMember)  # added before this import was interrupted
        # NB: nobody without the right to holdout chats may see a chat before its split is known.
        undecided = Split.HOLDOUT if import_watch().in_batches else Split.DEV
        self._fallback = undecided if len(proportions) > 1 else next(iter(proportions), Split.DEV)

    def add(self, chats: Mapping[int, str | None]) -> set[int]:
        """Add chats (id → the split in the line, in order); return the ids of those whose split changed."""
        known = {
            member.chat_id: member
            for batch in in_batches(chats, AT_ONCE)
            for member in ChatSetMember.objects.filter(chat_set=self.chat_set, chat_id__in=batch)
        }
        self._create({pk: split for pk, split in chats.items() if pk not in known})
        self._given.update(pk for pk, split in chats.items() if split)
        own = sum(1 for member in known.values() if member.pk in self._own)
        self.added += own
        self.kept += sum(1 for pk, split in chats.items() if pk in known and not split) - own
        moved = {pk for pk, split in chats.items() if split and pk in known and known[pk].split != split}
        watch = import_watch()
        for pk in moved:
            before, known[pk].split = known[pk].split, chats[pk] or ""
            watch.updated(known[pk], {"split": before}, {"split": known[pk].split})
        ChatSetMember.objects.bulk_update([known[pk] for pk in moved], ["split"], batch_size=200)
        return moved

    def _create(self, chats: Mapping[int, str | None]) -> None:
        names = ("chat_set", "chat", "split", "position", "stratum", "inclusion_probability")
        rows = (
            (self.chat_set.pk, pk, split or self._fallback, position, "", None)
            for position, (pk, split) in enumerate(chats.items(), self._next)
        )
        insert_rows(ChatSetMember, names, rows)
        Chat.objects.sampled(chats)
        if chats:
            new = ChatSetMember.objects.filter(chat_set=self.chat_set, position__gte=self._next)
            import_watch().created(new.only("pk"))
        self._next += len(chats)
        self.added += len(chats)

    def finish(self) -> None:
        """Assign splits by proportions to the new chats without one."""
        if len(self.proportions) < 2 or not self.added:
            return
        rows = ChatSetMember.objects.filter(chat_set=self.chat_set).order_by("position")
        columns = (
            "pk",
            "chat_id",
            "position",
            "split",
            "chat__external_id",
            "chat__content_hash",
            "chat__near_hash",
            "chat__cluster",
        )
        candidates: list[Candidate] = []
        pks: dict[str, int] = {}
        for row in rows.values_list(*columns).iterator():
            pk, chat, position, split, external_id, content, near, cluster = row
            decided = chat in self._given or (position < self._first and pk not in self._own)
            if external_id in pks:  # another source has a chat of this id
                external_id = f"{external_id} {chat}"
            candidates.append(Candidate(external_id, content, near, split if decided else "", cluster))
            pks[external_id] = pk
        by_split: dict[str, list[int]] = {}
        for external_id, split in splits_of(candidates, self.proportions).items():
            by_split.setdefault(split, []).append(pks[external_id])
        for split, splits in by_split.items():
            for batch in in_batches(splits, SPLITS_AT_ONCE):
                with import_watch().batch():
                    ChatSetMember.objects.filter(pk__in=batch).update(split=split)

    def divided_clusters(self) -> int:
        """Count the clusters of the set with chats in more than one split."""
        rows = ChatSetMember.objects.filter(chat_set=self.chat_set).exclude(chat__cluster="")
        splits = rows.order_by().values("chat__cluster").annotate(splits=Count("split", distinct=True))
        return splits.filter(splits__gt=1).count()
