"""Labels that carried over from other criteria in reports: counted, named, and agreement not overstated."""

from random import Random
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from alignment.comparison.queries.scope import Scope
from alignment.rater_quality.queries.scope import QualityScope
from alignment.reports.core.cautions import carried_caution
from alignment.reports.core.terminal_table import report_table
from alignment.reports.queries.reports import alignment_report
from alignment.reports.worker import report_store
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import ChatSet
from labeling.models.labels import Consensus, Label
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared
from tests.factories.page_text import words_of
from tests.factories.redesigns import carried_out, criterion, give, redesign, successor
from tests.factories.rows import make_chat, make_criterion, make_rater, make_rubric, make_set

pytestmark = pytest.mark.django_db

REPLACE = redesign("replace", "polite", into=(successor("kind", "polite"),))


def entry(scope: Scope, key: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [row for row in alignment_report(scope)["criteria"] if row["key"] == key]
    return found


def test_a_report_counts_labels_that_carried_over_and_warns_of_them(compared: Compared) -> None:
    assert entry(Scope(compared.chat_set), "polite")["carried"] is None
    carried_out(REPLACE)
    give(compared.chat(1), criterion("kind"), make_rater("dora"), True)
    for against in ("consensus", "each-rater", "rater:dora"):
        found = entry(Scope(compared.chat_set, against=against), "kind")
        assert found["carried"] == {"labels": 120, "of": 121, "from": ["polite"]}
        assert found["cautions"] == [
            "120 of 121 labels were carried over from polite: raters answered that question, not this one"
        ]
    part = entry(Scope(compared.chat_set, split="holdout"), "kind")["carried"]
    assert part == {"labels": 30, "of": 30, "from": ["polite"]}


def test_every_page_of_reports_and_of_label_quality_shows_the_count(lead: Client, compared: Compared) -> None:
    carried_out(REPLACE)
    said, pk = "120 of 120 labels were carried over from polite", compared.chat_set.pk
    stored = report_store(Scope(compared.chat_set), share=True)
    assert stored is not None
    for name, arg in (("report_set", pk), ("report_stored", stored.pk)):
        assert said in words_of(lead.get(reverse(f"alignment:{name}", args=[arg])))
    assert f"kind: {said}." in report_table(alignment_report(Scope(compared.chat_set)))
    pages = lead.get(QualityScope(compared.chat_set).url("overview"))
    assert "120 labels carried over from retired criteria" in words_of(pages)
    assert lead.get(reverse("api_set_quality", args=[pk])).json()["carried"] == 120


def test_the_caution_names_every_origin_and_that_chats_were_excluded() -> None:
    assert carried_caution({}, labels=12) == ""
    assert carried_caution({"polite": 700, "brief": 638}, labels=1400) == (
        "1,338 of 1,400 labels were carried over from polite and brief: raters answered those questions,"
        " and chats on which their consensuses differ were excluded"
    )
    assert "from a, b and c:" in carried_caution({"a": 1, "b": 1, "c": 1}, labels=3)


def planted(chats: int) -> tuple[ChatSet, list[Criterion]]:
    """Two independent questions, labelled by three raters who are right on .975 of the chats."""
    draw, rubric = Random(1), make_rubric("polite")
    olds = [criterion("polite"), make_criterion("brief", rubric=rubric)]
    rows = [make_chat(f"chat-{n}") for n in range(chats)]
    raters = [make_rater(name) for name in ("anna", "ben", "cleo")]
    fixed = {"state": "submitted", "source": "import", "given_at": timezone.now()}
    labels = []
    for old in olds:
        version = old.versions.get()
        for chat in rows:
            truth = draw.random() < 0.5
            labels += [
                Label(
                    chat=chat,
                    criterion=old,
                    version=version,
                    rater=rater,
                    value=truth is (draw.random() < 0.975),
                    **fixed,
                )
                for rater in raters
            ]
    Label.objects.bulk_create(labels)
    consensus_refresh(criterion_ids=[old.pk for old in olds], chat_ids=[chat.pk for chat in rows])
    return make_set(rubric, *rows), olds


def test_a_merge_of_independent_questions_overstates_agreement_neither_in_labels_nor_in_reports() -> None:
    chat_set, olds = planted(300)
    before = [entry(Scope(chat_set), old.key)["human"]["percent_agreement"] for old in olds]
    states: list[dict[int, str]] = [
        dict(Consensus.objects.filter(criterion=old).values_list("chat", "state")) for old in olds
    ]
    alike = {chat: state for chat, state in states[0].items() if states[1][chat] == state}
    done = carried_out(redesign("merge", "polite", "brief", into=(successor("kind", "polite", "brief"),)))
    after = dict(Consensus.objects.filter(criterion__key="kind").values_list("chat", "state"))
    assert after == alike
    assert done.carried[0].chats.excluded == 300 - len(alike)
    found = entry(Scope(chat_set), "kind")
    assert found["carried"] == {"labels": 3 * len(alike), "of": 3 * len(alike), "from": ["polite", "brief"]}
    assert found["human"]["overlap"] == len(alike)
    assert found["human"]["percent_agreement"] == pytest.approx(sum(before) / 2, abs=0.02)
    assert max(before) < 0.97
