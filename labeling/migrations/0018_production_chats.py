import django.db.models.deletion
import django.db.models.functions.comparison
import labeling.models.people
from django.conf import settings
from django.db import migrations, models
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now


def note_sampled(apps, editor):
    """Chats of sets are sampled: their messages must not change."""
    members = apps.get_model("labeling", "ChatSetMember").objects.filter(chat=OuterRef("pk"))
    chats = apps.get_model("labeling", "Chat").objects.filter(Exists(members.order_by()))
    chats.update(sampled_at=Now())


class Migration(migrations.Migration):
    dependencies = [
        ("labeling", "0017_data_imports"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="user",
            options={
                "permissions": [
                    ("label_chats", "Can label the chats of own assignments"),
                    ("see_judge", "Can see runs, verdicts and alignment"),
                    ("edit_prompts", "Can write prompt versions"),
                    ("see_holdout", "Can see the chats of holdout splits"),
                    ("manage_labeling", "Can open labelling jobs and adjudicate"),
                    ("start_runs", "Can start runs"),
                    ("release_prompts", "Can release what the regression gate has tested"),
                    ("send_chats", "Can send chats"),
                ]
            },
        ),
        migrations.CreateModel(
            name="ChatSource",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                ("first_at", models.DateTimeField(auto_now_add=True)),
                ("last_at", models.DateTimeField(auto_now_add=True)),
                ("received", models.PositiveBigIntegerField(default=0)),
                ("created", models.PositiveBigIntegerField(default=0)),
                ("updated", models.PositiveBigIntegerField(default=0)),
                ("unchanged", models.PositiveBigIntegerField(default=0)),
                ("refused", models.PositiveBigIntegerField(default=0)),
                ("redactions", models.JSONField(blank=True, default=dict)),
            ],
        ),
        migrations.CreateModel(
            name="IngestRequest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=200)),
                ("digest", models.CharField(max_length=64)),
                ("answer", models.JSONField(blank=True, null=True)),
                ("started_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="IngestSettings",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("redaction_key", models.BinaryField(default=labeling.models.people.new_secret)),
                ("redact", models.JSONField(blank=True, default=list)),
                ("regions", models.JSONField(blank=True, default=list)),
                ("topic_rules", models.JSONField(blank=True, default=list)),
                ("retention_days", models.PositiveIntegerField(blank=True, null=True)),
                ("retention_done_at", models.DateTimeField(blank=True, null=True)),
                ("texts_deleted", models.PositiveBigIntegerField(default=0)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="chat",
            name="chat_external_id",
        ),
        migrations.AddField(
            model_name="chat",
            name="last_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="chat",
            name="sampled_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="chat",
            name="source",
            field=models.CharField(blank=True, default="", max_length=80),
        ),
        migrations.AddField(
            model_name="chat",
            name="text_deleted_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="chat",
            name="unit_id",
            field=models.CharField(blank=True, default="", max_length=200),
        ),
        migrations.AddField(
            model_name="dataimport",
            name="text_deleted_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name="chat",
            index=models.Index(
                django.db.models.functions.comparison.Coalesce("last_at", "created_at"),
                condition=models.Q(("text_deleted_at", None)),
                name="chat_text_age",
            ),
        ),
        migrations.AddConstraint(
            model_name="chat",
            constraint=models.UniqueConstraint(
                fields=("external_id", "source"), name="chat_source_external_id"
            ),
        ),
        migrations.AddConstraint(
            model_name="chatsource",
            constraint=models.UniqueConstraint(fields=("name",), name="chatsource_name"),
        ),
        migrations.AddField(
            model_name="ingestrequest",
            name="by",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddConstraint(
            model_name="ingestsettings",
            constraint=models.CheckConstraint(condition=models.Q(("id", 1)), name="ingestsettings_single"),
        ),
        migrations.AddConstraint(
            model_name="ingestsettings",
            constraint=models.CheckConstraint(
                condition=models.Q(("retention_days", None), ("retention_days__gte", 1), _connector="OR"),
                name="ingestsettings_days",
            ),
        ),
        migrations.AddIndex(
            model_name="ingestrequest",
            index=models.Index(fields=["started_at"], name="ingestrequest_started"),
        ),
        migrations.AddConstraint(
            model_name="ingestrequest",
            constraint=models.UniqueConstraint(fields=("by", "key"), name="ingestrequest_key"),
        ),
        migrations.RunPython(note_sampled, migrations.RunPython.noop),
    ]
