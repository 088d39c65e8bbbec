from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("labeling", "0015_chat_words")]

    operations = [
        migrations.AddField("workspace", "demo", models.BooleanField(default=False)),
    ]
