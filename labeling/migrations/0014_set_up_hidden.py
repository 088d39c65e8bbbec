"""Whether leads have hidden the list of set-up steps on Home."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("labeling", "0013_invitations")]

    operations = [
        migrations.AddField(
            model_name="workspace", name="set_up_hidden", field=models.BooleanField(default=False)
        )
    ]
