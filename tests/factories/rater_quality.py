"""Addresses and makers of the quality pages' tests; the labels are those of `compared`."""

from typing import Any

from django.test import Client
from django.urls import reverse

from labeling.models.chats import Chat
from labeling.models.labels import Assignment, Label, LabelingJob
from labeling.models.people import Rater
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import RATERS, Compared

# Of 40 chats cleo differs on every third; anna and ben always agree.
DIFFERING = 13


def pages(compared: Compared, job: LabelingJob | None = None) -> dict[str, str]:
    """Each route once, about the set and about a job."""
    abouts: list[dict[str, Any]] = [{"set_id": compared.chat_set.pk}]
    abouts += [{"job_id": job.pk}] if job else []
    found = {"list": reverse("quality:list")}
    for about in abouts:
        kind = next(iter(about))
        start = "quality:" if kind == "job_id" else "quality:set_"
        for name in ("overview", "pairs", "team", "raters_csv"):
            found[f"{kind} {name}"] = reverse(start + name, kwargs=about)
        found[f"{kind} criterion"] = reverse(f"{start}criterion", kwargs=about | {"key": "polite"})
        found[f"{kind} api"] = reverse(f"api_{kind[:3]}_quality", kwargs=about)
    return found


def set_page(compared: Compared, name: str = "overview") -> str:
    return pages(compared)[f"set_id {name}"]


def rows_of(client: Client, compared: Compared, query: str = "") -> dict[str, Any]:
    rows = client.get(set_page(compared) + query).context["rows"]
    return {row.person.name: row for row in rows}


def job_of(compared: Compared, *, raters: tuple[str, ...] = RATERS, **fields: Any) -> LabelingJob:
    """A job in which these raters gave the labels that they have on the first four chats."""
    job = LabelingJob.objects.create(chat_set=compared.chat_set, name="October", overlap=3, **fields)
    job.criteria.set(compared.criteria)
    for position, chat in enumerate(Chat.objects.order_by("pk")[:4], 1):
        for slot, rater in enumerate(Rater.objects.filter(name__in=raters), 1):
            assignment = Assignment.objects.create(
                job=job, chat=chat, slot=slot, position=position, rater=rater, state="submitted"
            )
            Label.objects.filter(chat=chat, rater=rater).update(assignment=assignment)
    return job


def polite() -> Criterion:
    return Criterion.objects.get(key="polite")
