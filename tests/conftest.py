"""Fixtures shared by all tests: the three people, the real database, and the real browser."""

import gc
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import deepcopy
from typing import Any, TypeVar

import hypothesis
import pytest
from django.conf import settings
from django.core.cache import caches
from django.db import connection
from django.db.backends.signals import connection_created
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker

from common.memory import memory
from labeling.models.people import Role, User
from lace_site import celery_app
from lace_site.health import STATUS_KEY
from tests import browsing
from tests.database import Database, RowsOnce, database_create, database_delete
from tests.factories.rows import make_user

Rows = TypeVar("Rows")

# A busy machine is no fault of the code under test.
hypothesis.settings.register_profile(
    "lace", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("lace")


@pytest.fixture
def rater_user(db: None) -> User:
    return make_user("mara", Role.RATER)


@pytest.fixture
def author_user(db: None) -> User:
    return make_user("otto", Role.AUTHOR)


@pytest.fixture
def lead_user(db: None) -> User:
    return make_user("ines", Role.LEAD)


@pytest.fixture
def everybody(db: None) -> User:
    """An account with every role and right, so that only the token is missing."""
    user = make_user("everybody", *Role)
    user.is_staff = user.is_superuser = True
    user.save()
    return user


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> None:
    """Slow hashing protects real passwords; here it would only slow down every sign-in."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session", autouse=True)
def static_files_found_on_request() -> None:
    """Every new client would read the list of all files first."""
    settings.WHITENOISE_AUTOREFRESH = True


@pytest.fixture(scope="session", autouse=True)
def modules_are_no_garbage() -> None:
    """What was imported stays: the collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def certificate_key_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests sign with a key of their own."""
    settings.LACE_CERTIFICATE_KEY = tmp_path_factory.mktemp("keys") / "certificate_key.pem"


@pytest.fixture(scope="session", autouse=True)
def archives_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Archives of tests are no archives of this machine's workspace."""
    settings.LACE_ARCHIVE_DIR = tmp_path_factory.mktemp("archives")


@pytest.fixture(scope="session", autouse=True)
def imports_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Files that tests import lie in a folder of their own."""
    settings.IMPORT_DIR = tmp_path_factory.mktemp("imports")


@pytest.fixture(scope="session", autouse=True)
def broker_of_our_own() -> None:
    """Rings of a test go nowhere, unless it starts workers with a broker of their own."""
    celery_app.conf.update(broker_url="memory://", broker_transport_options={})


# ---------- database ----------


def do_not_wait_for_the_disk(connection: Any, **_: Any) -> None:
    """What a power cut would take is of no interest here."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA synchronous=OFF")


@pytest.fixture(scope="session")
def django_db_setup(
    request: pytest.FixtureRequest, django_test_environment: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Database]:
    """A copy of the migrated template; what a test commits is undone more quickly than by a flush."""
    connection_created.connect(do_not_wait_for_the_disk)
    process = f"{getattr(request.config, 'workerinput', {}).get('workerid', 'main')}_{os.getpid()}"
    with django_db_blocker.unblock():
        database_create(process, migrate=request.config.getoption("create_db"))
        database = Database()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: database.restore())
        yield database
    with django_db_blocker.unblock():
        database_delete()


@pytest.fixture(scope="module")
def module_rows(
    django_db_setup: Database, django_db_blocker: DjangoDbBlocker
) -> Iterator[Callable[[Callable[[], Rows]], Rows]]:
    """Make rows that every test of the module starts from: `module_rows(make_world)`.

    Tests that change what it returns in Python take a `copy.deepcopy` of it.
    """
    states = ExitStack()

    def make(build: Callable[[], Rows]) -> Rows:
        with django_db_blocker.unblock():
            assert not connection.in_atomic_block, "a test began before its rows: let it name their fixture"
            try:
                rows = build()
            except BaseException:
                django_db_setup.restore()  # or a rerun meets half of them, and says another error
                raise
            states.enter_context(django_db_setup.saved())
        return rows

    yield make
    with django_db_blocker.unblock():
        states.close()


@pytest.fixture(scope="module")
def rows_once(request: pytest.FixtureRequest, module_rows: Callable[[Callable[[], Any]], Any]) -> RowsOnce:
    """`rows_once("compared", make_compared)`: made once in a module of which two tests use that fixture.

    The module's own `build_compared` goes before `make_compared`. Its tests without such rows run first (see
    `pytest_collection_modifyitems`). Where tests use other rows made once, each would meet those of the
    others: there every test makes its own.
    """

    def make(fixture: str, usual: Callable[[], Any]) -> Callable[[], Any]:
        build = getattr(request.module, f"build_{fixture}", usual)
        tests = [item for item in request.session.items if item.path == request.path and uses_rows_once(item)]
        users = [fixture in getattr(item, "fixturenames", ()) for item in tests]
        if not all(users) or len(users) < 2:
            return build
        rows = module_rows(build)
        return lambda: deepcopy(rows)

    return make


def uses_rows_once(item: pytest.Item) -> bool:
    """Whether the test starts from rows that `rows_once` makes."""
    return any(name.endswith("_once") and name != "rows_once" for name in getattr(item, "fixturenames", ()))


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    """Rows of the next test have the same ids, but other answers.

    No workers run beside the tests: pages do not say so, unless a test clears the cache.
    """
    for name in ("process", "documents"):  # the shared one is in the database, which starts anew
        caches[name].clear()
    memory.set(STATUS_KEY, (), None)


