from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("labeling", "0009_subjective_criteria_in_session_scores")]

    operations = [
        migrations.AddField("criterion", "evidence_on_fail", models.BooleanField(default=False)),
    ]
