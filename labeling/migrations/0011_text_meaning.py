from django.conf import settings
from django.db import migrations, models
from django.db.models import F

WORDING = [
    ("asked", "Wording only: a lead has to confirm it"),
    ("confirmed", "Wording only"),
    ("refused", "New meaning"),
]


def mean_what_they_ask(apps, schema_editor):
    """So far every version meant what it asked."""
    apps.get_model("labeling", "CriterionVersion").objects.update(meaning=F("content_hash"))


def wording():
    return models.CharField(blank=True, choices=WORDING, default="", max_length=9)


def lead():
    return models.ForeignKey(
        blank=True,
        null=True,
        on_delete=models.deletion.PROTECT,
        related_name="+",
        to=settings.AUTH_USER_MODEL,
    )


class Migration(migrations.Migration):
    dependencies = [("labeling", "0010_handing_over")]

    operations = [
        migrations.AddField("criterionversion", "wording", wording()),
        migrations.AddField("criterionversion", "wording_by", lead()),
        migrations.AddField("rubricguideline", "wording", wording()),
        migrations.AddField("rubricguideline", "wording_by", lead()),
        migrations.AddField(
            "criterionversion",
            "guideline_version",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=models.deletion.PROTECT,
                related_name="+",
                to="labeling.rubricguideline",
            ),
        ),
        migrations.AddField(
            "criterionversion", "meaning", models.CharField(default="", max_length=64), preserve_default=False
        ),
        migrations.RunPython(mean_what_they_ask, migrations.RunPython.noop),
    ]
