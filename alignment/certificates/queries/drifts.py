"""Drifts of judges in production that end their certificates."""

from collections.abc import Collection

from alignment.models.alerts import Alert
from alignment.models.certificates import Certificate
from evaluation.models.judges import Judge, JudgePrompt


def judge_drifts(rows: Collection[Certificate]) -> dict[int, list[str]]:
    """Return by certificate which of its criteria the judge came to answer differently since its issue.

    Alerts that name the judge count, also after they have ended: the judge has to be measured again. An alert
    of the bot, or one not yet clear, says nothing against the judge. At most two queries.
    """
    found: dict[int, list[str]] = {row.pk: [] for row in rows}
    if not rows:
        return found
    named = Alert.objects.filter(
        cause=Alert.Cause.JUDGE,
        judge__isnull=False,
        named_at__gt=min(row.issued_at for row in rows),
    )
    alerts = list(named.select_related("judge", "criterion").order_by("pk"))
    if not alerts:
        return found
    prompts = _prompts({row.judge_id for row in rows} | {one.judge_id for one in alerts if one.judge_id})
    for row in rows:
        keys = [entry["key"] for entry in row.body["criteria"]]
        for alert in alerts:
            if alert.named_at and alert.named_at > row.issued_at:
                found[row.pk] += _reasons(row.judge, keys, alert, prompts)
    return found


def _prompts(judges: Collection[int]) -> dict[tuple[int, str], int]:
    """Prompt version by judge and criterion key."""
    rows = JudgePrompt.objects.filter(judge__in=judges)
    return {
        (judge, key): version
        for judge, key, version in rows.values_list("judge", "criterion__key", "prompt_version")
    }


def _reasons(
    judge: Judge, keys: Collection[str], alert: Alert, prompts: dict[tuple[int, str], int]
) -> list[str]:
    other = alert.judge
    if other is None or (judge.model, judge.engine) != (other.model, other.engine):
        return []
    asked = [alert.criterion.key] if alert.criterion else keys
    same = [
        key
        for key in asked
        if key in keys and prompts.get((judge.pk, key)) == prompts.get((other.pk, key), 0)
    ]
    if not same:
        return []
    on = f"{alert.named_at:%Y-%m-%d}"
    if alert.criterion is None:
        return [f"the judge drifted in production, named on {on}"]
    return [f"{alert.criterion.key}: the judge drifted in production, named on {on}"]
