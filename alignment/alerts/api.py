"""API of alerts: list, one alert, and what leads do with it."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.alerts.queries.alerts import SHOWN, AlertRow, alert_list, alert_rows
from alignment.alerts.services.acts import (
    AlertRefused,
    alert_accept,
    alert_acknowledge,
    alert_snooze,
    criterion_mute,
    criterion_unmute,
)
from alignment.models.alerts import Alert
from common.api import (
    INVALID,
    NO_ACCESS,
    ApiView,
    PagedList,
    QueryInput,
    StrictInput,
    choice_parameter,
    field_error,
    problem,
)
from common.problems import FieldProblem
from labeling.models.people import User
from labeling.people.api.permissions import ManagesLabeling, SeesJudge


class AlertQuery(QueryInput):
    """Which alerts are listed."""

    show = choice_parameter("show", list(SHOWN), help_text="Default: open.")


class SnoozeInput(StrictInput):
    """The day on which the alert is shown again."""

    until = serializers.DateField()


class SignalOutput(serializers.Serializer[Any]):
    """A stream in alarm; `before` and `now` are null where they are for leads alone."""

    stream = serializers.CharField(help_text="judged, anchors or audit.")
    change = serializers.CharField()
    before = serializers.FloatField(allow_null=True)
    now = serializers.FloatField(allow_null=True)


class AlertOutput(serializers.Serializer[Any]):
    """An alert."""

    id = serializers.IntegerField()
    plan = serializers.CharField()
    kind = serializers.ChoiceField(Alert.Kind.values)
    cause = serializers.CharField(allow_null=True, help_text="bot, judge, unclear; null for gaps.")
    criterion = serializers.CharField(allow_null=True, help_text="Null: all, or a topic.")
    topic = serializers.CharField(allow_null=True)
    judge = serializers.CharField(allow_null=True)
    state = serializers.CharField(help_text="open, acknowledged, snoozed, muted or ended.")
    detail = serializers.CharField()
    signals = SignalOutput(many=True)
    began_on = serializers.DateField(help_text="Estimated first day of the change.")
    day = serializers.DateField(help_text="Day of the night that raised it.")
    named_day = serializers.DateField(allow_null=True)
    bot_version = serializers.CharField(
        allow_null=True, help_text="The bot's version that went live when the change began."
    )
    bot_live_on = serializers.DateField(allow_null=True)
    raised_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    ended_because = serializers.CharField()
    accepted_by = serializers.CharField(
        allow_null=True, help_text="Who accepted the changed rate as the new baseline."
    )
    acknowledged_at = serializers.DateTimeField(allow_null=True)
    acknowledged_by = serializers.CharField(allow_null=True)
    snoozed_until = serializers.DateField(allow_null=True)
    snoozed_by = serializers.CharField(allow_null=True)
    muted = serializers.BooleanField()


class ActsOnAlerts(SeesJudge):
    """A lead who also sees the judge: a token needs both scopes."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Check both permissions. Raises Http404 without them."""
        return super().has_permission(request, view) and ManagesLabeling().has_permission(request, view)


def alert_json(row: AlertRow) -> dict[str, Any]:
    """Return an alert with the keys of AlertOutput."""
    alert = row.alert
    same = (
        "kind",
        "began_on",
        "day",
        "named_day",
        "bot_live_on",
        "raised_at",
        "ended_at",
        "ended_because",
        "acknowledged_at",
    )
    return {name: getattr(alert, name) for name in (*same, "snoozed_until")} | {
        "id": alert.pk,
        "plan": alert.plan.name,
        "cause": alert.cause or None,
        "criterion": alert.criterion.key if alert.criterion else None,
        "topic": alert.topic.key if alert.topic else None,
        "judge": alert.judge.name if alert.judge else None,
        "state": row.state,
        "detail": row.detail,
        "signals": [
            {
                "stream": one.stream,
                "change": one.change,
                "before": one.before if one.figures else None,
                "now": one.now if one.figures else None,
            }
            for one in row.signals
        ],
        "bot_version": alert.bot_version or None,
        "accepted_by": alert.accepted_by.get_username() if alert.accepted_by else None,
        "acknowledged_by": alert.acknowledged_by.get_username() if alert.acknowledged_by else None,
        "snoozed_by": alert.snoozed_by.get_username() if alert.snoozed_by else None,
        "muted": row.muted,
    }


