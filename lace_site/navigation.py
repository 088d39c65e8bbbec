"""The navigation bar: pages by permission."""

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.http import HttpRequest
from django.urls import reverse

from common.search.registry import Hit, Query
from labeling.models.people import Role, User, Workspace
from lace_site.health import RIGHT, site_status
from lace_site.help import help_url


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
        "Rubric",
        "labeling:rubric_list",
        "labeling.edit_prompts",
        ("labeling:rubric", "labeling:criterion_new", "labeling:criterion_edit"),
    ),
    (
        "Guidelines",
        "labeling:guideline_list",
        "labeling.edit_prompts",
        ("labeling:guideline", "labeling:criterion_text"),
    ),
    (
        "Settings",
        "labeling:workspace",
        "labeling.manage_labeling",
        ("labeling:workspace", "alignment:topic_prompt"),
    ),
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
        "no_verdict",
        "baselines",
        "run_",
    )
)
QUEUE = "Queue"
ENTRIES: Entries = (
    (
        QUEUE,
        "labeling:queue",
        "labeling.label_chats",
        ("labeling:queue", "labeling:rate", "labeling:read_guideline"),
    ),
    ("Chat sets", "labeling:set_list", "labeling.see_judge", ("labeling:set", "labeling:import")),
    ("Labelling", "labeling:job_list", "labeling.manage_labeling", _beginnings(LABELLING)),
    (
        "Criteria",
        "alignment:criterion_list",
        "labeling.see_judge",
        (
            "alignment:criterion_list",
            "alignment:criterion_detail",
            "alignment:prompt",
            "alignment:redesign",
            "alignment:suggestion",
        ),
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
        (
            "evaluation:run",
            "evaluation:profile",
            "evaluation:model",
            "evaluation:endpoint",
            "evaluation:sample",
            "evaluation:webhook",
        ),
    ),
    ("Reports", "alignment:report_list", "labeling.see_judge", REPORTS),
    (
        "Monitoring",
        "monitoring:overview",
        "labeling.see_judge",
        ("monitoring:", "alerts:", "experiments:", "issues:"),
    ),
)

# Pages that the search offers beside the entries: label, route, permission.
MORE_PAGES = (
    ("Start a run", "evaluation:run_new", "labeling.start_runs"),
    ("Sample plans", "evaluation:sample_plan_list", "labeling.start_runs"),
    ("Judge profiles", "evaluation:profile_list", "labeling.see_judge"),
    ("Models", "evaluation:endpoint_list", "labeling.manage_labeling"),
    ("Experiments", "experiments:list", "labeling.see_judge"),
    ("Webhooks", "evaluation:webhook_list", "labeling.manage_labeling"),
    ("Alerts", "alerts:list", "labeling.see_judge"),
    ("Alert settings", "alerts:settings", "labeling.manage_labeling"),
    ("Start a regression test", "alignment:regression_new", "labeling.edit_prompts"),
    ("Gate policies", "alignment:policy_list", "labeling.see_judge"),
    ("Open disagreements", "alignment:misalignment_list", "labeling.see_judge"),
    ("Issues", "issues:list", "labeling.see_judge"),
    ("Certificates", "alignment:certificate_list", "labeling.see_judge"),
    ("Import a file", "labeling:import_new", "labeling.manage_labeling"),
    ("Incoming chats", "labeling:workspace_chats", "labeling.manage_labeling"),
    ("Imports", "labeling:import_list", "labeling.manage_labeling"),
    ("Export", "alignment:export_page", "labeling.see_judge"),
    ("Connect a model", "evaluation:endpoint_new", "labeling.manage_labeling"),
    ("Create a rubric", "labeling:rubric_new", "labeling.manage_labeling"),
    ("Open a labelling job", "labeling:job_new", "labeling.manage_labeling"),
    ("People", "labeling:people", "labeling.manage_labeling"),
    ("Status page", "status", "labeling.manage_labeling"),
    ("Audit log", "labeling:workspace_log", "labeling.manage_labeling"),
    ("Inbox", "inbox", ""),
    ("Help", "help", ""),
    ("API tokens", "labeling:token_list", ""),
    ("API documentation", "api_docs", ""),
    ("Account", "mfa_index", ""),
    ("Change password", "account_change_password", ""),
)


def page_hits(query: Query, user: AbstractUser, limit: int) -> list[Hit]:
    """Return the pages of the product whose name matches and that the user may open."""
    entries = ((label, route, permission) for label, route, permission, _ in (*ENTRIES, *LABELLING))
    found = {
        reverse(route): Hit(label, reverse(route))
        for label, route, permission in (*entries, *MORE_PAGES)
        if (not permission or user.has_perm(permission)) and query.fits(label)
    }
    return list(found.values())[:limit]


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Context processor: `nav` (pages of this user), `tabs` (of this page), `role` (readable), and more.

    `manages_people`: whether the account menu leads to the People page. `csrf_cookie`: its name, for scripts.

    `crumb_root` is the entry that the page belongs to: a tab, else one of the bar, else None. `help_url` is
    the chapter of the docs on the page.

    `site_status` (what is wrong with the site, for leads) and `is_demo_workspace` are functions: fragments of
    pages do not ask them.
    """
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {
            "nav": [],
            "tabs": [],
            "role": "",
            "csrf_cookie": settings.CSRF_COOKIE_NAME,
            "is_demo_workspace": Workspace.is_demo,
        }
    here = request.resolver_match.view_name if request.resolver_match else ""
    roles = [Role(group.name) for group in user.groups.all() if group.name in Role.values]
    nav = _bar(user, here)
    tabs = _items(LABELLING, user, here) if any(here.startswith(entry[3]) for entry in LABELLING) else []
    return {
        "role": ", ".join(role.label.lower() for role in roles),
        "manages_people": user.is_superuser or Role.LEAD in roles,
        "csrf_cookie": settings.CSRF_COOKIE_NAME,
        "is_demo_workspace": Workspace.is_demo,
        "nav": nav,
        "site_status": site_status if user.has_perm(RIGHT) else (),
        "tabs": tabs,
        "help_url": help_url(here),
        "crumb_root": next((item for item in (*tabs, *nav) if item.current), None),
    }


def _bar(user: User, here: str) -> list[Item]:
    """Return the entries of the bar; none for an account without a role.

    The queue is Labelling to raters; who also has the leads' Labelling sees it as Queue.
    """
    items = _items(ENTRIES, user, here)
    labels = [item.label for item in items]
    if QUEUE in labels and "Labelling" not in labels:
        items = [replace(item, label="Labelling") if item.label == QUEUE else item for item in items]
    return [Item("Home", reverse("home"), here == "home"), *items] if items else []


def _items(entries: Entries, user: User, here: str) -> list[Item]:
    return [
        Item(label, reverse(route), here.startswith(prefix))
        for label, route, permission, prefix in entries
        if user.has_perm(permission)
    ]
