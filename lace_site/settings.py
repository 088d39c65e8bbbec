"""Every setting of the workbench, read once from the environment (and .env)."""

import os
import platform
import re
import sys
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from lace_site.account_forms import ACCOUNT_FORMS, MFA_FORMS  # noqa: F401  of django-allauth
from lace_site.environment import (
    BASE_DIR,
    count,
    data_dir,
    domains,
    env,
    fernet_keys,
    log_form,
    log_level,
    networks,
    one_of,
    positive,
    positive_or_none,
    secret,
    secret_key,
    sign_on_provider,
    site_url,
    static_mark,
    switch,
    time_zone,
)
from lace_site.private_files import UMASK
from lace_site.watch.logs import logging_config

# NB: before the first folder is made; every process reads this file first.
os.umask(UMASK)
# All that is written at run time; the code may be read-only.
VAR_DIR = data_dir()

# Name and version of this software, recorded in stored and signed documents.
_project = tomllib.loads((BASE_DIR / "pyproject.toml").read_text("utf-8"))["project"]
SOFTWARE = {"name": _project["name"], "version": _project["version"]}

SQLITE = "common.sqlite"  # Django's backend; a missing file is not created silently
# How long workers and commands wait for a lock of the database or for its server; pages wait less.
DATABASE_WAIT_SECONDS, WEB_DATABASE_WAIT_SECONDS = 20, 5


def database_wait(config: dict[str, Any], seconds: int) -> None:
    """Limit how long new connections with these database settings wait for a lock or for the server."""
    options = config.setdefault("OPTIONS", {})
    if config["ENGINE"] == SQLITE:
        options["timeout"] = seconds
    else:
        options["connect_timeout"] = seconds
        options["options"] = f"{options.get('options', '')} -c lock_timeout={seconds}s".strip()


def database() -> dict[str, Any]:
    """Return the database settings; SQLite is set up for eight writers (WAL, IMMEDIATE, long timeout)."""
    config: dict[str, Any] = env.db_url("DATABASE_URL", default=f"sqlite:///{VAR_DIR / 'workspace.sqlite3'}")
    if config["ENGINE"] not in ("django.db.backends.sqlite3", "django.db.backends.postgresql"):
        raise ImproperlyConfigured("DATABASE_URL must start with sqlite:// or postgres://")
    # NB: closing SQLite's last connection checkpoints and deletes the log: avoid that after each request.
    config |= {"CONN_HEALTH_CHECKS": True, "CONN_MAX_AGE": 60}
    if config["ENGINE"] != "django.db.backends.sqlite3":
        database_wait(config, DATABASE_WAIT_SECONDS)
        return config
    config["ENGINE"] = SQLITE
    path = Path(config["NAME"])
    config["NAME"] = str(path if path.is_absolute() else BASE_DIR / path)
    config["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
    }
    database_wait(config, DATABASE_WAIT_SECONDS)
    # NB: the default in-memory test database locks under threads; a file does not.
    config["TEST"] = {"NAME": str(VAR_DIR / "test.sqlite3")}
    return config


def site_name(config: dict[str, Any]) -> str:
    """Return a short name of the database: workspaces on one machine share neither files nor cookies.

    An SQLite file in `var/` with a plain name has that name; others get a mark of their place too.
    """
    path = Path(str(config["NAME"]))
    name = re.sub(r"\W+", "_", path.stem, flags=re.ASCII)  # it becomes a cookie's name
    if config["ENGINE"] == SQLITE and path.parent == VAR_DIR and name == path.stem:
        return name
    place = f"{config.get('HOST', '')}:{config.get('PORT', '')}/{config['NAME']}"
    return f"{name}_{sha256(place.encode()).hexdigest()[:8]}"


