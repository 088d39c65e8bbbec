from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('alignment', '0016_report_certified'),
    ]

    operations = [
        migrations.AddField(
            model_name='report',
            name='briefs',
            field=models.JSONField(blank=True, null=True),
        ),
    ]
