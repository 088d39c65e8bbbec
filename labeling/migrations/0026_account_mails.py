import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("labeling", "0025_events_name_the_token")]
    operations = [
        migrations.CreateModel(
            name="AccountMail",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("invitation", "Invitation"),
                            ("reset", "Link for a new password"),
                            ("notice", "Notice"),
                        ],
                        max_length=10,
                    ),
                ),
                ("to", models.EmailField(max_length=320)),
                ("text", models.TextField(blank=True, default="")),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "Waiting"), ("failed", "Failed")], default="waiting", max_length=7
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("created_at", models.DateTimeField()),
                ("next_at", models.DateTimeField()),
                ("error", models.CharField(blank=True, default="", max_length=200)),
                (
                    "invitation",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="mails",
                        to="labeling.invitation",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["state", "next_at"], name="accountmail_due")],
            },
        ),
    ]
