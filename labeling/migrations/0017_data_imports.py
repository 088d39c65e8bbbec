import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("labeling", "0016_demo_workspace"),
    ]

    operations = [
        migrations.CreateModel(
            name="DataImport",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("kind", models.CharField(max_length=20)),
                ("file_name", models.CharField(max_length=200)),
                ("size", models.PositiveBigIntegerField()),
                ("sha256", models.CharField(max_length=64)),
                ("source", models.JSONField(default=dict)),
                ("columns", models.JSONField(default=list)),
                ("mapping", models.JSONField(default=dict)),
                ("options", models.JSONField(default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("draft", "Columns to choose"),
                            ("checking", "Checking"),
                            ("checked", "Checked"),
                            ("importing", "Importing"),
                            ("done", "Imported"),
                            ("undone", "Undone"),
                        ],
                        default="draft",
                        max_length=9,
                    ),
                ),
                ("lines", models.PositiveIntegerField(default=0)),
                ("problem_count", models.PositiveIntegerField(default=0)),
                ("unreadable", models.BooleanField(default=False)),
                ("problems", models.JSONField(default=list)),
                ("result", models.JSONField(default=dict)),
                ("error", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("rung_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("undone_at", models.DateTimeField(blank=True, null=True)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "undone_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ImportedRow",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("model", models.CharField(max_length=60)),
                ("object_id", models.BigIntegerField()),
                ("before", models.JSONField(blank=True, null=True)),
                ("after", models.JSONField(blank=True, null=True)),
                (
                    "data_import",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rows",
                        to="labeling.dataimport",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SavedMapping",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=20)),
                ("signature", models.CharField(max_length=64)),
                ("mapping", models.JSONField(default=dict)),
                ("options", models.JSONField(default=dict)),
                ("used_at", models.DateTimeField(auto_now=True)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="dataimport",
            index=models.Index(
                condition=models.Q(("state__in", ["checking", "importing"])),
                fields=["state"],
                name="import_at_work",
            ),
        ),
        migrations.AddIndex(
            model_name="importedrow",
            index=models.Index(fields=["data_import", "model"], name="importedrow_model"),
        ),
        migrations.AddConstraint(
            model_name="savedmapping",
            constraint=models.UniqueConstraint(fields=("kind", "signature"), name="savedmapping_once"),
        ),
    ]
