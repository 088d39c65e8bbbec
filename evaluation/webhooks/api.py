"""API of webhooks, their deliveries, and events sent again. For leads."""

from collections.abc import Callable
from typing import Any, ClassVar, cast

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.views.decorators.debug import sensitive_variables
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from common.api import (
    INVALID,
    NO_ACCESS,
    PROBLEMS,
    ApiView,
    PagedList,
    QueryInput,
    choice_parameter,
    field_error,
    problem,
    validated,
)
from common.problems import FieldProblem, InputProblem
from evaluation.models.outbox import Delivery, EventKind, WebhookEndpoint
from evaluation.webhooks.queries import delivery_list
from evaluation.webhooks.serializers import (
    DeliveryOutput,
    ReplayInput,
    ReplayOutput,
    SecretOutput,
    WebhookChange,
    WebhookInput,
    WebhookOutput,
)
from evaluation.webhooks.services import (
    NewSecret,
    WebhookChoice,
    event_replay,
    period_replay,
    webhook_add,
    webhook_change,
    webhook_remove,
    webhook_renew,
    webhook_switch,
    webhook_test,
)
from labeling.models.people import User
from labeling.people.api.permissions import ManagesLabeling


class ManagesWebhooks(ManagesLabeling):
    """Routes of webhooks. NB: a token must not get by a webhook what its scopes hide from it."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises Http404 without the rights to manage and to see every verdict, those of the holdout too."""
        if not super().has_permission(request, view):
            return False
        if not request.user.has_perms(["labeling.see_judge", "labeling.see_holdout"]):
            raise Http404
        return True


@extend_schema_view(
    get=extend_schema(operation_id="webhooks", responses={200: WebhookOutput(many=True), **NO_ACCESS})
)
class WebhookList(PagedList[WebhookEndpoint]):
    """Webhooks, newest first."""

    permission_classes = [ManagesWebhooks]
    serializer_class = WebhookOutput

    def get_queryset(self) -> QuerySet[WebhookEndpoint]:
        """Return all of them."""
        return WebhookEndpoint.objects.order_by("-id")

    @extend_schema(
        operation_id="webhook_add",
        request=WebhookInput,
        responses={201: SecretOutput, 400: INVALID, **NO_ACCESS},
    )
    @sensitive_variables("new")
    def post(self, request: Request) -> Response:
        """Add a webhook. No later answer shows its secret."""
        fields = validated(WebhookInput, request.data)
        try:
            new = webhook_add(choice=WebhookChoice(**fields), by=cast(User, request.user))
        except FieldProblem as refused:
            raise field_error(refused) from refused
        return Response(_with_secret(new), status=status.HTTP_201_CREATED)


class WebhookDetail(ApiView):
    """One webhook."""

    permission_classes = [ManagesWebhooks]

    @extend_schema(operation_id="webhook", responses={200: WebhookOutput, **NO_ACCESS})
    def get(self, request: Request, webhook_id: int) -> Response:
        """The webhook's settings and state."""
        return Response(WebhookOutput(_webhook(webhook_id)).data)

    @extend_schema(
        operation_id="webhook_change",
        request=WebhookChange,
        responses={200: WebhookOutput, 400: INVALID, **NO_ACCESS},
    )
    def patch(self, request: Request, webhook_id: int) -> Response:
        """Change a webhook, or switch it on or off. Missing fields stay as they are."""
        row, by = _webhook(webhook_id), cast(User, request.user)
        fields = validated(WebhookChange, request.data, partial=True)
        active = fields.pop("active", None)
        try:
            with transaction.atomic():
                if fields:
                    now = {"name": row.name, "address": row.address, "kinds": row.kinds}
                    row = webhook_change(webhook=row, choice=WebhookChoice(**(now | fields)), by=by)
                if active is not None:
                    webhook_switch(webhook=row, on=active, by=by)
        except FieldProblem as refused:
            raise field_error(refused) from refused
        return Response(WebhookOutput(_webhook(webhook_id)).data)

    @extend_schema(operation_id="webhook_remove", request=None, responses={204: None, **PROBLEMS})
    def delete(self, request: Request, webhook_id: int) -> Response:
        """Remove a webhook that is switched off, with its deliveries."""
        _done(webhook_remove, webhook=_webhook(webhook_id), by=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class WebhookSecret(ApiView):
    """A new secret."""

    permission_classes = [ManagesWebhooks]

    @extend_schema(operation_id="webhook_secret", request=None, responses={200: SecretOutput, **NO_ACCESS})
    @sensitive_variables("new")
    def post(self, request: Request, webhook_id: int) -> Response:
        """Make a new signing secret; the old one signs too for 24 hours."""
        new = webhook_renew(webhook=_webhook(webhook_id), by=cast(User, request.user))
        return Response(_with_secret(new))


class WebhookTest(ApiView):
    """A test event."""

    permission_classes = [ManagesWebhooks]

    @extend_schema(operation_id="webhook_test", request=None, responses={202: DeliveryOutput, **PROBLEMS})
    def post(self, request: Request, webhook_id: int) -> Response:
        """Send a test event; look for its delivery in the log."""
        delivery = _done(webhook_test, webhook=_webhook(webhook_id), by=request.user)
        return Response(DeliveryOutput(delivery).data, status=status.HTTP_202_ACCEPTED)


class WebhookReplay(ApiView):
    """Events sent again."""

    permission_classes = [ManagesWebhooks]

    @extend_schema(
        operation_id="webhook_replay",
        request=ReplayInput,
        responses={202: ReplayOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, webhook_id: int) -> Response:
        """Send one event again, or those of a period, with the same ids."""
        fields, row = validated(ReplayInput, request.data), _webhook(webhook_id)
        if event_id := fields.get("event"):
            _done(event_replay, webhook=row, event_id=event_id, by=request.user)
            count = 1
        else:
            count = _done(period_replay, webhook=row, by=request.user, **fields)
        return Response({"events": count}, status=status.HTTP_202_ACCEPTED)


class DeliveryQuery(QueryInput):
    """Filters of deliveries."""

    state = choice_parameter("state", Delivery.State.values, help_text="Only deliveries in this state.")
    kind = choice_parameter("kind", EventKind.values, help_text="Only events of this kind.")


@extend_schema_view(
    get=extend_schema(
        operation_id="webhook_deliveries", responses={200: DeliveryOutput(many=True), **NO_ACCESS}
    )
)
class WebhookDeliveries(PagedList[Delivery]):
    """A webhook's deliveries, newest first."""

    permission_classes = [ManagesWebhooks]
    serializer_class = DeliveryOutput
    query_classes: ClassVar = {"GET": DeliveryQuery}
    largest_page = 1000

    def get_queryset(self) -> QuerySet[Delivery]:
        """Return the deliveries that the query selects."""
        only = {name: self.query.get(name, "") for name in ("state", "kind")}
        return delivery_list(_webhook(self.kwargs["webhook_id"]), **only)


def _webhook(webhook_id: int) -> WebhookEndpoint:
    return get_object_or_404(WebhookEndpoint, pk=webhook_id)


def _with_secret(new: NewSecret) -> Any:
    return {**WebhookOutput(new.webhook).data, "secret": str(new.secret)}


def _done(service: Callable[..., Any], **arguments: Any) -> Any:
    """Call a service; what it refuses is a 400 by field, or a 409 while the state does not allow it."""
    try:
        return service(**arguments)
    except FieldProblem as refused:
        raise field_error(refused) from refused
    except InputProblem as refused:
        raise problem("webhook_state", str(refused)) from refused
