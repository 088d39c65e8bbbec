"""Calls of the rater's API from a signed-in browser, one by one or in parallel."""

import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, TypeVar

from django.db import connections
from django.test import Client
from django.urls import reverse

from labeling.models.labels import Assignment
from labeling.models.people import User

T = TypeVar("T")


def at_once(work: Callable[[int], T], *, times: int) -> list[T]:
    """Run the work in `times` threads that start together, each with its own database connection."""
    start = Barrier(times)

    def one(number: int) -> T:
        start.wait()
        try:
            return work(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(one, range(times)))


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def label_url(assignment: Assignment, key: str = "polite") -> str:
    return reverse("api_label", args=[assignment.pk, key])


def put(client: Client, url: str, **body: Any) -> Any:
    answer = {"client_id": str(uuid.uuid4()), "value": True} | body
    return client.put(url, json.dumps(answer), content_type="application/json")