DEBUG = switch("DEBUG")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
# Served to this machine alone: endpoints and the provider of sign-on may then be on this machine, too.
LACE_LOOPBACK_ONLY = set(ALLOWED_HOSTS) <= {"localhost", "127.0.0.1", "[::1]"}
SECRET_KEY = secret_key(VAR_DIR, production=switch("HTTPS") or not LACE_LOOPBACK_ONLY, debug=DEBUG)
# Signs certificates of judges; created with the first one, readable by its owner only.
LACE_CERTIFICATE_KEY = Path(env.str("LACE_CERTIFICATE_KEY", default=str(VAR_DIR / "certificate_key.pem")))
# Archives of the whole workspace; web servers and workers share the folder.
LACE_ARCHIVE_DIR = Path(env.str("LACE_ARCHIVE_DIR", default=str(VAR_DIR / "archives")))
# A spaCy model that finds names of people and places in incoming chats, by its name or folder; "": none.
LACE_NAMES_MODEL = env.str("LACE_NAMES_MODEL", default="")
# Hides keys that were entered, also on the debug page.
DEFAULT_EXCEPTION_REPORTER_FILTER = "lace_site.errors.KeysHidden"
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
DATABASES = {"default": database()}
SITE_NAME = site_name(DATABASES["default"])
# What one site writes at run time and another on this machine must not read: broker, state of `serve`.
SITE_DIR = VAR_DIR / "sites" / SITE_NAME
# Times of pages, a file for each web process of this site and machine; `/metrics` adds them up. Machines may
# share the folder of the site.
METRICS_DIR = SITE_DIR / "metrics" / re.sub(r"[^\w.-]", "_", platform.node() or "machine")
# Whoever sends it reads `/metrics`; without it there is no such route.
LACE_METRICS_TOKEN = secret("LACE_METRICS_TOKEN")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {
    # For all processes: limits of sign-ins count in it.
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "common_cacheentry",
        "OPTIONS": {"MAX_ENTRIES": 200_000},
    },
    "process": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    # What a process computed for its readers; workers store it for all processes in the database.
    "documents": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "LOCATION": "documents",
        "TIMEOUT": 3600,
        "OPTIONS": {"MAX_ENTRIES": 500},
    },
}

INSTALLED_APPS = [
    "lace_site",
    "alignment",
    "evaluation",
    "labeling",
    "common",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
]

MIDDLEWARE = [
    "lace_site.watch.requests.request_watched",
    "lace_site.middleware.browser_rules",
    "lace_site.middleware.api_over_tls",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "lace_site.middleware.no_nul",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "lace_site.middleware.no_store",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "labeling.people.middleware.session_limits",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "labeling.people.middleware.note_origin",
    "allauth.account.middleware.AccountMiddleware",
    "labeling.people.middleware.note_last_seen",
    "labeling.people.middleware.SecondFactorFirst",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "common.drafts.middleware.drop_sent_drafts",
]

ROOT_URLCONF = "lace_site.urls"
WSGI_APPLICATION = "lace_site.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            # Tags of answers, verdicts and statistics, which most pages need.
            "builtins": [
                "labeling.templatetags.labels",
                "evaluation.templatetags.verdicts",
                "alignment.templatetags.statistics",
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "lace_site.navigation.navigation",
            ],
        },
    },
]

