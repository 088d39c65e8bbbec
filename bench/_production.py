"""Two years of production as rows: nights of judged samples, a random audit of each, a curated set."""

from datetime import date, time, timedelta

from django.db import connection
from django.utils import timezone

from alignment.monitoring.services import audits_work
from evaluation.day_counts.services import days_recount
from evaluation.models.nightly import NightlyRun
from evaluation.models.runs import Run
from labeling.models.chats import Chat, ChatSet, Topic
from labeling.models.labels import LabelingJob
from labeling.models.rubric import Criterion
from labeling.models.sampling import SampleDraw, SamplePlan
from tests.factories.rows import make_criterion, make_rubric
from tests.factories.verdicts import make_judge

CHATS, CRITERIA, DIMENSIONS, TOPICS = 500, 20, 5, 14
ALL_CHATS = 3  # of which one is judged
CURATED = 300
# Of each night's judged chats the raters get an audit, and more of those with a verdict of False.
AUDITED, SUSPECTS = 0.1, 0.05
SIZES = {"chats": CHATS * ALL_CHATS, "judged": CHATS, "topics": TOPICS, "all_chats": ALL_CHATS}
# The judge fails 4% of the answers; raters disagree with it on 5%.
VALUE = "(chat.id * 7919 + criterion.id * 104729) %% 211 > 7"
HUMAN = f"(({VALUE}) <> ((chat.id * 31 + criterion.id * 17) %% 101 < 5))"
# NB: figures of our own and parameters only.
# ruff: noqa: S608
CHATS_SQL = """
INSERT INTO labeling_chat (external_id, topic_id, started_at, messages, content_hash, message_count,
    char_count, source, experiment, variant, unit_id, cluster, metadata, redactions, origin, created_at)
SELECT 'p' || night || '-' || n, %s + floor({topics} * power((n * 37 %% 500) / 500.0, 2))::int,
    %s + night * interval '1 day', '[]', '', 0, 0, '', '', '', '', '', '{{}}', '[]', 'api', now()
FROM generate_series(0, {nights} - 1) night, generate_series(0, {chats} - 1) n"""
NIGHTS_CHATS = """generate_series(0, {nights} - 1) night
JOIN labeling_chat chat ON chat.id %% {all_chats} = 0
    AND chat.id BETWEEN {first} + night * {chats} AND {first} - 1 + (night + 1) * {chats}"""
VERDICT_COLUMNS = """(run_id, chat_id, criterion_id, state, value, first_state, rationale,
    explanation, read_by, contradicts, sided_with, quotes, quotes_verified, quotes_close, first_brief,
    flags, stored_at)"""
VERDICT = (
    f"chat.id, criterion.id, 'read', {VALUE}, '', '', 'It waits.', 'rules', false, '', 0, 0, 0, '', '[]'"
)
VERDICTS_SQL = f"""
INSERT INTO evaluation_verdict {VERDICT_COLUMNS} SELECT %s + night, {VERDICT}, now()
FROM {NIGHTS_CHATS} CROSS JOIN labeling_criterion criterion"""
# A chat is a suspect by any verdict of False; the draws' ids follow each other as the runs' do.
SAMPLED_SQL = f"""
INSERT INTO labeling_sampledchat (draw_id, chat_id, stratum, probability, audit_probability,
    label_probability, label_source)
SELECT draw, id, key, 1.0 / {{all_chats}}, {AUDITED},
    CASE WHEN suspect THEN {AUDITED} + {SUSPECTS} ELSE {AUDITED} END,
    CASE WHEN place <= {AUDITED} THEN 'audit' WHEN suspect AND place <= {AUDITED} + {SUSPECTS} THEN 'suspect'
        ELSE '' END
FROM (SELECT %s + night draw, chat.id, topic.key, chat.id * 7901 %% 1009 / 1009.0 place,
    EXISTS (SELECT FROM labeling_criterion criterion WHERE NOT ({VALUE})) suspect
    FROM {NIGHTS_CHATS} JOIN labeling_topic topic ON topic.id = chat.topic_id) sampled"""
