"""The bar at the top: what each role may open."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of the bar."""

    label: str
    url: str
    current: bool


# label, route, permission, app whose pages count as "current"
ENTRIES = (
    ("Queue", "labeling:queue", "labeling.label_chats", "labeling:queue"),
    ("Chat sets", "labeling:set_list", "labeling.see_judge", "labeling:set"),
    ("Criteria", "evaluation:criterion_list", "labeling.see_judge", "evaluation:criterion"),
    ("Runs", "evaluation:run_list", "labeling.see_judge", "evaluation:run"),
    ("Reports", "alignment:report_list", "labeling.see_judge", "alignment:"),
)


def navigation(request: HttpRequest) -> dict[str, list[Item]]:
    """Context processor: `nav`, the entries this user may open."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"nav": []}
    here = request.resolver_match.view_name if request.resolver_match else ""
    return {
        "nav": [
            Item(label, reverse(route), here.startswith(prefix))
            for label, route, permission, prefix in ENTRIES
            if user.has_perm(permission)
        ]
    }
