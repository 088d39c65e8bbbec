"""The deploy artefacts as read: image, services, manifests and their pods."""

from collections.abc import Iterator
from typing import Any

import yaml

from deploy import artefacts
from deploy.artefacts import MANIFESTS

STAGES = artefacts.read_stages(artefacts.DOCKERFILE.read_text("utf-8"))
IMAGE = STAGES[-1]
KEYS = {"SECRET_KEY": "k", "POSTGRES_PASSWORD": "p", "ALLOWED_HOSTS": "lace.example.org"}
SERVICES = artefacts.read_compose(artefacts.COMPOSE.read_text("utf-8"), KEYS)
DOCUMENTS = [
    document
    for path in sorted(MANIFESTS.glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text("utf-8"))
]


def pods() -> Iterator[tuple[str, Any]]:
    """The pod of each workload, by its name."""
    for document in DOCUMENTS:
        spec = document.get("spec", {})
        if document["kind"] == "CronJob":
            yield "backup", spec["jobTemplate"]["spec"]["template"]["spec"]
        elif document["kind"] in ("Deployment", "Job"):
            name = document["metadata"].get("name", "lace-migrate").removeprefix("lace-")
            yield name, spec["template"]["spec"]


PODS = dict(pods())