AUTH_USER_MODEL = "labeling.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
_OWN = ("NoWordOfOurs", "TokensEndWithPassword")
AUTH_PASSWORD_VALIDATORS += [{"NAME": f"labeling.people.services.accounts.{name}"} for name in _OWN]
# Hashes of earlier versions are renewed at the next sign-in.
PASSWORD_HASHERS = [
    "labeling.people.services.password_hash.Argon2id",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "account_login"
# Local accounts of django-allauth; nobody signs up: leads create accounts and invite.
AUTHENTICATION_BACKENDS = ["labeling.people.services.sign_in.Accounts"]
ACCOUNT_ADAPTER = "labeling.people.services.sign_in.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_EMAIL_SUBJECT_PREFIX = "LACE workbench: "
ACCOUNT_SESSION_REMEMBER = ACCOUNT_LOGIN_ON_PASSWORD_RESET = True
ACCOUNT_PASSWORD_RESET_TOKEN_GENERATOR = "labeling.people.services.sign_in.ResetKeys"  # noqa: S105
# Failed sign-ins, over all processes: by address, and by address and account. Never by account alone, or
# anybody could lock it; and never those that succeed, or a team behind one address would wait.
ACCOUNT_RATE_LIMITS = {"login": None, "login_failed": "20/m/ip,5/5m/key"}
# Days for which the audit log keeps sign-ins; the database deletes none younger than 30.
LACE_SIGN_IN_LOG_DAYS = count("LACE_SIGN_IN_LOG_DAYS", default=365, least=30)
# Second factors.
MFA_ADAPTER = "labeling.people.services.second_factor.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
# Refused passkeys count (labeling.people.services.passkeys), not all sign-ins at an address.
MFA_RATE_LIMITS = {"webauthn_login": None}
MFA_TOTP_TOLERANCE = 1  # clocks of phones differ: the code before and the one after count, too
# Single sign-on with OpenID Connect.
LACE_SSO_ISSUER = env.str("LACE_SSO_ISSUER", default="").rstrip("/")
LACE_SSO_NAME = env.str("LACE_SSO_NAME", default="Single sign-on")
LACE_SSO_DOMAINS = domains("LACE_SSO_DOMAINS")
LACE_SSO_ROLE = one_of("LACE_SSO_ROLE", "none", "rater", "author", "invited").replace("none", "")
LACE_SSO_TRUST_EMAIL = switch("LACE_SSO_TRUST_EMAIL")
SOCIALACCOUNT_ADAPTER = "labeling.people.services.sign_on.SignOnAdapter"
SOCIALACCOUNT_REAUTHENTICATION_REQUIRED = True
SOCIALACCOUNT_PROVIDERS = sign_on_provider(LACE_SSO_ISSUER, LACE_SSO_NAME, loopback=LACE_LOOPBACK_ONLY)

LANGUAGE_CODE = "en"
TIME_ZONE = time_zone()
USE_TZ = True

# NB: in the path, not in the names: scripts import each other by name.
STATIC_URL = "static/" if DEBUG else f"static/{static_mark()}/"
STATIC_ROOT = VAR_DIR / "static"
STATIC_ROOT.mkdir(exist_ok=True)
STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.AppDirectoriesFinder"]
# Served directly from the apps: no collect step, no stale copies after an update.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH, WHITENOISE_ALLOW_ALL_ORIGINS = DEBUG, False
WHITENOISE_IMMUTABLE_FILE_TEST = r"/static/[0-9a-f]{12}/(alignment|common|evaluation|labeling)/"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        **{name: [SELF] for name in ("default-src", "script-src", "style-src", "form-action")},
        **{name: [NONE] for name in ("object-src", "base-uri", "frame-ancestors")},
        "img-src": [SELF, "data:"],
    },
}
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# NB: cookies ignore ports: a second site here would end the first one's sessions. With TLS no other host
# of the domain can set them: browsers see to it by the beginning of the name.
COOKIE_PREFIX = "__Host-" if switch("HTTPS") else ""
SESSION_COOKIE_NAME = f"{COOKIE_PREFIX}sessionid_{SITE_NAME}"
CSRF_COOKIE_NAME = f"{COOKIE_PREFIX}csrftoken_{SITE_NAME}"
MESSAGE_STORAGE = "lace_site.message_cookie.Messages"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
# A session ends after so long without a page, and at the latest 14 days after its sign-in.
LACE_SESSION_IDLE_HOURS, SESSION_COOKIE_AGE = positive("LACE_SESSION_IDLE_HOURS", default=24), 14 * 24 * 3600
# How many proxies, one behind another, add the client's address to X-Forwarded-For; HTTPS=on means one.
LACE_TRUSTED_PROXIES = count("LACE_TRUSTED_PROXIES", default=int(switch("HTTPS")))
# Behind TLS: HTTPS=on makes cookies secure and sends HSTS.
if switch("HTTPS"):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = True

