"""An alignment report as a table for the terminal."""

from collections.abc import Mapping
from typing import Any

STATUS = {
    "aligned": "aligned",
    "not_aligned": "not aligned",
    "not_enough_labels": "not enough labels",
}
NAME = 30


def report_table(report: Mapping[str, Any]) -> str:
    """
    A report (the JSON of `alignment_report`) as lines of text; undefined values are "–".

    `humans` is the human ceiling: a rater against the majority of the others, balanced accuracy.
    """
    judge, criteria = report["judge"], report["criteria"]
    split = f", split {report['split']}" if report["split"] else ""
    who = f"{judge['name']} against {report['against']}" if judge else "people alone"
    row = _judged if judge else _people
    head = HEAD_JUDGED if judge else HEAD_PEOPLE
    lines = [f"{report['set'] or '–'}{split}: {report['chats']} chats, {who}", head, "-" * len(head)]
    lines += [f"{criterion['key'][:NAME]:<{NAME}} {row(criterion)}" for criterion in criteria]
    lines += [f"{row['key']}: {row['questions']['words']}." for row in criteria if row["questions"]["words"]]
    few = sum(criterion["status"] == "not_enough_labels" for criterion in criteria)
    if few:
        lines.append(
            f"{few} of {len(criteria)} criteria have too few human True or False answers: "
            "nothing can be called aligned on them."
        )
    return "\n".join(lines)


HEAD_JUDGED = (
    f"{'criterion':<{NAME}} {'n':>5} {'True':>5} {'TPR':>5} {'TNR':>5} {'bal. accuracy':>18} "
    f"{'AC1':>5} {'kappa':>6} {'humans':>6}  status"
)
HEAD_PEOPLE = (
    f"{'criterion':<{NAME}} {'n':>5} {'True':>5} {'raters':>6} {'overlap':>7} {'agree':>5} "
    f"{'alpha':>18} {'AC1':>5} {'humans':>6}"
)


def _judged(criterion: Mapping[str, Any]) -> str:
    return (
        f"{criterion['n']:>5} {_number(criterion['prevalence']):>5} {_number(criterion['tpr']):>5} "
        f"{_number(criterion['tnr']):>5} {_interval(criterion['balanced_accuracy']):>18} "
        f"{_number(criterion['gwet_ac1']):>5} {_number(criterion['kappa']):>6} "
        f"{_number(criterion['human']['ceiling']):>6}  {STATUS.get(criterion['status'], '–')}"
    )


def _people(criterion: Mapping[str, Any]) -> str:
    human = criterion["human"]
    return (
        f"{criterion['n']:>5} {_number(criterion['prevalence']):>5} {human['raters']:>6} "
        f"{human['overlap']:>7} {_number(human['percent_agreement']):>5} "
        f"{_interval(human['krippendorff_alpha']):>18} "
        f"{_number(human['gwet_ac1']):>5} {_number(human['ceiling']):>6}"
    )


def _number(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value["value"]
    return "–" if value is None else f"{value:.2f}"


def _interval(value: Mapping[str, Any] | None) -> str:
    if value is None or value["value"] is None:
        return "–"
    if value["low"] is None:
        return f"{value['value']:.2f}"
    return f"{value['value']:.2f} ({value['low']:.2f}–{value['high']:.2f})"
