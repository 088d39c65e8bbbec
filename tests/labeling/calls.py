"""Calls of the rater's API, as a signed-in browser makes them."""

import json
import uuid
from typing import Any

from django.test import Client
from django.urls import reverse

from labeling.models.labels import Assignment
from labeling.models.people import User


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def label_url(assignment: Assignment, key: str = "polite") -> str:
    return reverse("api_label", args=[assignment.pk, key])


def put(client: Client, url: str, **body: Any) -> Any:
    given = {"client_id": str(uuid.uuid4()), "value": True} | body
    return client.put(url, json.dumps(given), content_type="application/json")
