"""Endpoints that leads connected on a page."""

from django.db import models

from labeling.models.people import User


class ConnectedEndpoint(models.Model):
    """A model endpoint beside the server's own one. `address` is its id in judges and calls."""

    name = models.CharField(max_length=80)
    preset = models.CharField(max_length=20, blank=True, default="")
    address = models.CharField(max_length=200)
    # The version of Azure's API, sent with every request; no part of the id.
    api_version = models.CharField(max_length=40, blank=True, default="")
    # As evaluation.gateway.keys writes it; the ending by which its owner knows it.
    key = models.TextField(blank=True, default="")
    key_hint = models.CharField(max_length=4, blank=True, default="")
    # The models to choose from; the first is the default.
    model_names = models.JSONField(default=list, blank=True)
    # By model: US dollars per 1,000,000 tokens, as text: input, output, cached_input.
    prices = models.JSONField(default=dict, blank=True)
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    tokens_per_minute = models.PositiveIntegerField(null=True, blank=True)
    max_in_flight = models.PositiveIntegerField(null=True, blank=True)
    batch = models.BooleanField(default=False)
    enabled = models.BooleanField(default=True)
    # The last test of the connection, as evaluation.connections.worker gives it.
    test = models.JSONField(null=True, blank=True)
    tested_at = models.DateTimeField(null=True, blank=True)
    tested_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["name"], name="connectedendpoint_name"),
            models.UniqueConstraint(fields=["address"], name="connectedendpoint_address"),
        ]

    def __str__(self) -> str:
        return self.name