REST_FRAMEWORK = {
    # NB: the first one answers 401 for an invalid token.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "labeling.people.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["common.parsers.GuardedJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "common.api.ApiSchema",
    # The schema describes the API: OPTIONS would describe it to people without the right to it.
    "DEFAULT_METADATA_CLASS": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "LACE workbench",
    "DESCRIPTION": "Labels, verdicts and their alignment.",
    "VERSION": SOFTWARE["version"],
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api",  # operations are grouped by what follows it
    # NB: its default allows everybody, and DRF views are not under LoginRequiredMiddleware.
    "SERVE_PERMISSIONS": ["labeling.people.api.permissions.UsesApi"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "common.api.document_errors",
    ],
    # Fixed names for fields with the same name and different choices; generated ones would change.
    "ENUM_NAME_OVERRIDES": {
        "SplitEnum": "labeling.models.chats.Split",
        "RunStateEnum": "evaluation.models.runs.Run.State",
        "MisalignmentStateEnum": "alignment.models.misalignments.Misalignment.State",
        "IssueStateEnum": "alignment.models.issues.Issue.State",
        "SplitByHandEnum": ["dev", "train"],
        "CertificateStateEnum": ["valid", "expired", "revoked"],
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024 * 1024

# Celery: the database has the state, the broker only wakes workers.
BROKER_DIR = Path(env.str("LACE_BROKER_DIR", default=str(SITE_DIR / "broker")))
CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", default="filesystem://localhost")
CELERY_TASK_IGNORE_RESULT = True
# Time slices of runs last up to a minute: the reaper must not wait behind them.
CELERY_TASK_ROUTES = {
    # Events leave within seconds: they wait behind nothing, and receivers that hang hold up nothing else.
    "evaluation.tasks.send_webhooks": {"queue": "webhooks"},
    **{
        f"{app}.tasks.{task}": {"queue": "judge"}
        for app, tasks in {
            "evaluation": ("process_units", "test_model"),
            "alignment": (
                "suggest",
                "draft_definition",
                "give_topics",
                "train",
                "refresh_report",
                "make_archive",
                "count_experiment",
                "find_issues",
                "name_issue",
                "nightly",
            ),
            "labeling": ("check_import", "store_import"),
        }.items()
        for task in tasks
    },
}
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "alignment.tasks.sweep", "schedule": 5.0, "options": {"expires": 30}},
    "nightly": {"task": "alignment.tasks.nightly", "schedule": 600.0, "options": {"expires": 590}},
}
CELERY_BEAT_SCHEDULER = "lace_site.clock:Clock"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True  # a broker may be down for hours
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# Limits how long a hanging broker delays a request that enqueues a task.
CELERY_ENQUEUE_OPTIONS: dict[str, Any] = {}
if CELERY_BROKER_URL.startswith(("redis://", "rediss://")):
    CELERY_ENQUEUE_OPTIONS = {"socket_connect_timeout": 0.5, "socket_timeout": 0.5}
if CELERY_BROKER_URL.startswith("filesystem://"):
    CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
    # NB: the folder comes from the transport options only; the URL's path is ignored by kombu.
    CELERY_BROKER_TRANSPORT_OPTIONS = {"folder": str(BROKER_DIR), "polling_interval": 0.05}
# Workers and scheduler touch it every few seconds, for probes of their container.
LACE_ALIVE_FILE = env.str("LACE_ALIVE_FILE", default="")

# The judge. With neither key nor base URL the embedded demonstration model answers.
# Encrypt the keys of connected endpoints, the first one new ones; without any, a key in this file does.
LACE_ENDPOINT_KEYS = fernet_keys("LACE_ENDPOINT_KEYS")
LACE_ENDPOINT_KEY_FILE = VAR_DIR / "keys" / "endpoints.key"
# Private networks that the addresses of connected endpoints may lead to.
LACE_ENDPOINT_NETWORKS = networks("LACE_ENDPOINT_NETWORKS")
OPENAI_API_KEY = env.str("OPENAI_API_KEY", default="")
OPENAI_BASE_URL = env.str("OPENAI_BASE_URL", default="")
LACE_REASONING_MODEL = env.str("LACE_REASONING_MODEL", default="")
LACE_FORMATTER_MODEL = env.str("LACE_FORMATTER_MODEL", default="")
LACE_MAX_IN_FLIGHT = positive("LACE_MAX_IN_FLIGHT", default=16)
# For all workers together; None = no limit.
LACE_REQUESTS_PER_MINUTE = positive_or_none("LACE_REQUESTS_PER_MINUTE")
LACE_TOKENS_PER_MINUTE = positive_or_none("LACE_TOKENS_PER_MINUTE")
LACE_REQUEST_TIMEOUT = positive("LACE_REQUEST_TIMEOUT", default=120)
# Of models that reason before they answer.
LACE_REASONING_TIMEOUT = positive("LACE_REASONING_TIMEOUT", default=600)
LACE_JUDGE_WORKERS = positive("LACE_JUDGE_WORKERS", default=1)
LACE_PRICES = env.str("LACE_PRICES", default="")
LACE_BATCH_POLL_SECONDS = positive("LACE_BATCH_POLL_SECONDS", default=30)

# One JSON object a line, or text for people: on a terminal and with DEBUG.
LOGGING = logging_config(
    form=log_form(default="text" if DEBUG or sys.stderr.isatty() else "json"),
    level=log_level(default="INFO" if DEBUG else "WARNING"),
    debug=DEBUG,
)

