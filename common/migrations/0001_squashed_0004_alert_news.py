import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from common.tables import CreateModels


class Migration(migrations.Migration):
    replaces = [
        ('common', '0001_form_draft'),
        ('common', '0002_handing_over'),
        ('common', '0003_production_news'),
        ('common', '0004_alert_news'),
    ]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        CreateModels(
            models=[
                migrations.CreateModel(
                    name='FormDraft',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.CharField(max_length=500)),
                        ('values', models.JSONField()),
                        ('base', models.CharField(max_length=32)),
                        ('revision', models.PositiveIntegerField()),
                        ('updated_at', models.DateTimeField()),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('user', 'key'), name='one_draft_a_form')],
                    },
                ),
                migrations.CreateModel(
                    name='InboxChoice',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('by_mail', models.BooleanField(default=False)),
                        ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                ),
                migrations.CreateModel(
                    name='Comment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('subject', models.CharField(max_length=60)),
                        ('text', models.TextField()),
                        ('at', models.DateTimeField()),
                        ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'indexes': [models.Index(fields=['subject', 'id'], name='comment_thread')],
                    },
                ),
                migrations.CreateModel(
                    name='InboxItem',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('kind', models.CharField(choices=[('assigned', 'Assigned'), ('mentioned', 'Mentioned'), ('answered', 'Answered'), ('release', 'Release asked'), ('redesign', 'Redesign proposed'), ('wording', 'Confirm the wording'), ('finished', 'Job finished'), ('paused', 'Run paused'), ('nightly', 'Sample plan stopped'), ('stopped', 'Switched off'), ('alert', 'Alert')], max_length=10)),
                        ('subject', models.CharField(max_length=60)),
                        ('at', models.DateTimeField()),
                        ('read_at', models.DateTimeField(blank=True, null=True)),
                        ('mailed_at', models.DateTimeField(blank=True, null=True)),
                        ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'indexes': [models.Index(fields=['user', 'read_at', '-at'], name='inboxitem_listed')],
                        'constraints': [models.UniqueConstraint(fields=('user', 'kind', 'subject'), name='one_inbox_item')],
                    },
                ),
            ],
        ),
    ]
