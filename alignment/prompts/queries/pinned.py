"""Chats pinned beside the prompt: labels, verdicts, and the version that judged them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.urls import reverse

from alignment.comparison.queries.latest_verdicts import COUNTED
from alignment.comparison.queries.rationales import judge_rationales
from alignment.models.misalignments import Misalignment
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import FINISHED, Verdict
from labeling.models.chats import Chat
from labeling.models.labels import Consensus, Label
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown

MOST = 50  # a page of disagreements


@dataclass(frozen=True, slots=True)
class PinnedChat:
    """A chat with its consensus and the newest verdict of the version that judged it.

    `version` : that version's number, None for an imported judge or a text not saved. `rationale` : the
    judge's. `labels` : the raters' labels. `note` : that of its triage. `url` : the chat in the verdict's
    run, '' without a verdict.
    """

    chat: Chat
    human: str
    verdict: Verdict | None
    version: int | None
    rationale: str
    labels: Sequence[Label]
    note: str
    url: str


@dataclass(frozen=True, slots=True)
class PinnedChats:
    """The pinned chats, in the order of the address. `hidden` : those that the reader cannot see.

    `query` : them in an address, after other parameters.
    """

    chats: Sequence[PinnedChat]
    hidden: int
    query: str

    @property
    def version(self) -> int | None:
        """The version that judged all of them; None if there are several, or none is known."""
        versions = {one.version for one in self.chats}
        return versions.pop() if len(versions) == 1 else None


def pinned_chats(
    criterion: Criterion, query: Mapping[str, str], *, user: User | AnonymousUser
) -> PinnedChats | None:
    """Return the chats that `pin` of a query string names, judged by `version`; None without `pin`.

    A chat that this version did not judge has its newest verdict. The number of queries is constant.
    """
    ids = list(dict.fromkeys(pk for part in query.get("pin", "").split(",") if (pk := _number(part))))[:MOST]
    if not ids:
        return None
    version = _number(query.get("version", "")) or None
    shown = chats_shown(user=user).select_related("topic").in_bulk(ids)
    verdicts = _verdicts(criterion, list(shown), version)
    numbers = _versions(criterion, verdicts.values())
    rationales = judge_rationales(list(verdicts.values()))
    place = {"criterion": criterion, "chat__in": list(shown)}
    states = dict(Consensus.objects.filter(**place).values_list("chat_id", "state"))
    notes = dict(Misalignment.objects.filter(**place).values_list("chat_id", "note"))
    labels: dict[int, list[Label]] = {}
    submitted = Label.objects.filter(state=Label.State.SUBMITTED, **place).select_related("rater")
    for label in submitted.order_by("rater__name"):
        labels.setdefault(label.chat_id, []).append(label)
    chats = [
        PinnedChat(
            chat=shown[pk],
            human=states.get(pk, "none"),
            verdict=(verdict := verdicts.get(pk)),
            version=numbers.get(verdict.run.judge_id) if verdict else None,
            rationale=rationales.get(verdict.pk, "") if verdict else "",
            labels=labels.get(pk, []),
            note=notes.get(pk, ""),
            url=_url(verdict, criterion) if verdict else "",
        )
        for pk in ids
        if pk in shown
    ]
    pins = f"&pin={','.join(map(str, ids))}" + (f"&version={version}" if version else "")
    return PinnedChats(chats, hidden=len(ids) - len(chats), query=pins)


def _verdicts(criterion: Criterion, chats: Sequence[int], version: int | None) -> dict[int, Verdict]:
    """Return the newest verdict of that version by chat id, else the newest of all; two queries."""
    rows = Verdict.objects.filter(criterion=criterion, chat__in=chats)
    rows = rows.filter(run__state__in=FINISHED, run__purpose__in=COUNTED)
    newest = _newest(rows)
    if version is None:
        return newest
    prompts = JudgePrompt.objects.filter(criterion=criterion, prompt_version__number=version)
    return newest | _newest(rows.filter(run__judge__in=prompts.values("judge")))


def _newest(rows: QuerySet[Verdict]) -> dict[int, Verdict]:
    run = rows.filter(chat=OuterRef("chat")).order_by("-run_id").values("run_id")[:1]
    latest = rows.annotate(newest=Subquery(run)).filter(run_id=F("newest")).select_related("run__judge")
    return {row.chat_id: row for row in latest}


def _versions(criterion: Criterion, verdicts: Iterable[Verdict]) -> dict[int, int | None]:
    judges = {row.run.judge_id for row in verdicts}
    prompts = JudgePrompt.objects.filter(judge__in=judges, criterion=criterion)
    return dict(prompts.values_list("judge_id", "prompt_version__number"))


def _url(verdict: Verdict, criterion: Criterion) -> str:
    page = reverse("alignment:chat", args=[verdict.run_id, verdict.chat_id])
    return f"{page}?criterion={criterion.key}"


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0
