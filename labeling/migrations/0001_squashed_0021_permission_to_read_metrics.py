import django.contrib.auth.models
import django.contrib.auth.validators
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.comparison
import django.utils.timezone
import labeling.models.people
import uuid
from django.conf import settings
from django.db import migrations, models

from common.search.index import create_index, drop_index
from common.tables import CreateModels

TABLE = {"table": "labeling_chatwords", "key": "chat_id"}


def create(apps, editor):
    create_index(editor, **TABLE)


def drop(apps, editor):
    drop_index(editor, **TABLE)


class Migration(migrations.Migration):
    replaces = [
        ('labeling', '0001_chats_rubric_labels'),
        ('labeling', '0002_guidelines_gold_calibration_notes_tokens'),
        ('labeling', '0003_assignment_taken_at'),
        ('labeling', '0004_lost_leases_keep_their_owner'),
        ('labeling', '0005_permission_to_release_prompts'),
        ('labeling', '0006_redesigned_criteria'),
        ('labeling', '0007_answers_carried_from'),
        ('labeling', '0008_chat_cluster'),
        ('labeling', '0009_subjective_criteria_in_session_scores'),
        ('labeling', '0010_handing_over'),
        ('labeling', '0011_text_meaning'),
        ('labeling', '0012_evidence_on_failing_answers'),
        ('labeling', '0013_invitations'),
        ('labeling', '0014_set_up_hidden'),
        ('labeling', '0015_chat_words'),
        ('labeling', '0016_demo_workspace'),
        ('labeling', '0017_data_imports'),
        ('labeling', '0018_production_chats'),
        ('labeling', '0019_sample_plans'),
        ('labeling', '0020_what_gave_the_topic'),
        ('labeling', '0021_permission_to_read_metrics'),
    ]

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        CreateModels(
            models=[
                migrations.CreateModel(
                    name='Chat',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('external_id', models.CharField(max_length=200)),
                        ('started_at', models.DateTimeField(blank=True, null=True)),
                        ('messages', models.JSONField()),
                        ('content_hash', models.CharField(max_length=64)),
                        ('near_hash', models.BigIntegerField(blank=True, null=True)),
                        ('message_count', models.PositiveIntegerField()),
                        ('char_count', models.PositiveIntegerField()),
                        ('experiment', models.CharField(blank=True, default='', max_length=80)),
                        ('variant', models.CharField(blank=True, default='', max_length=80)),
                        ('metadata', models.JSONField(default=dict)),
                        ('redactions', models.JSONField(default=list)),
                        ('origin', models.CharField(choices=[('import', 'Imported'), ('api', 'API'), ('demo', 'Written for the demo')], default='import', max_length=10)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('topic', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='chats', to='labeling.topic')),
                        ('cluster', models.CharField(blank=True, default='', max_length=200)),
                        ('last_at', models.DateTimeField(blank=True, null=True)),
                        ('sampled_at', models.DateTimeField(blank=True, null=True)),
                        ('source', models.CharField(blank=True, default='', max_length=80)),
                        ('text_deleted_at', models.DateTimeField(blank=True, null=True)),
                        ('unit_id', models.CharField(blank=True, default='', max_length=200)),
                        ('topic_by', models.CharField(blank=True, choices=[('', 'Given with the chat'), ('rule', 'Topic rule'), ('none', 'Nobody yet'), ('prompt', 'Topic prompt')], db_default='', default='', max_length=6)),
                    ],
                    options={
                        'indexes': [models.Index(fields=['content_hash'], name='chat_content_hash'), models.Index(fields=['topic', 'started_at'], name='chat_topic_started'), models.Index(condition=models.Q(('experiment', ''), _negated=True), fields=['experiment', 'variant', 'started_at'], name='chat_experiment'), models.Index(condition=models.Q(('cluster', ''), _negated=True), fields=['cluster'], name='chat_cluster'), models.Index(django.db.models.functions.comparison.Coalesce('last_at', 'created_at'), condition=models.Q(('text_deleted_at', None)), name='chat_text_age'), models.Index(condition=models.Q(('sampled_at', None)), fields=['created_at', 'topic', 'id'], name='chat_arrival'), models.Index(condition=models.Q(('sampled_at', None), ('text_deleted_at', None), ('topic_by', 'none')), fields=['created_at'], name='chat_topic_open')],
                        'constraints': [models.UniqueConstraint(fields=('external_id', 'source'), name='chat_source_external_id')],
                    },
                ),
                migrations.CreateModel(
                    name='Criterion',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.CharField(max_length=64, validators=[django.core.validators.RegexValidator('^[a-z][a-z0-9_]*$')])),
                        ('tier', models.CharField(choices=[('simple', 'simple'), ('context', 'context'), ('subjective', 'subjective')], max_length=10)),
                        ('critical', models.BooleanField(default=False)),
                        ('position', models.PositiveIntegerField(default=0)),
                        ('state', models.CharField(choices=[('active', 'Active'), ('retired', 'Retired')], default='active', max_length=8)),
                        ('articles', models.CharField(choices=[('all', 'Every article'), ('listed', 'Listed articles')], default='listed', max_length=6)),
                        ('labels_seq', models.BigIntegerField(default=0)),
                        ('dimension', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='criteria', to='labeling.dimension')),
                        ('rubric', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='criteria', to='labeling.rubric')),
                        ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('evidence_on_fail', models.BooleanField(default=False)),
                    ],
                    options={
                        'ordering': ['position', 'id'],
                        'constraints': [models.UniqueConstraint(fields=('key',), name='criterion_key')],
                    },
                ),
                migrations.CreateModel(
                    name='User',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('password', models.CharField(max_length=128, verbose_name='password')),
                        ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                        ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                        ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator()], verbose_name='username')),
                        ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                        ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                        ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                        ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                        ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                        ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                        ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                        ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
                        ('last_seen_at', models.DateTimeField(blank=True, editable=False, null=True)),
                    ],
                    options={
                        'permissions': [('label_chats', 'Can label the chats of own assignments'), ('see_judge', 'Can see runs, verdicts and alignment'), ('edit_prompts', 'Can write prompt versions'), ('see_holdout', 'Can see the chats of holdout splits'), ('manage_labeling', 'Can open labelling jobs and adjudicate'), ('start_runs', 'Can start runs'), ('release_prompts', 'Can release what the regression gate has tested'), ('send_chats', 'Can send chats'), ('read_metrics', 'Can read metrics of experiments')],
                    },
                    managers=[
                        ('objects', django.contrib.auth.models.UserManager()),
                    ],
                ),
                migrations.CreateModel(
                    name='Assignment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('slot', models.PositiveSmallIntegerField()),
                        ('position', models.PositiveIntegerField()),
                        ('kind', models.CharField(choices=[('normal', 'Normal'), ('gold', 'Gold'), ('calibration', 'Calibration')], default='normal', max_length=12)),
                        ('state', models.CharField(choices=[('open', 'Open'), ('leased', 'In work'), ('submitted', 'Submitted'), ('skipped', 'Skipped')], default='open', max_length=10)),
                        ('lease_token', models.UUIDField(blank=True, null=True)),
                        ('lease_expires_at', models.DateTimeField(blank=True, null=True)),
                        ('submitted_at', models.DateTimeField(blank=True, null=True)),
                        ('skip_reason', models.CharField(blank=True, default='', max_length=200)),
                        ('active_ms', models.PositiveIntegerField(default=0)),
                        ('chat', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.chat')),
                        ('job', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='labeling.labelingjob')),
                        ('rater', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.rater')),
                        ('revealed_at', models.DateTimeField(blank=True, null=True)),
                        ('guideline', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.rubricguideline')),
                        ('taken_at', models.DateTimeField(blank=True, null=True)),
                    ],
                    options={
                        'indexes': [models.Index(condition=models.Q(('state', 'open')), fields=['job', 'position'], name='assignment_open'), models.Index(fields=['rater', 'state'], name='assignment_rater_state'), models.Index(condition=models.Q(('state', 'leased')), fields=['lease_expires_at'], name='assignment_expiry'), models.Index(fields=['chat', 'rater'], name='assignment_chat_rater')],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'skipped'), _negated=True), fields=('job', 'chat', 'slot'), name='assignment_slot'), models.CheckConstraint(condition=models.Q(models.Q(('lease_expires_at__isnull', False), ('lease_token__isnull', False), ('state', 'leased')), models.Q(models.Q(('state', 'leased'), _negated=True), ('lease_expires_at__isnull', True), ('lease_token__isnull', True)), _connector='OR'), name='lease_whole'), models.CheckConstraint(condition=models.Q(('slot__gte', 1)), name='assignment_slot_positive'), models.UniqueConstraint(condition=models.Q(('rater__isnull', False), models.Q(('skip_reason', 'lease expired'), ('state', 'skipped'), _negated=True)), fields=('job', 'chat', 'rater'), name='assignment_rater')],
                    },
                ),
                migrations.CreateModel(
                    name='ChatSet',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120)),
                        ('kind', models.CharField(choices=[('curated', 'Curated'), ('sample', 'Sample'), ('gold', 'Gold'), ('calibration', 'Calibration')], default='curated', max_length=12)),
                        ('sampling', models.JSONField(blank=True, null=True)),
                        ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('rubric', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='chat_sets', to='labeling.rubric')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('name',), name='chatset_name')],
                    },
                ),
                migrations.CreateModel(
                    name='CriterionVersion',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('number', models.PositiveIntegerField()),
                        ('question', models.TextField()),
                        ('definition', models.TextField()),
                        ('guideline', models.TextField(blank=True, default='')),
                        ('true_example', models.TextField(blank=True, default='')),
                        ('false_example', models.TextField(blank=True, default='')),
                        ('passes_when', models.BooleanField(default=True)),
                        ('allow_na', models.BooleanField(default=False)),
                        ('content_hash', models.CharField(max_length=64)),
                        ('reason', models.TextField(blank=True, default='')),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('criterion', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='labeling.criterion')),
                        ('wording', models.CharField(blank=True, choices=[('asked', 'Wording only: a lead has to confirm it'), ('confirmed', 'Wording only'), ('refused', 'New meaning')], default='', max_length=9)),
                        ('wording_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('guideline_version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.rubricguideline')),
                        ('meaning', models.CharField(max_length=64)),
                    ],
                    options={
                        'ordering': ['number'],
                        'constraints': [models.UniqueConstraint(fields=('criterion', 'number'), name='criterionversion_number')],
                    },
                ),
                migrations.CreateModel(
                    name='Dimension',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.CharField(max_length=64)),
                        ('name', models.CharField(max_length=120)),
                        ('position', models.PositiveIntegerField(default=0)),
                    ],
                    options={
                        'ordering': ['position', 'id'],
                        'constraints': [models.UniqueConstraint(fields=('key',), name='dimension_key')],
                    },
                ),
                migrations.CreateModel(
                    name='Label',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('value', models.BooleanField(blank=True, null=True)),
                        ('rationale', models.TextField(blank=True, default='')),
                        ('evidence', models.JSONField(default=list)),
                        ('state', models.CharField(choices=[('draft', 'Draft'), ('submitted', 'Submitted'), ('cleared', 'Withdrawn draft')], default='draft', max_length=9)),
                        ('post_reveal', models.BooleanField(default=False)),
                        ('revision', models.PositiveIntegerField(default=1)),
                        ('active_ms', models.PositiveIntegerField(default=0)),
                        ('source', models.CharField(choices=[('screen', 'Screen'), ('import', 'Import'), ('api', 'API'), ('demo', 'Written for the demo'), ('carried', 'Carried over from another criterion')], default='screen', max_length=7)),
                        ('given_at', models.DateTimeField()),
                        ('assignment', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.assignment')),
                        ('chat', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.chat')),
                        ('criterion', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.criterion')),
                        ('version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.criterionversion')),
                        ('rater', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.rater')),
                        ('carried_from', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.criterion')),
                    ],
                    options={
                        'indexes': [models.Index(condition=models.Q(('post_reveal', False), ('state', 'submitted')), fields=['criterion', 'chat'], name='label_criterion_chat'), models.Index(fields=['rater', 'given_at'], name='label_rater')],
                        'constraints': [models.UniqueConstraint(fields=('chat', 'criterion', 'rater'), name='label_once'), models.CheckConstraint(condition=models.Q(('carried_from__isnull', True), ('source', 'carried'), _connector='OR'), name='label_carried_from')],
                    },
                ),
                migrations.CreateModel(
                    name='LabelingJob',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120)),
                        ('overlap', models.PositiveSmallIntegerField(default=1)),
                        ('order', models.CharField(choices=[('topic', 'By topic'), ('random', 'Random')], default='topic', max_length=6)),
                        ('seed', models.PositiveIntegerField(default=0)),
                        ('due_at', models.DateTimeField(blank=True, null=True)),
                        ('state', models.CharField(choices=[('waiting', 'Waits for its calibration round'), ('open', 'Open'), ('closed', 'Closed')], default='open', max_length=7)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('chat_set', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.chatset')),
                        ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('criteria', models.ManyToManyField(related_name='+', to='labeling.criterion')),
                        ('raters', models.ManyToManyField(related_name='+', to='labeling.rater')),
                        ('calibration', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='started_after', to='labeling.labelingjob')),
                        ('gold_rate', models.FloatField(default=0)),
                        ('gold_set', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.chatset')),
                        ('group', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='auth.group')),
                        ('overlap_share', models.FloatField(blank=True, null=True)),
                        ('guideline', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.rubricguideline')),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('overlap__gte', 1)), name='job_overlap'), models.CheckConstraint(condition=models.Q(('overlap_share__isnull', True), models.Q(('overlap_share__gt', 0), ('overlap_share__lte', 1)), _connector='OR'), name='job_overlap_share'), models.CheckConstraint(condition=models.Q(('gold_rate__gte', 0), ('gold_rate__lt', 1)), name='job_gold_rate')],
                    },
                ),
                migrations.CreateModel(
                    name='LabelRevision',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('number', models.PositiveIntegerField()),
                        ('client_id', models.UUIDField()),
                        ('value', models.BooleanField(blank=True, null=True)),
                        ('rationale', models.TextField(blank=True, default='')),
                        ('evidence', models.JSONField(default=list)),
                        ('state', models.CharField(choices=[('draft', 'Draft'), ('submitted', 'Submitted'), ('cleared', 'Withdrawn draft')], max_length=9)),
                        ('post_reveal', models.BooleanField(default=False)),
                        ('created_at', models.DateTimeField()),
                        ('label', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.label')),
                        ('version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.criterionversion')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('label', 'number'), name='labelrevision_number'), models.UniqueConstraint(fields=('label', 'client_id'), name='labelrevision_client')],
                    },
                ),
                migrations.CreateModel(
                    name='Rater',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120)),
                        ('kind', models.CharField(choices=[('person', 'Person'), ('automatic', 'Automatic'), ('demo', 'Written for the demo')], default='person', max_length=10)),
                        ('user', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='rater', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('name',), name='rater_name')],
                    },
                ),
                migrations.CreateModel(
                    name='Rubric',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('name',), name='rubric_name')],
                    },
                ),
                migrations.CreateModel(
                    name='Topic',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.CharField(max_length=200)),
                        ('name', models.CharField(max_length=200)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('key',), name='topic_key')],
                    },
                ),
                migrations.CreateModel(
                    name='Workspace',
                    fields=[
                        ('id', models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                        ('fence_secret', models.BinaryField(default=labeling.models.people.new_secret)),
                        ('comment_required', models.BooleanField(default=False)),
                        ('evidence_on_false', models.BooleanField(default=False)),
                        ('reveal_after_submit', models.BooleanField(default=False)),
                        ('subjective_in_session_score', models.BooleanField(default=False)),
                        ('set_up_hidden', models.BooleanField(default=False)),
                        ('demo', models.BooleanField(default=False)),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='workspace_single')],
                    },
                ),
                migrations.CreateModel(
                    name='ChatSetMember',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('split', models.CharField(choices=[('train', 'train'), ('dev', 'dev'), ('holdout', 'holdout')], default='dev', max_length=8)),
                        ('position', models.PositiveIntegerField()),
                        ('stratum', models.CharField(blank=True, default='', max_length=200)),
                        ('inclusion_probability', models.FloatField(blank=True, null=True)),
                        ('chat', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to='labeling.chat')),
                        ('chat_set', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='members', to='labeling.chatset')),
                    ],
                    options={
                        'ordering': ['position'],
                        'indexes': [models.Index(fields=['chat', 'split'], name='member_chat')],
                        'constraints': [models.UniqueConstraint(fields=('chat_set', 'chat'), name='member_once'), models.UniqueConstraint(fields=('chat_set', 'position'), name='member_position'), models.CheckConstraint(condition=models.Q(('inclusion_probability__isnull', True), models.Q(('inclusion_probability__gt', 0), ('inclusion_probability__lte', 1)), _connector='OR'), name='member_probability')],
                    },
                ),
                migrations.CreateModel(
                    name='Consensus',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('state', models.CharField(choices=[('true', 'True'), ('false', 'False'), ('na', 'Not applicable'), ('unresolved', 'Unresolved')], max_length=10)),
                        ('by', models.CharField(choices=[('majority', 'Majority'), ('adjudication', 'Adjudication')], default='majority', max_length=12)),
                        ('n_true', models.PositiveIntegerField(default=0)),
                        ('n_false', models.PositiveIntegerField(default=0)),
                        ('n_na', models.PositiveIntegerField(default=0)),
                        ('chat', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.chat')),
                        ('criterion', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.criterion')),
                    ],
                    options={
                        'indexes': [models.Index(fields=['criterion', 'chat', 'state'], name='consensus_value')],
                        'constraints': [models.UniqueConstraint(fields=('chat', 'criterion'), name='consensus_once')],
                    },
                ),
                migrations.CreateModel(
                    name='Adjudication',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('value', models.BooleanField(blank=True, null=True)),
                        ('reason', models.TextField()),
                        ('by_name', models.CharField(max_length=120)),
                        ('created_at', models.DateTimeField()),
                        ('replaced_at', models.DateTimeField(blank=True, null=True)),
                        ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('chat', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.chat')),
                        ('criterion', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.criterion')),
                        ('carried_from', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.criterion')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(condition=models.Q(('replaced_at__isnull', True)), fields=('chat', 'criterion'), name='adjudication_current')],
                    },
                ),
                migrations.CreateModel(
                    name='ApiToken',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120)),
                        ('digest', models.CharField(max_length=64)),
                        ('scopes', models.JSONField(default=list)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('expires_at', models.DateTimeField(blank=True, null=True)),
                        ('last_used_at', models.DateTimeField(blank=True, null=True)),
                        ('revoked_at', models.DateTimeField(blank=True, null=True)),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('digest',), name='token_digest')],
                    },
                ),
                migrations.CreateModel(
                    name='AuditEvent',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('at', models.DateTimeField(auto_now_add=True)),
                        ('verb', models.CharField(max_length=40)),
                        ('object_type', models.CharField(max_length=40)),
                        ('object_id', models.BigIntegerField()),
                        ('detail', models.JSONField(default=dict)),
                        ('actor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'indexes': [models.Index(fields=['object_type', 'object_id'], name='audit_object')],
                    },
                ),
                migrations.CreateModel(
                    name='RaterNote',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('kind', models.CharField(choices=[('unclear', 'Criterion unclear'), ('flag', 'For the lead'), ('comment', 'Comment')], max_length=7)),
                        ('text', models.TextField()),
                        ('client_id', models.UUIDField()),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('settled_at', models.DateTimeField(blank=True, null=True)),
                        ('chat', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.chat')),
                        ('criterion', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.criterion')),
                        ('rater', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.rater')),
                        ('settled_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.criterionversion')),
                    ],
                    options={
                        'indexes': [models.Index(fields=['criterion', 'kind', '-id'], name='raternote_criterion')],
                        'constraints': [models.UniqueConstraint(fields=('rater', 'client_id'), name='raternote_client')],
                    },
                ),
                migrations.CreateModel(
                    name='RubricGuideline',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('number', models.PositiveIntegerField()),
                        ('text', models.TextField()),
                        ('reason', models.TextField(blank=True, default='')),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('rubric', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='guidelines', to='labeling.rubric')),
                        ('wording', models.CharField(blank=True, choices=[('asked', 'Wording only: a lead has to confirm it'), ('confirmed', 'Wording only'), ('refused', 'New meaning')], default='', max_length=9)),
                        ('wording_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'ordering': ['number'],
                        'constraints': [models.UniqueConstraint(fields=('rubric', 'number'), name='rubricguideline_number')],
                    },
                ),
                migrations.CreateModel(
                    name='CriterionLineage',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('kind', models.CharField(choices=[('split', 'Split'), ('merge', 'Merged'), ('replace', 'Replaced')], max_length=7)),
                        ('carries_labels', models.BooleanField(default=False)),
                        ('reason', models.TextField()),
                        ('at', models.DateTimeField()),
                        ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('new', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.criterion')),
                        ('old', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.criterion')),
                    ],
                    options={
                        'ordering': ['id'],
                        'constraints': [models.UniqueConstraint(fields=('old', 'new'), name='lineage_once'), models.CheckConstraint(condition=models.Q(('old', models.F('new')), _negated=True), name='lineage_of_two')],
                    },
                ),
                migrations.CreateModel(
                    name='Invitation',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('role', models.CharField(choices=[('rater', 'Rater'), ('author', 'Prompt author'), ('lead', 'Lead')], max_length=10)),
                        ('name', models.CharField(blank=True, default='', max_length=150)),
                        ('email', models.EmailField(blank=True, default='', max_length=254)),
                        ('digest', models.CharField(max_length=64)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('expires_at', models.DateTimeField()),
                        ('used_at', models.DateTimeField(blank=True, null=True)),
                        ('revoked_at', models.DateTimeField(blank=True, null=True)),
                        ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('used_by', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('digest',), name='invitation_digest'), models.CheckConstraint(condition=models.Q(models.Q(('used_at__isnull', True), ('used_by__isnull', True)), models.Q(('revoked_at__isnull', True), ('used_at__isnull', False), ('used_by__isnull', False)), _connector='OR'), name='invitation_used_once')],
                    },
                ),
                migrations.CreateModel(
                    name='ChatWords',
                    fields=[
                        ('chat', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='labeling.chat')),
                        ('words', models.TextField()),
                    ],
                ),
                migrations.CreateModel(
                    name='DataImport',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.UUIDField(default=uuid.uuid4, editable=False)),
                        ('kind', models.CharField(max_length=20)),
                        ('file_name', models.CharField(max_length=200)),
                        ('size', models.PositiveBigIntegerField()),
                        ('sha256', models.CharField(max_length=64)),
                        ('source', models.JSONField(default=dict)),
                        ('columns', models.JSONField(default=list)),
                        ('mapping', models.JSONField(default=dict)),
                        ('options', models.JSONField(default=dict)),
                        ('state', models.CharField(choices=[('draft', 'Columns to choose'), ('checking', 'Checking'), ('checked', 'Checked'), ('importing', 'Importing'), ('done', 'Imported'), ('undone', 'Undone')], default='draft', max_length=9)),
                        ('lines', models.PositiveIntegerField(default=0)),
                        ('problem_count', models.PositiveIntegerField(default=0)),
                        ('unreadable', models.BooleanField(default=False)),
                        ('problems', models.JSONField(default=list)),
                        ('result', models.JSONField(default=dict)),
                        ('error', models.TextField(blank=True, default='')),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('rung_at', models.DateTimeField(blank=True, null=True)),
                        ('finished_at', models.DateTimeField(blank=True, null=True)),
                        ('undone_at', models.DateTimeField(blank=True, null=True)),
                        ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('undone_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('text_deleted_at', models.DateTimeField(blank=True, null=True)),
                    ],
                    options={
                        'indexes': [models.Index(condition=models.Q(('state__in', ['checking', 'importing'])), fields=['state'], name='import_at_work')],
                    },
                ),
                migrations.CreateModel(
                    name='ImportedRow',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('model', models.CharField(max_length=60)),
                        ('object_id', models.BigIntegerField()),
                        ('before', models.JSONField(blank=True, null=True)),
                        ('after', models.JSONField(blank=True, null=True)),
                        ('data_import', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rows', to='labeling.dataimport')),
                    ],
                    options={
                        'indexes': [models.Index(fields=['data_import', 'model'], name='importedrow_model')],
                    },
                ),
                migrations.CreateModel(
                    name='SavedMapping',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('kind', models.CharField(max_length=20)),
                        ('signature', models.CharField(max_length=64)),
                        ('mapping', models.JSONField(default=dict)),
                        ('options', models.JSONField(default=dict)),
                        ('used_at', models.DateTimeField(auto_now=True)),
                        ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('kind', 'signature'), name='savedmapping_once')],
                    },
                ),
                migrations.CreateModel(
                    name='ChatSource',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=80)),
                        ('first_at', models.DateTimeField(auto_now_add=True)),
                        ('last_at', models.DateTimeField(auto_now_add=True)),
                        ('received', models.PositiveBigIntegerField(default=0)),
                        ('created', models.PositiveBigIntegerField(default=0)),
                        ('updated', models.PositiveBigIntegerField(default=0)),
                        ('unchanged', models.PositiveBigIntegerField(default=0)),
                        ('refused', models.PositiveBigIntegerField(default=0)),
                        ('redactions', models.JSONField(blank=True, default=dict)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('name',), name='chatsource_name')],
                    },
                ),
                migrations.CreateModel(
                    name='IngestRequest',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.CharField(max_length=200)),
                        ('digest', models.CharField(max_length=64)),
                        ('answer', models.JSONField(blank=True, null=True)),
                        ('started_at', models.DateTimeField()),
                        ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'indexes': [models.Index(fields=['started_at'], name='ingestrequest_started')],
                        'constraints': [models.UniqueConstraint(fields=('by', 'key'), name='ingestrequest_key')],
                    },
                ),
                migrations.CreateModel(
                    name='IngestSettings',
                    fields=[
                        ('id', models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                        ('redaction_key', models.BinaryField(default=labeling.models.people.new_secret)),
                        ('redact', models.JSONField(blank=True, default=list)),
                        ('regions', models.JSONField(blank=True, default=list)),
                        ('topic_rules', models.JSONField(blank=True, default=list)),
                        ('retention_days', models.PositiveIntegerField(blank=True, null=True)),
                        ('retention_done_at', models.DateTimeField(blank=True, null=True)),
                        ('texts_deleted', models.PositiveBigIntegerField(default=0)),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='ingestsettings_single'), models.CheckConstraint(condition=models.Q(('retention_days', None), ('retention_days__gte', 1), _connector='OR'), name='ingestsettings_days')],
                    },
                ),
                migrations.CreateModel(
                    name='SampledChat',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('stratum', models.CharField(max_length=200)),
                        ('probability', models.FloatField()),
                        ('audit_probability', models.FloatField(blank=True, null=True)),
                        ('label_probability', models.FloatField(blank=True, null=True)),
                        ('label_source', models.CharField(blank=True, choices=[('', 'not labelled'), ('audit', 'random audit'), ('suspect', 'verdict of False')], default='', max_length=7)),
                        ('chat', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.chat')),
                        ('draw', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='chats', to='labeling.sampledraw')),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('probability__gt', 0), ('probability__lte', 1)), name='sampledchat_probability'), models.CheckConstraint(condition=models.Q(('audit_probability__isnull', True), models.Q(('audit_probability__gte', 0), ('audit_probability__lte', 1)), _connector='OR'), name='sampledchat_audit_probability'), models.CheckConstraint(condition=models.Q(('label_probability__isnull', True), models.Q(('label_probability__gte', 0), ('label_probability__lte', 1)), _connector='OR'), name='sampledchat_label_probability')],
                    },
                ),
                migrations.CreateModel(
                    name='SampleDraw',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('day', models.DateField()),
                        ('seed', models.PositiveIntegerField()),
                        ('settings', models.JSONField()),
                        ('strata', models.JSONField(default=list)),
                        ('shortfalls', models.JSONField(default=list)),
                        ('frame_size', models.PositiveIntegerField(default=0)),
                        ('sampled', models.PositiveIntegerField(default=0)),
                        ('caught_up', models.BooleanField(default=False)),
                        ('labels_done', models.BooleanField(default=False)),
                        ('labels_problem', models.CharField(blank=True, default='', max_length=300)),
                        ('drawn_at', models.DateTimeField(auto_now_add=True)),
                        ('chat_set', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.chatset')),
                        ('job', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='labeling.labelingjob')),
                        ('plan', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='draws', to='labeling.sampleplan')),
                    ],
                    options={
                        'ordering': ['-day', '-id'],
                        'constraints': [models.UniqueConstraint(fields=('plan', 'day'), name='sampledraw_once')],
                    },
                ),
                migrations.CreateModel(
                    name='SamplePlan',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=80)),
                        ('chats', models.PositiveIntegerField()),
                        ('rule', models.CharField(choices=[('proportional', 'proportional'), ('sqrt', 'square root'), ('equal', 'equal'), ('neyman', 'Neyman')], default='proportional', max_length=12)),
                        ('minimum', models.PositiveIntegerField(default=0)),
                        ('maximum', models.PositiveIntegerField(blank=True, null=True)),
                        ('starts_at', models.TimeField()),
                        ('state', models.CharField(choices=[('active', 'Active'), ('paused', 'Paused')], default='active', max_length=6)),
                        ('first_day', models.DateField()),
                        ('audit_share', models.FloatField(default=0)),
                        ('oversample', models.PositiveIntegerField(default=0)),
                        ('overlap', models.PositiveSmallIntegerField(default=1)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('criteria', models.ManyToManyField(related_name='+', to='labeling.criterion')),
                        ('group', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='auth.group')),
                        ('raters', models.ManyToManyField(related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('rubric', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='sample_plans', to='labeling.rubric')),
                    ],
                    options={
                        'ordering': ['name'],
                        'constraints': [models.UniqueConstraint(fields=('name',), name='sampleplan_name'), models.CheckConstraint(condition=models.Q(('chats__gte', 1)), name='sampleplan_chats'), models.CheckConstraint(condition=models.Q(('maximum__isnull', True), models.Q(('maximum__gte', 1), ('maximum__gte', models.F('minimum'))), _connector='OR'), name='sampleplan_maximum'), models.CheckConstraint(condition=models.Q(('audit_share__gte', 0), ('audit_share__lte', 1)), name='sampleplan_audit_share'), models.CheckConstraint(condition=models.Q(('overlap__gte', 1)), name='sampleplan_overlap')],
                    },
                ),
            ],
        ),
        migrations.RunPython(create, drop),
    ]
