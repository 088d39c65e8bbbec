"""Whether leads have hidden the list of set-up steps on Home."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("labeling", "0012_evidence_on_failing_answers")]

    operations = [
        migrations.AddField(
            model_name="workspace", name="set_up_hidden", field=models.BooleanField(default=False)
        )
    ]
