from django.db import migrations

from evaluation.day_counts.core import Tally
from evaluation.day_counts.queries import COUNTS, NOT_COUNTED, SCORES, run_tally
from evaluation.models.day_counts import PLACE

ROWS_AT_ONCE = 1000


def count_earlier_runs(apps, schema_editor):
    """Count the verdicts of the runs that are stored already."""
    runs = apps.get_model("evaluation", "Run").objects.exclude(purpose__in=NOT_COUNTED).order_by("pk")
    for run_id in list(runs.values_list("pk", flat=True)):
        _store(apps, run_id, run_tally(run_id, models=apps))


def _store(apps, run_id: int, tally: Tally) -> None:
    place = [name if name in ("day", "version", "experiment", "variant") else f"{name}_id" for name in PLACE]
    count, score = (apps.get_model("evaluation", name) for name in ("DayCount", "DayScore"))
    fields = (*place, "criterion_id", *COUNTS)
    count.objects.bulk_create(
        [count(**dict(zip(fields, (run_id, *place, criterion, *numbers), strict=True)))
         for (place, criterion), numbers in tally.counts.items()],
        batch_size=ROWS_AT_ONCE,
    )
    fields = (*place, "part", "tenth", *SCORES)
    score.objects.bulk_create(
        [score(**dict(zip(fields, (run_id, *place, part, tenth, *numbers), strict=True)))
         for (place, part, tenth), numbers in tally.scores.items()],
        batch_size=ROWS_AT_ONCE,
    )


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0018_day_counts")]

    operations = [migrations.RunPython(count_earlier_runs, migrations.RunPython.noop)]
