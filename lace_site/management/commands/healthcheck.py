"""Check database, broker and endpoint; print one line each."""

from typing import Any

from common.commands import WorkbenchCommand
from common.problems import OutsideFailure
from evaluation.gateway.current import current_endpoint, endpoint_locator
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.gateway.endpoints import EndpointError
from evaluation.gateway.health import Check, check_endpoint
from lace_site.health import check_broker, check_database


class Command(WorkbenchCommand):
    """Check database, broker and endpoint, a line each; exit 4 if one does not answer."""

    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        checks = {"database": check_database(), "broker": check_broker(), "endpoint": endpoint_check()}
        lines = [
            f"{name:<9} {'ok' if check.ok else 'FAILED':<7} {check.detail}" for name, check in checks.items()
        ]
        document = {name: {"ok": check.ok, "detail": check.detail} for name, check in checks.items()}
        self.answer(document, "\n".join(lines))
        down = [name for name, check in checks.items() if not check.ok]
        if down:
            raise OutsideFailure(f"no answer from {', '.join(down)}")


def endpoint_check() -> Check:
    """Check the endpoint of the settings; a missing endpoint is a failed check."""
    try:
        endpoint = current_endpoint()
    except (EndpointError, EmbeddedModelError) as error:
        return Check(False, str(error))
    return check_endpoint(endpoint, locate=endpoint_locator(endpoint))