LABELS = """
INSERT INTO labeling_consensus (chat_id, criterion_id, state, by, n_true, n_false, n_na)
SELECT chat.id, criterion.id, CASE WHEN {human} THEN 'true' ELSE 'false' END, 'majority', 1, 0, 0
FROM labeling_chat chat CROSS JOIN labeling_criterion criterion WHERE chat.id {chats}"""
LABELS_SQL = LABELS.format(
    human=HUMAN, chats="IN (SELECT chat_id FROM labeling_sampledchat WHERE label_source <> '')"
)
CURATED_LABELS_SQL = LABELS.format(human=HUMAN, chats="= ANY (%s)")
CURATED_CHATS_SQL = """
INSERT INTO evaluation_runchat (run_id, chat_id, split, weight)
SELECT %s, chat.id, 'dev', 1 FROM labeling_chat chat WHERE chat.id = ANY (%s)"""
CURATED_SQL = f"""
INSERT INTO evaluation_verdict {VERDICT_COLUMNS} SELECT %s, {VERDICT}, now()
FROM labeling_chat chat CROSS JOIN labeling_criterion criterion WHERE chat.id = ANY (%s)"""


def stored_nights(nights: int) -> int:
    """A run a night over a third of its chats, with the newest nights' audits; returns the last run."""
    rubric = make_rubric()
    for n in range(CRITERIA):
        make_criterion(f"k{n}", rubric=rubric, dimension=f"part {n % DIMENSIONS}")
    Criterion.objects.exclude(rubric=rubric).delete()
    judge = make_judge(rubric)
    topics = Topic.objects.bulk_create(Topic(key=f"topic-{n}", name=f"Topic {n}") for n in range(TOPICS))
    begin = timezone.now().replace(hour=12) - timedelta(days=nights)
    sets = ChatSet.objects.bulk_create(
        ChatSet(name=f"Night {n}", kind="sample", rubric=rubric) for n in range(nights)
    )
    plan = SamplePlan.objects.create(
        name="Nightly", rubric=rubric, chats=CHATS, starts_at=time(2), first_day=begin, audit_share=AUDITED
    )
    runs = Run.objects.bulk_create(
        Run(judge=judge, chat_set=one, state="done", finished_at=timezone.now()) for one in sets
    )
    with connection.cursor() as cursor:
        cursor.execute(CHATS_SQL.format(**SIZES, nights=nights), [topics[0].pk, begin])
        first = Chat.objects.earliest("pk").pk  # a night's chats have ids one after another
        cursor.execute(VERDICTS_SQL.format(**SIZES, nights=nights, first=first), [runs[0].pk])
        cursor.execute("VACUUM ANALYZE")
        days = [begin.date() + timedelta(days=n) for n in range(nights)]
        draws = _draws(plan, sets, days, [topic.key for topic in topics], runs)
        cursor.execute(SAMPLED_SQL.format(**SIZES, nights=nights, first=first), [draws[0].pk])
        cursor.execute(LABELS_SQL, [])
        curated = ChatSet.objects.create(name="curated", rubric=rubric)
        run = Run.objects.create(judge=judge, chat_set=curated, state="done", finished_at=timezone.now())
        chats = [first + 1 + ALL_CHATS * n for n in range(CURATED)]  # no night has judged them
        cursor.execute(CURATED_CHATS_SQL, [run.pk, chats])
        cursor.execute(CURATED_SQL, [run.pk, chats])
        cursor.execute(CURATED_LABELS_SQL, [chats])
        cursor.execute("VACUUM ANALYZE")
    for one in runs:
        days_recount(one.pk)
    audits_work()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return runs[-1].pk


def _draws(
    plan: SamplePlan, sets: list[ChatSet], days: list[date], topics: list[str], runs: list[Run]
) -> list[SampleDraw]:
    sizes = dict.fromkeys(topics, 0)
    for n in range(CHATS * ALL_CHATS):
        sizes[topics[int(TOPICS * ((n * 37 % 500) / 500) ** 2)]] += 1
    strata = [
        {"topic": key, "size": size, "n": size // ALL_CHATS, "probability": 1 / ALL_CHATS}
        for key, size in sizes.items()
    ]
    jobs = LabelingJob.objects.bulk_create(LabelingJob(chat_set=one, name=one.name) for one in sets)
    draws = SampleDraw.objects.bulk_create(
        SampleDraw(
            plan=plan, day=day, seed=1, settings={}, strata=strata, chat_set=one, job=job, labels_done=True
        )
        for day, one, job in zip(days, sets, jobs, strict=True)
    )
    NightlyRun.objects.bulk_create(
        NightlyRun(draw=draw, run=run, tried_at=timezone.now()) for draw, run in zip(draws, runs, strict=True)
    )
    return draws
