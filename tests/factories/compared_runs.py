"""Chats that three raters labelled and one judge scored, with known answers on both sides."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluation.models.judges import Judge
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.chats.core.transcript import content_hash
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Topic
from labeling.models.labels import Label
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, Rubric
from tests.factories.rows import analyze, make_criterion, make_rubric

Rule = Callable[[int], bool]

# Every position from 1 on has its answers; people never answer False on `welcome`.
HUMAN: dict[str, Rule] = {
    "polite": lambda n: n % 2 == 1,
    "wrong_fact": lambda n: n % 4 == 0,
    "welcome": lambda n: True,
}
JUDGE: dict[str, Rule] = {
    "polite": lambda n: HUMAN["polite"](n) is (n % 5 != 0),
    "wrong_fact": lambda n: HUMAN["wrong_fact"](n) is (n % 7 != 0),
    "welcome": lambda n: n % 9 != 0,
}
RATERS = ("anna", "ben", "cleo")
SPLITS = ("holdout", "dev", "dev", "train")  # by position modulo 4


def says(rater: str, key: str, n: int) -> bool:
    """A rater's label: cleo alone differs from the others, on every third chat."""
    return HUMAN[key](n) is not (rater == "cleo" and n % 3 == 0)


def cell(key: str, n: int) -> str:
    """Where the chat at this position falls in the criterion's matrix."""
    names = {(True, True): "tp", (True, False): "fn", (False, True): "fp", (False, False): "tn"}
    return names[HUMAN[key](n), JUDGE[key](n)]


@dataclass(frozen=True)
class Compared:
    """A set, its rubric, and the finished run over it."""

    rubric: Rubric
    chat_set: ChatSet
    run: Run

    @property
    def criteria(self) -> list[Criterion]:
        return list(self.rubric.criteria.all())

    def chat(self, n: int) -> Chat:
        return Chat.objects.get(external_id=f"chat-{n}")


def make_compared(*, chats: int = 40) -> Compared:
    """The chats `chat-1`, `chat-2`, … in that order, with labels, consensus and verdicts."""
    rubric = make_rubric("polite")
    make_criterion("wrong_fact", rubric=rubric, passes_when=False, dimension="answer_correctness")
    make_criterion("welcome", rubric=rubric)
    chat_set = ChatSet.objects.create(name="calibration", rubric=rubric)
    judge = Judge.objects.create(
        fingerprint="f" * 64, kind=Judge.Kind.IMPORTED, name="outside judge", config={}
    )
    run = Run.objects.create(
        judge=judge,
        chat_set=chat_set,
        purpose=Run.Purpose.IMPORT,
        state=Run.State.DONE,
        finished_at=timezone.now(),
    )
    compared = Compared(rubric, chat_set, run)
    for name in RATERS:
        Rater.objects.create(name=name)
    add_chats(compared, to=chats)
    return compared


def add_chats(compared: Compared, *, to: int) -> None:
    """More chats for the set and the run, in bulk, up to `chat-{to}`."""
    places = range(compared.chat_set.members.count() + 1, to + 1)
    topic, _ = Topic.objects.get_or_create(key="delivery", defaults={"name": "Delivery"})
    chats = Chat.objects.bulk_create(_chat(n, topic) for n in places)
    numbered = list(zip(places, chats, strict=True))
    ChatSetMember.objects.bulk_create(
        ChatSetMember(chat_set=compared.chat_set, chat=chat, position=n, split=SPLITS[n % 4])
        for n, chat in numbered
    )
    RunChat.objects.bulk_create(
        RunChat(run=compared.run, chat=chat, split=SPLITS[n % 4]) for n, chat in numbered
    )
    _answer(compared, numbered)
    analyze()
    consensus_refresh(
        criterion_ids=[row.pk for row in compared.criteria], chat_ids=[chat.pk for chat in chats]
    )


