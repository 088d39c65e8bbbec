"""Health checks: the site itself, its database and its broker."""

from celery import current_app
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from kombu.exceptions import OperationalError

from evaluation.gateway.health import Check


def check_database() -> Check:
    """Run a trivial query."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return Check(False, str(error).splitlines()[0])
    return Check(True, connection.vendor)


def check_broker() -> Check:
    """Open a connection to the broker."""
    try:
        with current_app.connection_for_write(connect_timeout=2) as broker:
            broker.ensure_connection(max_retries=1, timeout=2)
            return Check(True, str(broker.transport_cls))
    except (OperationalError, OSError) as error:
        return Check(False, str(error).splitlines()[0])


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200 while the process runs."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when database and broker respond, else 503."""
    checks = {"database": check_database(), "broker": check_broker()}
    body = {name: "ok" if check.ok else "no answer" for name, check in checks.items()}
    return JsonResponse(body, status=200 if all(check.ok for check in checks.values()) else 503)
