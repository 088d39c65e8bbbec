"""The same chats judged at nine vendors' endpoints: the planted verdicts exactly, and what was learned."""

import pytest
from django.conf import settings

from evaluation.models.runs import Run
from tests.factories.vendor_runs import Swept, swept, table_row, wanted, wrong
from tests.factories.vendors import PLANTS, VENDORS, Naming, Vendor, planted, planted_set

pytestmark = pytest.mark.django_db(transaction=True)
by_vendor = pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
by_naming = pytest.mark.parametrize("naming", ["known", "unknown"])
CHATS = 20


def holds(vendor: Vendor, naming: Naming, found: Swept, *, chats: int) -> None:
    """Every verdict is the planted one; no unit failed; what was learned is the vendor's row."""
    for engine, (state, failed) in found.states.items():
        assert (state, failed, wrong(found.answers[engine], chats)) == (Run.State.DONE, 0, {})
        assert found.answers[engine] == wanted(chats)
    assert found.learned == vendor.learned[naming]
    assert (found.refused > 0) is bool(found.learned)
    assert (found.shown > 0) is vendor.shows
    assert not found.thoughts_sent
    assert (found.by_formatter > 0) is (vendor.prose_every > 0)
    assert found.quotes == found.quotes_verified == found.total


def test_every_answer_is_planted_among_the_chats() -> None:
    plants = [planted(number) for number in range(CHATS)]
    assert {(key, one[key]) for one in plants for key in one} == {(k, v) for k in PLANTS for v in PLANTS[k]}


@by_vendor
def test_a_debate_under_an_unknown_name_learns_what_the_model_takes(vendor: Vendor) -> None:
    found = swept(vendor, "unknown", planted_set(3), ["debate"])
    holds(vendor, "unknown", found, chats=3)


@pytest.mark.heavy
@by_naming
@by_vendor
def test_every_engine_reaches_the_planted_verdicts(vendor: Vendor, naming: Naming) -> None:
    holds(vendor, naming, swept(vendor, naming, planted_set(CHATS)), chats=CHATS)


def test_the_docs_show_what_was_learned() -> None:
    page = (settings.BASE_DIR / "docs/understand/judging.md").read_text(encoding="utf-8")
    for vendor in VENDORS:
        assert table_row(vendor, vendor.learned) in page.splitlines()
