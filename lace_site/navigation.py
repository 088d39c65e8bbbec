"""The bar at the top: what each role may open."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from labeling.models.people import Role


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of the bar."""

    label: str
    url: str
    current: bool


# label, route, permission, beginning (or beginnings) of the routes that count as "current"
ENTRIES: tuple[tuple[str, str, str, str | tuple[str, ...]], ...] = (
    ("Queue", "labeling:queue", "labeling.label_chats", "labeling:queue"),
    ("Chat sets", "labeling:set_list", "labeling.see_judge", "labeling:set"),
    ("Criteria", "evaluation:criterion_list", "labeling.see_judge", "evaluation:criterion"),
    ("Runs", "evaluation:run_list", "labeling.see_judge", ("evaluation:run", "evaluation:profile")),
    ("Reports", "alignment:report_list", "labeling.see_judge", "alignment:"),
)


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Context processor: `nav`, the entries this user may open, and `role`, their roles in words."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"nav": [], "role": ""}
    here = request.resolver_match.view_name if request.resolver_match else ""
    roles = [Role(group.name).label for group in user.groups.all() if group.name in Role.values]
    return {
        # An account that is named after its role needs no second mention of it.
        "role": ", ".join(role.lower() for role in roles if role.lower() != user.get_username()),
        "nav": [
            Item(label, reverse(route), here.startswith(prefix))
            for label, route, permission, prefix in ENTRIES
            if user.has_perm(permission)
        ],
    }
