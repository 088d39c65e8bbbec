"""An alignment report as a table for the terminal."""

from collections.abc import Mapping
from typing import Any

STATUS = {
    "aligned": "aligned",
    "not_aligned": "not aligned",
    "not_enough_labels": "not enough labels",
    None: "–",
}
HEAD = f"{'criterion':<32} {'n':>5} {'True':>5} {'TPR':>5} {'TNR':>5} {'bal. accuracy':>19} {'AC1':>5} {'kappa':>6} {'humans':>7}  status"


def report_table(report: Mapping[str, Any]) -> str:
    """
    A report (the JSON of `alignment_report`) as lines of text; undefined values are "–".

    `humans` is the human ceiling: a rater against the majority of the others, balanced accuracy.
    """
    judge = report["judge"]
    who = f"{judge['name']} against {report['against']}" if judge else "people alone"
    head = f"{report['set'] or '–'}{', split ' + report['split'] if report['split'] else ''}: {report['chats']} chats, {who}"
    lines = [head, HEAD, "-" * len(HEAD)]
    lines += [_row(criterion) for criterion in report["criteria"]]
    few = sum(criterion["status"] == "not_enough_labels" for criterion in report["criteria"])
    if few:
        lines.append(
            f"{few} of {len(report['criteria'])} criteria have fewer than 30 human True or 30 human False answers:"
        )
        lines.append("nothing can be called aligned on so few labels.")
    return "\n".join(lines)


def _row(criterion: Mapping[str, Any]) -> str:
    name = criterion["key"][:32]
    return (
        f"{name:<32} {criterion['n'] if criterion['n'] is not None else '–':>5} {_number(criterion.get('prevalence')):>5} "
        f"{_number(criterion['tpr']):>5} {_number(criterion['tnr']):>5} {_interval(criterion['balanced_accuracy']):>19} "
        f"{_number(criterion['gwet_ac1']):>5} {_number(criterion['kappa']):>6} {_number(criterion['human'].get('ceiling')):>7}  "
        f"{STATUS[criterion['status']]}"
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