@extend_schema_view(
    get=extend_schema(operation_id="alerts", responses={200: AlertOutput(many=True), **NO_ACCESS})
)
class AlertList(PagedList[Alert]):
    """One page of alerts, newest first."""

    permission_classes = [SeesJudge]
    serializer_class = AlertOutput
    query_classes: ClassVar = {"GET": AlertQuery}

    def get_queryset(self) -> QuerySet[Alert]:
        """Return the alerts that the query selects."""
        return alert_list(self.query.get("show") or "open").order_by("-pk")

    def results(self, page: Sequence[Alert]) -> Any:
        """Return the alerts with their figures as far as the caller may see them."""
        rows = alert_rows(page, user=self.request.user)
        return AlertOutput([alert_json(row) for row in rows], many=True).data


class AlertDetail(ApiView):
    """One alert."""

    permission_classes = [SeesJudge]

    @extend_schema(operation_id="alert", responses={200: AlertOutput, **NO_ACCESS})
    def get(self, request: Request, alert_id: int) -> Response:
        """The alert with its signals."""
        return Response(_body(request, alert_id))


def _body(request: Request, alert_id: int) -> Any:
    (row,) = alert_rows([_alert(alert_id)], user=request.user)
    return AlertOutput(alert_json(row)).data


def _alert(alert_id: int) -> Alert:
    return get_object_or_404(alert_list("all"), pk=alert_id)


def _action(name: str, act: Callable[[Alert, User], Any], about: str) -> type[ApiView]:
    """Return a view for one action, so that the schema has an operation for each."""

    @extend_schema(
        operation_id=f"alert_{name}",
        description=about,
        request=None,
        responses={200: AlertOutput, 400: INVALID, **NO_ACCESS},
    )
    def post(self: ApiView, request: Request, alert_id: int) -> Response:
        try:
            act(_alert(alert_id), cast(User, request.user))
        except AlertRefused as refused:
            raise problem("ended", str(refused)) from refused
        return Response(_body(request, alert_id))

    return type(f"Alert{name.title()}", (ApiView,), {"permission_classes": [ActsOnAlerts], "post": post})


def _criterion(alert: Alert) -> Any:
    if alert.criterion is None:
        raise ValidationError({"alert": ["This alert is not about one criterion."]})
    return alert.criterion


def _drift(alert: Alert) -> Alert:
    if alert.kind != Alert.Kind.DRIFT:
        raise ValidationError({"alert": ["This alert is not about a changed rate."]})
    return alert


AlertAcknowledge = _action(
    "acknowledge",
    lambda alert, by: alert_acknowledge(alert=alert, by=by),
    "Store who has seen it. It stays open until its cause ends. Repeating it changes nothing.",
)
AlertAccepted = _action(
    "accept",
    lambda alert, by: alert_accept(alert=_drift(alert), by=by),
    "Accept the changed rate: the alert ends, and the next nights become the criterion's new baseline.",
)
AlertMuted = _action(
    "mute",
    lambda alert, by: criterion_mute(criterion=_criterion(alert), by=by),
    "Notify nobody of this criterion's alerts. Repeating it changes nothing.",
)
AlertUnmuted = _action(
    "unmute",
    lambda alert, by: criterion_unmute(criterion=_criterion(alert), by=by),
    "Notify of this criterion's alerts again, from the next one on.",
)


class AlertSnooze(ApiView):
    """Hide an alert from leads' tasks until a day."""

    permission_classes = [ActsOnAlerts]

    @extend_schema(
        operation_id="alert_snooze",
        request=SnoozeInput,
        responses={200: AlertOutput, 400: INVALID, **NO_ACCESS},
    )
    def post(self, request: Request, alert_id: int) -> Response:
        """Snooze the alert until a day from tomorrow on, within a year."""
        body = SnoozeInput(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            alert_snooze(
                alert=_alert(alert_id), until=body.validated_data["until"], by=cast(User, request.user)
            )
        except FieldProblem as wrong:
            raise field_error(wrong) from wrong
        except AlertRefused as refused:
            raise problem("ended", str(refused)) from refused
        return Response(_body(request, alert_id), status=status.HTTP_200_OK)