# ---------- groups ----------

GROUPS = {
    "browser": "needs a real browser, so one database is enough: SQLite",
    "flow": "walks a whole way, or kills processes: PostgreSQL runs it even if heavy or in a browser",
    "sweep": "asks every route, so one database is enough: SQLite",
    "heavy": "kills processes or repeats a rule at length; `make test-all` alone runs it, on SQLite",
    "pure": "uses no database, so one run is enough (set here, from the fixtures)",
    "both": "`make test` runs it on PostgreSQL, too (set here, from its file)",
}
# Where rows are locked, leased, sampled and written in bulk: what the two databases may do differently.
ON_BOTH = {
    "alignment/baselines": ("baseline_worker",),
    "alignment/comparison": ("cached_documents", "inclusion_probabilities"),
    "alignment/label_planning": ("label_samples", "label_samples_at_once"),
    "alignment/prompts/redesign": ("redesign_beside_tests",),
    "alignment/prompts/suggestions": ("suggestion_worker",),
    "evaluation/gateway": ("attempts", "budget", "ledger", "rows", "shared_state"),
    "evaluation/runs": ("asked_elsewhere", "batch_restarts", "reaper", "reuse", "run_control"),
    "labeling/adjudication": ("adjudicate",),
    "labeling/consensus": ("consensus", "counted"),
    "labeling/people": ("last_lead_at_once",),
    "labeling/rating": ("next_chat", "raters_at_once", "sixteen_at_once", "who_gets_which_chat"),
    "labeling/rubric": ("redesign_at_once",),
    "labeling/sampling": ("chat_samples",),
    "labeling/transfer": ("import_labels",),
}
ON_BOTH_PATHS = {f"tests/{folder}/test_{name}.py" for folder, names in ON_BOTH.items() for name in names}
ON_BOTH_PATHS.add("tests/test_backup.py")
ONCE = {"browser", "sweep", "heavy"}
NEED_DATABASE = {"db", "transactional_db", "live_server"}


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in GROUPS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    # A web server waits for the database for a shorter time, and would leave that to this process.
    settings.WEB_DATABASE_WAIT_SECONDS = settings.DATABASE_WAIT_SECONDS


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what uses no database; keep the tests of a module in one process, which sets up their world."""
    is_browser = item.get_closest_marker("browser") is not None
    if not item.get_closest_marker("django_db") and not NEED_DATABASE & {*getattr(item, "fixturenames", ())}:
        item.add_marker(pytest.mark.pure)
    elif item.location[0] in ON_BOTH_PATHS and not ONCE & {mark.name for mark in item.iter_markers()}:
        item.add_marker(pytest.mark.both)
    if is_browser:  # once more and named as RERUN: on a busy machine it may miss its deadlines
        item.add_marker(pytest.mark.flaky(reruns=1))
    item.add_marker(pytest.mark.xdist_group(f"{item.location[0]}{' in a browser' * is_browser}"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: Playwright leaves an event loop running, in which `asyncio.run` would fail.

    Of these the large modules first, above all those with a test that may take longer than others: no process
    is left alone with one. Within a module the tests that find nothing in the database come before those that
    share rows.
    """
    sizes = Counter(item.path for item in items)
    sizes.update({item.path: len(items) for item in items if item.get_closest_marker("timeout")})
    order = {path: place for place, path in enumerate(dict.fromkeys(item.path for item in items))}

    def place(item: pytest.Item) -> tuple[bool, int, int, bool]:
        is_browser = item.get_closest_marker("browser") is not None
        return is_browser, -sizes[item.path] if is_browser else 0, order[item.path], uses_rows_once(item)

    items.sort(key=place)


# ---------- browser ----------


@pytest.fixture(autouse=True)
def nothing_on_its_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """The database is emptied only when the live server has answered what a closed page had still asked.

    A request in flight would hold locks that the flush waits for, or write rows that the next test meets.
    """
    if "live_server" not in request.fixturenames:
        yield
        return
    request.getfixturevalue("transactional_db")
    yield
    deadline = time.monotonic() + 30
    while connections := [one for one in threading.enumerate() if "process_request_thread" in one.name]:
        assert time.monotonic() < deadline, f"the live server still answers: {connections}"
        time.sleep(0.01)


@pytest.fixture(scope="session")
def base_url() -> None:
    """In place of pytest-base-url's own fixture, which warns under pytest 9; tests use `live_server.url`."""


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The system's Chromium; without one a named skip, on CI a failure."""
    path = browsing.browser_path()
    if path is None and os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail("CI needs a browser: no " + ", ".join(browsing.BROWSERS))
    if path is None:
        pytest.skip("no browser here: " + ", ".join(browsing.BROWSERS))
    # Django refuses the ORM in a thread with a running event loop, and Playwright leaves one in this thread.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    return {**browser_type_launch_args, "executable_path": path, "args": ["--no-sandbox"]}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    """No transitions: a check of contrast must not meet colours half way."""
    return {**browser_context_args, "reduced_motion": "reduce"}


@pytest.fixture(params=["light", pytest.param("dark", marks=pytest.mark.heavy)])
def each_scheme(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests with `assert_fine`: the scheme of the first size, the next sizes take turns."""
    if request.param == "dark":
        monkeypatch.setattr(browsing, "schemes", ("dark", "light"))


@pytest.fixture
def both_schemes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For heavy tests with `assert_fine`: every size in both schemes, on a page that is loaded once."""
    monkeypatch.setattr(browsing, "every_scheme", True)
