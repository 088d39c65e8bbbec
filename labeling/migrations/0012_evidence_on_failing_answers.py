from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("labeling", "0011_text_meaning")]

    operations = [
        migrations.AddField("criterion", "evidence_on_fail", models.BooleanField(default=False)),
    ]