def more_criteria(compared: Compared, number: int) -> None:
    """More criteria in four dimensions, judged as `polite` is, and without labels."""
    judged = list(Verdict.objects.filter(run=compared.run, criterion__key="polite"))
    for n in range(number):
        criterion = make_criterion(f"promise_{n}", rubric=compared.rubric, dimension=f"part_{n % 4}")
        for one in judged:
            one.pk, one.criterion = None, criterion
        Verdict.objects.bulk_create(judged)


def one_of_each_status(compared: Compared) -> None:
    """One criterion is aligned, one is not, one has no human False."""
    add_chats(compared, to=140)
    Run.objects.update(finished_at=timezone.now())
    Verdict.objects.filter(criterion__key="polite").update(value=True)


def _chat(n: int, topic: Topic) -> Chat:
    texts = ("user", f"Where is order {n}?"), ("assistant", f"Order {n} is on its way.")
    return Chat(
        external_id=f"chat-{n}",
        topic=topic,
        messages=[{"n": place, "role": role, "content": text} for place, (role, text) in enumerate(texts, 1)],
        content_hash=content_hash(texts),
        message_count=2,
        char_count=sum(len(text) for _, text in texts),
    )


def _answer(compared: Compared, numbered: list[tuple[int, Chat]]) -> None:
    now = timezone.now()
    raters = list(Rater.objects.filter(name__in=RATERS))
    for criterion in compared.criteria:
        version, key = criterion.versions.get(), criterion.key
        Label.objects.bulk_create(
            Label(
                chat=chat,
                criterion=criterion,
                rater=rater,
                version=version,
                value=says(rater.name, key, n),
                rationale=f"{rater.name} on {key}: see m2",
                evidence=[{"n": 2}],
                state=Label.State.SUBMITTED,
                source=Label.Source.IMPORT,
                given_at=now,
            )
            for n, chat in numbered
            for rater in raters
        )
        Verdict.objects.bulk_create(
            Verdict(
                run=compared.run,
                chat=chat,
                criterion=criterion,
                state=Verdict.State.READ,
                value=JUDGE[key](n),
                rationale=f'The judge on {key} of chat {n}: [m2: "Order {n} is on its way."]',
                read_by=Verdict.ReadBy.IMPORT,
                stored_at=now,
            )
            for n, chat in numbered
        )


def urls(compared: Compared) -> dict[str, str]:
    """Each page, and the API, once."""
    run = compared.run.pk
    return {
        "list": reverse("alignment:report_list"),
        "report": reverse("alignment:report_run", args=[run]),
        "set": reverse("alignment:report_set", args=[compared.chat_set.pk]),
        "criterion report": reverse("alignment:criterion_report", args=[run, "polite"]),
        "cell": reverse("alignment:cell", args=[run, "polite", "fn"]),
        "disagreements": reverse("alignment:disagreements", args=[run]),
        "gaps": reverse("alignment:knowledge_gaps", args=[run]),
        "chat": reverse("alignment:chat", args=[run, compared.chat(5).pk]) + "?criterion=polite",
        "api_run": reverse("api_run_report", args=[run]),
        "api_criterion": reverse("api_criterion_report", args=[run, "polite"]),
        "api_set": reverse("api_set_report", args=[compared.chat_set.pk]),
    }


def share_report(client: Client, compared: Compared, query: str = "") -> Any:
    """Store the report of the run, and return the response with the stored one."""
    address = reverse("alignment:report_share_run", args=[compared.run.pk]) + query
    return client.post(address, follow=True)


def cell_url(compared: Compared, key: str, name: str, query: str = "") -> str:
    return reverse("alignment:cell", args=[compared.run.pk, key, name]) + query


def chat_url(compared: Compared, n: int, query: str = "?criterion=polite") -> str:
    return reverse("alignment:chat", args=[compared.run.pk, compared.chat(n).pk]) + query


def text_of(response: Any) -> str:
    """Return the body; of a page with runs of whitespace as one space."""
    body: str = response.content.decode()
    return " ".join(body.split()) if response["Content-Type"].startswith("text/html") else body
