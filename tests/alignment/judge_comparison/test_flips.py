"""Run against run: the chats whose verdict flipped, by criterion."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluation.models.runs import Run, Verdict
from labeling.models.labels import Consensus
from tests.factories.compared_runs import HUMAN, JUDGE, SPLITS, Compared, add_chats, chat_url, text_of
from tests.factories.prompt_versions import a_version, run_of
from tests.factories.rater_quality import polite
from tests.factories.rows import make_set

pytestmark = pytest.mark.django_db

WRONG = 7  # the second judge is wrong on every seventh chat, the first on every fifth


@pytest.fixture
def later(compared: Compared) -> Run:
    return run_of(a_version(polite()), compared.chat_set, wrong=WRONG)


def flips_url(run: Run, query: str = "") -> str:
    return f"/reports/runs/{run.pk}/flips/{query}"


def places(*splits: str, fixed: bool) -> list[int]:
    """Chats that only the first judge, or only the second one, got wrong."""
    once = [n for n in range(1, 41) if SPLITS[n % 4] in (splits or SPLITS)]
    return [n for n in once if (n % 5 == 0) is fixed and (n % WRONG == 0) is not fixed]


def test_flipped_verdicts_are_counted_as_fixed_or_broken(
    compared: Compared, lead: Client, later: Run
) -> None:
    page = lead.get(flips_url(later))
    (row,) = page.context["rows"]
    counts = {flip.value: n for flip, n in row.cells}
    assert (row.criterion.key, row.both) == ("polite", 40)
    assert counts == {
        "fixed": len(places(fixed=True)),
        "broken": len(places(fixed=False)),
        **{"other": 0, "gained": 0, "lost": 0},
    }
    assert f"Run {later.pk} against run {compared.run.pk}" in text_of(page)


def test_the_numbers_open_their_chats(compared: Compared, lead: Client, later: Run) -> None:
    page = lead.get(flips_url(later, "?criterion=polite&kind=broken"))
    listed = [one.chat.external_id for one in page.context["chats"]]
    assert listed == [f"chat-{n}" for n in places(fixed=False)]
    first = page.context["chats"][0]
    assert first.url.startswith(f"/runs/{later.pk}/chats/") and lead.get(first.url).status_code == 200
    n = places(fixed=False)[0]
    assert (first.before.value, first.after.value) == (JUDGE["polite"](n), not HUMAN["polite"](n))


def test_verdicts_that_appear_or_go_are_told_apart(compared: Compared, lead: Client, later: Run) -> None:
    Verdict.objects.filter(run=later, chat=compared.chat(1)).update(state="refused", value=None)
    Verdict.objects.filter(run=compared.run, chat=compared.chat(2)).update(state="unparsed", value=None)
    Consensus.objects.filter(chat=compared.chat(5)).delete()
    Run.objects.update(finished_at=timezone.now())
    (row,) = lead.get(flips_url(later)).context["rows"]
    counts = {flip.value: n for flip, n in row.cells}
    assert (counts["lost"], counts["gained"], counts["other"], row.both) == (1, 1, 1, 38)


def test_any_finished_run_of_the_set_can_be_chosen_and_no_other(
    compared: Compared, lead: Client, later: Run
) -> None:
    assert lead.get(flips_url(compared.run, f"?with={later.pk}")).context["choice"].before == later
    elsewhere = run_of(a_version(polite()), make_set(compared.rubric, compared.chat(1), name="elsewhere"))
    for other in (elsewhere.pk, 999_999, later.pk, "x"):
        assert lead.get(flips_url(later, f"?with={other}")).status_code == 404
    Run.objects.filter(pk=compared.run.pk).update(state="cancelled")
    assert lead.get(flips_url(compared.run)).status_code == 404
    assert "No other run of this chat set" in text_of(lead.get(flips_url(elsewhere)))


@pytest.mark.parametrize("query", ["?kind=nonsense", "?criterion=nonsense", "?criterion=welcome"])
def test_an_unknown_filter_is_not_found(compared: Compared, lead: Client, later: Run, query: str) -> None:
    assert lead.get(flips_url(later, query)).status_code == 404


def test_authors_neither_see_nor_count_holdout_chats(
    compared: Compared, lead: Client, author: Client, later: Run
) -> None:
    lead.get(flips_url(later))  # what one reader had computed shows another no more
    page = author.get(flips_url(later))
    (row,) = page.context["rows"]
    assert row.both == 30
    assert row.flipped == sum(len(places("dev", "train", fixed=fixed)) for fixed in (True, False))
    assert "10 chats are not included" in text_of(page)
    listed = {one.chat.external_id for one in page.context["chats"]}
    assert not listed & {f"chat-{n}" for n in range(4, 41, 4)}


def test_the_page_of_the_chat_leads_back(compared: Compared, lead: Client, later: Run) -> None:
    address = flips_url(later, "?kind=fixed")
    page = lead.get(
        chat_url(compared, 5).replace(f"/runs/{compared.run.pk}/", f"/runs/{later.pk}/"),
        headers={"referer": f"http://testserver{address}"},
    )
    assert f'<a href="{address}" data-origin>← Back to flipped chats</a>' in text_of(page)


def test_the_queries_do_not_grow_with_the_chats(compared: Compared, lead: Client, later: Run) -> None:
    with CaptureQueriesContext(connection) as few:
        lead.get(flips_url(later, f"?with={compared.run.pk}"))
    add_chats(compared, to=200)
    more = run_of(a_version(polite()), compared.chat_set, wrong=WRONG)
    Run.objects.update(finished_at=timezone.now())
    with CaptureQueriesContext(connection) as many:
        lead.get(flips_url(more, f"?with={compared.run.pk}"))
    assert len(many) <= len(few)
