"""The navigation bar: pages by permission."""

from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from labeling.models.people import Role, User
from lace_site.health import RIGHT, site_status


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of the navigation bar."""

    label: str
    url: str
    current: bool


# label, route, permission, prefix or prefixes of the routes that count as "current"
Entries = tuple[tuple[str, str, str, str | tuple[str, ...]], ...]


def _beginnings(entries: Entries) -> tuple[str, ...]:
    """Return the route prefixes of these entries."""
    return tuple(chain.from_iterable([own] if isinstance(own, str) else own for *_, own in entries))


# Tabs of the labelling pages; the first one is the entry in the bar.
LABELLING: Entries = (
    ("Jobs", "labeling:job_list", "labeling.manage_labeling", "labeling:job"),
    ("Quality", "quality:list", "labeling.manage_labeling", "quality:"),
    ("Adjudicate", "labeling:adjudication_queue", "labeling.manage_labeling", "labeling:adjudic"),
    ("Notes", "labeling:note_list", "labeling.edit_prompts", "labeling:note"),
    (
        "Guidelines",
        "labeling:guideline_list",
        "labeling.edit_prompts",
        ("labeling:guideline", "labeling:criterion_text"),
    ),
    ("Settings", "labeling:workspace", "labeling.manage_labeling", "labeling:workspace"),
)
REPORTS = tuple(
    f"alignment:{page}"
    for page in (
        "report",
        "criterion_report",
        "certificate",
        "disagreements",
        "knowledge_gaps",
        "label_plan",
        "league",
        "misalignment",
        "cell",
        "chat",
    )
)
ENTRIES: Entries = (
    ("Queue", "labeling:queue", "labeling.label_chats", "labeling:queue"),
    ("Chat sets", "labeling:set_list", "labeling.see_judge", ("labeling:set", "labeling:import")),
    ("Labelling", "labeling:job_list", "labeling.manage_labeling", _beginnings(LABELLING)),
    (
        "Criteria",
        "alignment:criterion_list",
        "labeling.see_judge",
        ("alignment:criterion_list", "alignment:criterion_detail", "alignment:prompt", "alignment:redesign"),
    ),
    (
        "Regression tests",
        "alignment:regression_list",
        "labeling.see_judge",
        ("alignment:regression", "alignment:policy"),
    ),
    (
        "Runs",
        "evaluation:run_list",
        "labeling.see_judge",
        ("evaluation:run", "evaluation:profile", "evaluation:model"),
    ),
    ("Reports", "alignment:report_list", "labeling.see_judge", REPORTS),
)


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Context processor: `nav` (pages of this user), `tabs` (of this page), `role` (readable).

    `site_status` (what is wrong with the site, for leads) is a function: fragments of pages do not ask it.
    """
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"nav": [], "tabs": [], "role": ""}
    here = request.resolver_match.view_name if request.resolver_match else ""
    roles = [Role(group.name).label for group in user.groups.all() if group.name in Role.values]
    return {
        # Omit a role that equals the user name.
        "role": ", ".join(role.lower() for role in roles if role.lower() != user.get_username()),
        "nav": _items(ENTRIES, user, here),
        "site_status": site_status if user.has_perm(RIGHT) else (),
        "tabs": _items(LABELLING, user, here)
        if any(here.startswith(entry[3]) for entry in LABELLING)
        else [],
    }


def _items(entries: Entries, user: User, here: str) -> list[Item]:
    return [
        Item(label, reverse(route), here.startswith(prefix))
        for label, route, permission, prefix in entries
        if user.has_perm(permission)
    ]
