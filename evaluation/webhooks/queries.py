"""Webhooks as their pages show them: the state in a word, what waits, and the log of deliveries."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min, Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from common.inbox.subjects import Subject
from evaluation.models.outbox import Delivery, EventKind, OutboxEvent, WebhookEndpoint
from evaluation.runs.queries.workers import WEBHOOK_QUEUE, no_worker, queue_workers
from labeling.models.people import User

DELIVERIES_A_PAGE = 50


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """A webhook; `look` is the class of its state's word. `oldest` is when the oldest event waits since."""

    row: WebhookEndpoint
    state: str
    look: str
    waiting: int = 0
    oldest: datetime | None = None

    @property
    def kinds(self) -> list[str]:
        """Return the labels of the kinds that it subscribes to."""
        return [EventKind(kind).label for kind in self.row.kinds if kind in EventKind.values]


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """A page of the log; `following` is the cursor of the next page, None on the last one."""

    rows: tuple[Delivery, ...]
    following: int | None


def webhook_rows() -> list[WebhookRow]:
    """Return the webhooks by name, with what waits for each; one query."""
    waiting = Q(deliveries__state=Delivery.State.WAITING)
    rows = WebhookEndpoint.objects.select_related("created_by", "updated_by").annotate(
        n_waiting=Count("deliveries", filter=waiting),
        oldest=Min("deliveries__event__created_at", filter=waiting),
    )
    return [webhook_row(row) for row in rows]


def webhook_row(row: WebhookEndpoint) -> WebhookRow:
    """Return a webhook with its state; what waits is counted where the row does not have it."""
    state, look = _state(row)
    if not hasattr(row, "n_waiting"):
        waiting = row.deliveries.filter(state=Delivery.State.WAITING)
        told = waiting.aggregate(n=Count("id"), oldest=Min("event__created_at"))
        return WebhookRow(row, state, look, told["n"], told["oldest"])
    return WebhookRow(row, state, look, row.n_waiting, row.oldest)  # type: ignore[attr-defined]


def delivery_list(webhook: WebhookEndpoint, *, state: str = "", kind: str = "") -> QuerySet[Delivery]:
    """Return a webhook's deliveries, newest first, with their events."""
    rows = webhook.deliveries.select_related("event").order_by("-id")
    rows = rows.filter(state=state) if state else rows
    return rows.filter(event__kind=kind) if kind else rows


def delivery_page(webhook: WebhookEndpoint, *, state: str = "", before: int | None = None) -> DeliveryPage:
    """Return the newest deliveries, or those before one; one query."""
    rows = delivery_list(webhook, state=state if state in Delivery.State.values else "")
    rows = rows if before is None else rows.filter(pk__lt=before)
    newest = list(rows[: DELIVERIES_A_PAGE + 1])
    shown = newest[:DELIVERIES_A_PAGE]
    return DeliveryPage(tuple(shown), shown[-1].pk if len(newest) > DELIVERIES_A_PAGE else None)


def worker_missing() -> str:
    """Return the sentence that no worker sends to webhooks; "" if one does."""
    workers = queue_workers(WEBHOOK_QUEUE)
    return "" if workers.alive else no_worker(workers.heard_at)


def webhook_subjects(ids: Collection[int], user: User) -> dict[int, Subject]:
    """Return those of these webhooks that the user may open."""
    if not user.has_perm("labeling.manage_labeling"):
        return {}
    return {
        row.pk: Subject(title=f"webhook {row.name}", url=reverse("evaluation:webhook_detail", args=[row.pk]))
        for row in WebhookEndpoint.objects.filter(pk__in=ids)
    }


def shows_event(event: OutboxEvent, *, user: User) -> bool:
    """Whether the user may read an event. NB: accounts that label read no verdicts here.

    Which chats they have labelled already is not known on this side.
    """
    return event.kind != EventKind.VERDICTS or not user.is_allowed("label_chats")


def next_attempt(webhook: WebhookEndpoint) -> datetime | None:
    """Return when the next request to a receiver that is away leaves; None if it need not wait."""
    held = webhook.hold_until
    return held if webhook.active and held and held > timezone.now() else None


def _state(row: WebhookEndpoint) -> tuple[str, str]:
    if not row.active:
        return ("Stopped", "not") if row.stopped_at else ("Off", "dir")
    if row.failing_since:
        return "Failing", "not"
    return ("On", "on") if row.delivered_at else ("Never used", "few")
