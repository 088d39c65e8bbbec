"""Every route of the site and who may use it: one row a route, by name.

A new route needs a row in `ROUTES` (and, for an argument that no route had so far, a value in
`tests/world.py`). `test_access` then tries it as each of the five people, and `test_blind` looks for leaks.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse

NOBODY: tuple[str, ...] = ()
# `rater` has the assignment of the row; `other` labels in the same job and has another one.
RATER = ("rater",)
OTHER = ("other",)
RATERS = ("rater", "other")
LEADS = ("lead",)
AUTHORS = ("author", "lead")
SIGNED_IN = (*RATERS, *AUTHORS)
PEOPLE = ("anonymous", *SIGNED_IN)

UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
METHODS = ("GET", *UNSAFE)
# Django's own admin guards itself: superusers only.
ADMIN = "admin:"


@dataclass(frozen=True)
class Case:
    """Who may make one call; `args` names values of the world that stand for the usual ones."""

    may: tuple[str, ...]
    method: str = "GET"
    body: Mapping[str, Any] = field(default_factory=dict)
    args: Mapping[str, Any] = field(default_factory=dict)


def get(may: tuple[str, ...], **args: Any) -> Case:
    """A page, or a read of the API; an argument given here is a value of the world by name, or the value."""
    return Case(may, args=args)


def post(may: tuple[str, ...], body: Mapping[str, Any] | None = None, **args: Any) -> Case:
    """A change; an empty body is enough where only the right to it is asked."""
    return Case(may, "POST", body or {}, args)


ANSWER = {"client_id": "6f1c4f0e-0000-4000-8000-000000000001", "value": True}
NOTE = {"client_id": "6f1c4f0e-0000-4000-8000-000000000002", "kind": "flag"}
LOOK = (get(AUTHORS),)

ROUTES: dict[str, tuple[Case, ...]] = {
    # ---- site
    "home": (get(SIGNED_IN),),
    "login": (get(PEOPLE),),
    "logout": (post(SIGNED_IN),),
    "healthz": (get(PEOPLE),),
    "readyz": (get(PEOPLE),),
    "schema": (get(SIGNED_IN),),
    "api_docs": (get(SIGNED_IN),),
    # ---- raters
    "labeling:queue": (get(RATERS),),
    "labeling:next": (post(RATERS), post(NOBODY, job_id="foreign_job")),
    "labeling:rate": (get(RATER), get(OTHER, assignment_id="foreign_assignment")),
    "api_queue": (get(RATERS),),
    "api_assignment": (get(RATER), get(OTHER, assignment_id="foreign_assignment")),
    "api_label": (Case(RATER, "PUT", ANSWER), Case(RATER, "DELETE")),
    "api_submit": (post(RATER),),
    "api_skip": (post(RATER, {"reason": "too_long"}),),
    "api_extend": (post(RATER),),
    "api_reveal": (
        post(NOBODY),
        post(RATER, assignment_id="submitted_assignment"),
        post(OTHER, assignment_id="foreign_assignment"),
    ),
    # ---- labelling jobs
    "labeling:job_list": (get(LEADS),),
    "labeling:job_new": (get(LEADS), post(LEADS)),
    "labeling:job_new_size": (post(NOBODY),),  # without a set in the query there is nothing
    "labeling:job_detail": (get(LEADS),),
    "labeling:job_close": (post(LEADS),),
    "labeling:job_start": (post(LEADS),),
    "api_jobs": (get(LEADS), post(LEADS)),
    "api_job": (get(LEADS),),
    "api_job_close": (post(LEADS),),
    "api_job_start": (post(LEADS),),
    "api_job_next": (post(RATERS), post(NOBODY, job_id="foreign_job")),
    # ---- adjudication
    "labeling:adjudication_queue": (get(LEADS),),
    "labeling:adjudicate": (get(LEADS), post(LEADS)),
    "labeling:adjudicate_named": (post(LEADS),),
    "labeling:adjudicate_withdraw": (post(NOBODY),),  # of whom nobody says which decision they saw
    "labeling:adjudicate_likely": (get(LEADS),),
    "api_adjudication_queue": (get(LEADS),),
    "api_adjudicate": (get(LEADS), Case(LEADS, "PUT"), Case(LEADS, "DELETE")),
    "api_dawid_skene": (get(LEADS),),
    # ---- texts for raters, notes, rules
    "labeling:guideline_list": LOOK,
    "labeling:guideline_preview": (post(AUTHORS),),
    "labeling:guideline_detail": LOOK,
    "labeling:guideline_edit": (get(AUTHORS), post(AUTHORS)),
    "labeling:read_guideline": (get(RATERS),),
    "labeling:criterion_text": LOOK,
    "labeling:criterion_text_edit": (get(AUTHORS), post(AUTHORS)),
    "labeling:criterion_text_preview": (post(AUTHORS),),
    "labeling:note_list": LOOK,
    "labeling:note_detail": (get(LEADS),),  # on a holdout chat, and no criterion in it
    "labeling:note_settle": (post(LEADS),),
    "labeling:workspace": (get(LEADS), post(LEADS)),
    "labeling:workspace_log": (get(LEADS),),
    "api_assignment_guideline": (get(RATER), get(OTHER, assignment_id="foreign_assignment")),
    "api_assignment_notes": (post(RATER, NOTE), post(OTHER, NOTE, assignment_id="foreign_assignment")),
    "api_rubric_guidelines": (get(AUTHORS), post(AUTHORS)),
    "api_criterion_versions": (get(AUTHORS), post(AUTHORS)),
    "api_workspace": (get(LEADS), Case(LEADS, "PATCH")),
    "api_workspace_log": (get(LEADS),),
    "api_notes": LOOK,
    "api_note_settle": (post(LEADS),),
    # ---- chat sets
    "labeling:set_list": LOOK,
    "labeling:set_detail": LOOK,
    "api_sets": (get(LEADS),),
    "api_labels": (get(LEADS),),
    "api_export": (get(LEADS),),
    # ---- tokens
    "labeling:token_list": (get(SIGNED_IN), post(SIGNED_IN)),
    "labeling:token_revoke": (post(LEADS),),  # their own
    # ---- judge
    "evaluation:criterion_list": LOOK,
    "evaluation:criterion_detail": LOOK,
    "evaluation:profile_list": LOOK,
    "evaluation:profile_new": (get(LEADS), post(LEADS)),
    "evaluation:profile_detail": LOOK,
    "evaluation:profile_edit": (get(LEADS), post(LEADS)),
    "evaluation:profile_act": (post(LEADS, act="duplicate"),),
    "evaluation:run_list": LOOK,
    "evaluation:run_new": (get(LEADS), post(LEADS)),
    "evaluation:run_estimate": (get(LEADS),),
    "evaluation:run_detail": LOOK,
    "evaluation:run_engine": LOOK,
    "evaluation:run_act": (post(LEADS, act="cancel"),),
    "api_runs": (get(AUTHORS), post(LEADS)),
    "api_run": LOOK,
    "api_run_pause": (post(LEADS),),
    "api_run_resume": (post(LEADS),),
    "api_run_cancel": (post(LEADS),),
    # ---- alignment
    "alignment:report_list": LOOK,
    "alignment:report_run": LOOK,
    "alignment:report_set": LOOK,
    "alignment:disagreements": LOOK,
    "alignment:knowledge_gaps": LOOK,
    "alignment:cell": LOOK,
    "alignment:chat_newest": LOOK,
    "alignment:chat": (get(AUTHORS), get(LEADS, chat_id="holdout_chat")),
    "api_run_report": LOOK,
    "api_set_report": LOOK,
    # ---- quality of labels
    "quality:list": (get(LEADS),),
    "quality:overview": (get(LEADS),),
    "quality:pairs": (get(LEADS),),
    "quality:team": (get(LEADS),),
    "quality:raters_csv": (get(LEADS),),
    "quality:criterion": (get(LEADS),),
    "quality:set_overview": (get(LEADS),),
    "quality:set_pairs": (get(LEADS),),
    "quality:set_team": (get(LEADS),),
    "quality:set_raters_csv": (get(LEADS),),
    "quality:set_criterion": (get(LEADS),),
    "api_job_quality": (get(LEADS),),
    "api_set_quality": (get(LEADS),),
}


def route_names() -> dict[str, set[str]]:
    """Every route of the URLconf by its full name, with the names of its arguments.

    A route without a name is listed by its pattern: it has to get one.
    """
    return dict(_walk(get_resolver().url_patterns, prefix="", names=frozenset(), path=""))


def _walk(
    patterns: Iterable[URLPattern | URLResolver], *, prefix: str, names: frozenset[str], path: str
) -> Iterator[tuple[str, set[str]]]:
    for entry in patterns:
        own = names | set(entry.pattern.regex.groupindex)
        where = path + str(entry.pattern)
        if isinstance(entry, URLResolver):
            space = f"{prefix}{entry.namespace}:" if entry.namespace else prefix
            yield from _walk(entry.url_patterns, prefix=space, names=own, path=where)
        else:
            yield (f"{prefix}{entry.name}" if entry.name else f"unnamed /{where}"), set(own)


def own_routes() -> dict[str, set[str]]:
    """The routes that need a row: all but Django's admin."""
    return {name: args for name, args in route_names().items() if not is_admin(name)}


def is_admin(name: str) -> bool:
    """Whether the route is of Django's admin, its catch-all included."""
    return name.startswith((ADMIN, "unnamed /admin/"))


def url_of(name: str, values: Mapping[str, Any], args: Mapping[str, Any] | None = None) -> str:
    """The address of a route with the world's `values` for its arguments, or with those that `args` name."""
    wanted = own_routes()[name]
    given = args or {}
    found = {
        arg: values.get(given[arg], given[arg]) if arg in given else values[arg]
        for arg in wanted
        if arg in given or arg in values
    }
    try:
        return reverse(name, kwargs=found)
    except NoReverseMatch as error:
        missing = ", ".join(sorted(wanted - found.keys()))
        raise AssertionError(
            f"the route {name} needs a value for {missing}: add it to `args` in tests/world.py"
        ) from error
