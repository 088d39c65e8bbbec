"""Figures, chips and plots say the same thing the same way on every page."""

from datetime import UTC, datetime

import pytest
from django.template import Context, Template


def render(source: str, **context: object) -> str:
    return " ".join(Template("{% load display %}" + source).render(Context(context)).split())


SHOWN = [(0.8349, "0.83"), (-0.1, "−0.10"), (-0.001, "0.00"), (1, "1.00"), (0, "0.00")]


@pytest.mark.parametrize(("value", "shown"), SHOWN)
def test_a_number_has_two_decimals_and_a_true_minus(value, shown):
    assert render("{{ value|number }}", value=value) == shown


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(0.5, 0.75, "0.50–0.75"), (-0.001, 0.2, "0.00–0.20"), (-0.15, -0.05, "−0.15 to −0.05")],
)
def test_an_interval_below_zero_is_read_without_counting_dashes(low, high, shown):
    assert render("{{ one|interval }}", one={"value": 0.1, "low": low, "high": high}) == shown


def test_a_plot_says_the_same_figures_to_a_screen_reader():
    one = {"mcc": {"value": -0.1, "low": -0.15, "high": -0.001}}
    html = render("{% interval_plot one 'mcc' %}", one=one)
    assert 'aria-label="MCC −0.10 (−0.15 to 0.00)"' in html


def test_an_undefined_number_is_a_dash_that_says_why():
    html = render("{{ value|number:'no chat' }}", value=None)
    assert html == '<span class="dim" title="no chat">–</span>'


def test_a_statistic_names_the_reason_of_its_dash():
    criterion = {"human": {"ceiling": None}, "undefined": {"human.ceiling": "no overlap"}}
    assert 'title="no overlap"' in render("{% stat c 'human.ceiling' %}", c=criterion)


def test_a_statistic_shows_its_flag_before_its_interval():
    criterion = {"kappa": {"value": 0.0, "low": None, "high": None, "flag": "one constant rater"}}
    assert 'title="one constant rater"' in render("{% stat c 'kappa' %}", c=criterion)


def test_zero_and_unknown_counts_look_different():
    assert render("{{ n|count }}", n=0) == "0"
    assert "–" in render("{{ n|count }}", n=None)
    assert render("{{ n|count }}", n=184500) == "184,500"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, '<span class="p">True</span>'),
        (False, '<span class="p">False</span>'),
        (None, '<span class="p">Not applicable</span>'),
        ("unresolved", '<span class="tag">Unresolved</span>'),
        ("", '<span class="tag">Unlabelled</span>'),
    ],
)
def test_a_human_answer_is_a_chip(value, shown):
    assert render("{% human_chip value %}", value=value) == shown


@pytest.mark.parametrize(
    ("verdict", "shown"),
    [
        ({"state": "read", "value": False}, '<span class="j">False</span>'),
        ({"state": "read", "value": None}, '<span class="j">Not applicable</span>'),
        ({"state": "unparsed", "value": None}, '<span class="tag">Unparsed</span>'),
        (None, '<span class="tag">No verdict</span>'),
    ],
)
def test_a_missing_verdict_has_a_name_and_no_value(verdict, shown):
    assert render("{% verdict_chip verdict %}", verdict=verdict) == shown


@pytest.mark.parametrize(
    ("value", "passes_when", "shown"),
    [
        (True, True, "Pass"),
        (True, False, "Fail"),
        (False, False, "Pass"),
        (False, True, "Fail"),
        (None, True, "–"),
    ],
)
def test_pass_and_fail_go_through_passes_when(value, passes_when, shown):
    assert shown in render("{% outcome value passes_when %}", value=value, passes_when=passes_when)


def test_a_subjective_criterion_is_directional_only_whatever_its_status():
    assert "Directional only" in render("{% status_chip 'aligned' 'subjective' %}")


def test_lanes_without_a_judge_show_raters_alone():
    human = {
        "percent_agreement": 0.9,
        "gwet_ac1": 0.8,
        "krippendorff_alpha": {"value": 0.7, "low": 0.6, "high": 0.8},
    }
    html = render("{% lanes c judged %}", c={"human": human}, judged=None)
    assert "Agree 0.90, AC1 0.80, Alpha 0.70 (0.60 to 0.80)" in html
    assert "judge" not in html


def test_an_undefined_statistic_draws_no_mark():
    undefined = {"value": None, "low": None, "high": None}
    html = render("{% interval_plot c 'tnr' %}", c={"tnr": undefined})
    assert "undefined" in html
    assert "<use" not in html


def test_a_value_below_the_axis_is_drawn_as_an_arrow_at_its_edge():
    html = render("{% interval_plot c 'kappa' %}", c={"kappa": {"value": -0.2, "low": -0.4, "high": 0.1}})
    assert 'href="#below" x="0.00%"' in html
    assert 'x2="10.00%"' in html


def test_a_tool_turn_is_folded_to_one_line():
    message = {"n": 2, "role": "tool", "content": "refund:\n<b>limit</b> exceeded", "created_at": None}
    html = render("{% turn message %}", message=message)
    assert "<details" in html
    assert "refund: &lt;b&gt;limit&lt;/b&gt; exceeded" in html


def test_a_blank_message_is_said_to_be_empty():
    message = {"n": 1, "role": "user", "content": " \n", "created_at": None}
    assert "Empty message" in render("{% turn message %}", message=message)


def test_cited_and_picked_turns_are_marked():
    message = {"n": 3, "role": "user", "content": "hi", "created_at": None}
    source = "{% turn message steps|cited_turns labels|picked_turns %}"
    html = render(source, message=message, steps=[{"text": "m1"}, {"text": "m3"}], labels=[{"turns": [3]}])
    assert 'class="turn cust picked cited" id="m3"' in html


def test_a_time_is_read_from_iso_text_and_other_text_is_kept():
    assert render("{{ t|moment }}", t="2026-11-16T14:02:00+00:00") == "16 Nov 2026, 14:02"
    assert render("{{ t|moment }}", t=datetime(2026, 11, 16, 14, 2, tzinfo=UTC)) == "16 Nov 2026, 14:02"
    assert render("{{ t|moment }}", t="yesterday") == "yesterday"


def test_a_bar_is_true_to_scale_and_never_overflows():
    assert 'width="25.00%"' in render("{% progress 1 4 %}")
    assert 'width="100.00%"' in render("{% progress 9 4 mine=True %}")
    assert 'width="0.00%"' in render("{% progress 0 0 %}")