# ---- rubric: what the judging side adds to a criterion; the labelling side knows no judge, so by name.
CRITERION_JUDGING = {
    "articles": "evaluation.knowledge.queries.article_titles",
    "articles_of": "evaluation.knowledge.queries.articles_of",
    "articles_set": "evaluation.knowledge.services.criterion_articles_set",
    "is_judged": "evaluation.judges.queries.profiles.is_judged",
    "prompts_ensure": "evaluation.prompts.services.versions.champions_ensure",
}

# ---- inbox
# What inbox items and comments can be about: kind -> which of these ids a user may open.
INBOX_SUBJECTS = {
    "note": "labeling.rating.queries.notes.note_subjects",
    "job": "labeling.jobs.queries.jobs.job_subjects",
    "criterion": "labeling.rubric.queries.criteria.criterion_subjects",
    "run": "evaluation.runs.queries.runs.run_subjects",
    "webhook": "evaluation.webhooks.queries.webhook_subjects",
    "disagreement": "alignment.misalignments.queries.detail.misalignment_subjects",
    "redesign": "alignment.prompts.redesign.queries.proposal_subjects",
    "text": "labeling.rubric.queries.versions.text_subjects",
    "guideline": "labeling.rubric.queries.versions.guideline_subjects",
    "issue": "alignment.issues.queries.issues.issue_subjects",
    "plan": "evaluation.nightly.queries.plan_subjects",
    "alert": "alignment.alerts.queries.alerts.alert_subjects",
    "alerts": "alignment.alerts.queries.alerts.step_subjects",
    "release": "alignment.regression.queries.release_requests.release_subjects",
}
# What the search finds, in this order: kind -> its heading, and which of these a user may open.
SEARCH_PROVIDERS = {
    "pages": ("Pages", "lace_site.navigation.page_hits"),
    "own_chats": ("Your chats", "labeling.rating.queries.queue.own_chat_hits"),
    "chats": ("Chats", "labeling.sets.queries.chat_hits"),
    "criteria": ("Criteria", "labeling.rubric.queries.criteria.criterion_hits"),
    "versions": ("Prompt versions", "evaluation.prompts.queries.versions.version_hits"),
    "runs": ("Runs", "evaluation.runs.queries.runs.run_hits"),
    "reports": ("Reports", "alignment.reports.queries.stored.report_hits"),
    "tests": ("Regression tests", "alignment.regression.queries.tests.regression_hits"),
    "sets": ("Chat sets", "labeling.sets.queries.set_hits"),
    "jobs": ("Labelling jobs", "labeling.jobs.queries.jobs.job_hits"),
    "raters": ("Raters", "labeling.jobs.queries.jobs.rater_hits"),
    "help": ("Help", "lace_site.manual.queries.help_hits"),
}
# Where e-mails go, as EMAIL_URL (smtp+tls://user:password@host:587); without it there are none.
INBOX_MAIL = bool(env.str("EMAIL_URL", default=""))
if INBOX_MAIL:
    vars().update(env.email_url("EMAIL_URL"))
EMAIL_TIMEOUT = 10  # seconds; a server that stalls must not keep a worker
DEFAULT_FROM_EMAIL = env.str("EMAIL_FROM", default="lace@localhost")
# The address at which users open the workbench, for links in e-mails.
SITE_URL = site_url(required=INBOX_MAIL and not LACE_LOOPBACK_ONLY)

# ---- imports
# What leads can bring in on a page, in the order of the page.
IMPORT_KINDS = [
    "labeling.ingest.services.kinds.CHATS",
    "labeling.ingest.services.kinds.LANGFUSE",
    "labeling.ingest.services.kinds.OTEL",
    "labeling.transfer.services.kinds.LABELS",
    "alignment.imports.services.RUBRIC",
    "evaluation.knowledge.services.KNOWLEDGE",
    "alignment.imports.services.VERDICTS",
]
# Files that leads sent, readable by their owner only; web server and workers share the folder.
IMPORT_DIR = VAR_DIR / "imports"
LACE_IMPORT_MB = positive("LACE_IMPORT_MB", default=200)
# The largest body of chats that a system may send, unpacked.
LACE_INGEST_MB = positive("LACE_INGEST_MB", default=32)
# NB: files go to the disk while they arrive, and only from those who may import.
FILE_UPLOAD_HANDLERS = ["common.uploads.LimitedUpload"]
FILE_UPLOAD_PERMISSIONS = 0o600
