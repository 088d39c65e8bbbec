from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("labeling", "0012_evidence_on_failing_answers")]

    operations = [
        migrations.AddField("workspace", "demo", models.BooleanField(default=False)),
    ]
