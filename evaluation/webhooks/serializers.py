"""Bodies of the API of webhooks."""

from typing import Any

from rest_framework import serializers

from common.api import RowOutput, StrictInput
from evaluation.models.outbox import SUBSCRIBED, Delivery, WebhookEndpoint
from evaluation.webhooks.services import LONGEST_ADDRESS, LONGEST_NAME


class WebhookInput(StrictInput):
    """A webhook."""

    name = serializers.CharField(max_length=LONGEST_NAME)
    address = serializers.CharField(max_length=LONGEST_ADDRESS)
    kinds = serializers.ListField(
        child=serializers.ChoiceField([kind.value for kind in SUBSCRIBED]), allow_empty=False
    )


class WebhookChange(WebhookInput):
    """Changes of a webhook; `active` switches it on or off."""

    active = serializers.BooleanField(required=False)


class WebhookOutput(RowOutput[WebhookEndpoint]):
    """A webhook, without its secret."""

    kinds = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = WebhookEndpoint
        fields: tuple[str, ...] = (
            *("id", "name", "address", "kinds", "active", "secret_hint"),
            *("stopped_at", "stopped_because", "failing_since", "delivered_at", "created_at"),
        )


class SecretOutput(WebhookOutput):
    """A webhook with its new signing secret, which no other answer shows."""

    secret = serializers.CharField()

    class Meta(WebhookOutput.Meta):
        fields = (*WebhookOutput.Meta.fields, "secret")


class ReplayInput(StrictInput):
    """One event, or the events of a period."""

    event = serializers.UUIDField(required=False)
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a body that names neither, or both."""
        attrs = super().validate(attrs)
        if set(attrs) not in ({"event"}, {"since", "until"}):
            raise serializers.ValidationError({"event": ["Give event, or since and until."]})
        return attrs


class ReplayOutput(serializers.Serializer[Any]):
    """How many events are sent again."""

    events = serializers.IntegerField()


class DeliveryOutput(RowOutput[Delivery]):
    """A delivery with its latest attempt; `event` is the id in every request."""

    event = serializers.UUIDField(source="event_id")
    kind = serializers.CharField(source="event.kind")
    created_at = serializers.DateTimeField(source="event.created_at")

    class Meta:
        model = Delivery
        fields = (
            *("id", "event", "kind", "created_at", "state", "attempts", "next_at"),
            *("sent_at", "status", "latency_ms", "response", "error"),
        )
