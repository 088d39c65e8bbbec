from django.db import migrations, models
from django.db.models import Count, Q

BATCH = 500


def count_ended_runs(apps, schema_editor):
    """Count the verdicts of the runs that have ended."""
    runs = apps.get_model("evaluation", "Run")
    verdicts = apps.get_model("evaluation", "Verdict").objects
    ended = list(runs.objects.filter(finished_at__isnull=False).order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(ended), BATCH):
        some = ended[start : start + BATCH]
        counts = (
            verdicts.filter(run__in=some)
            .order_by()
            .values("run")
            .annotate(
                all=Count("id"),
                unparsed=Count("id", filter=Q(state="unparsed")),
                no_verdict=Count("id", filter=~Q(state="read")),
            )
        )
        found = {row.pop("run"): row for row in counts}
        for pk in some:
            none = {"all": 0, "unparsed": 0, "no_verdict": 0}
            runs.objects.filter(pk=pk).update(verdict_counts=found.get(pk, none))


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0013_worker_heartbeat")]

    operations = [
        migrations.AddField("run", "verdict_counts", models.JSONField(blank=True, null=True)),
        migrations.RunPython(count_ended_runs, migrations.RunPython.noop),
    ]
