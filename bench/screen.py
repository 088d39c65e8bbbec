"""The rating screen in a real browser: key to saved, submit to the next chat, a long chat, and its weight."""

import gzip
import json
import os
import re
import socket
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from statistics import quantiles

from django.conf import settings
from django.contrib.staticfiles import finders
from django.db import connections
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Browser, Error, Page, sync_playwright

from bench import Figure
from bench._files import chat_lines, rubric, write_lines
from bench._workers import free_port
from labeling.chats.services.chats import chats_import
from labeling.jobs.services import job_open
from labeling.models.chats import Chat, ChatSet
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.people import Rater, Role, User
from labeling.models.rubric import Rubric
from labeling.people.services.roles import rater_for
from labeling.rating.services.leases import assignment_next
from labeling.rubric.services.rubric import rubric_import
from lace_site.keeper import start, stop
from lace_site.management.commands.serve import web_command
from tests.browsing import browser_path

CHATS, CRITERIA, LONG_CHAT = 30, 10, 200
WARM = 3  # chats at the beginning that are not counted
SAVED_MS, NEXT_MS, OPEN_S, WEIGHT_KB = 150.0, 300.0, 1.0, 150.0
PACES = {"hurried": 0.12, "unhurried": 0.5}  # seconds from key to key, the one that submits among them
PATIENCE = 30
SESSION = settings.SESSION_COOKIE_NAME

# Notes the ms from a key to the word "Saved", of the server's answer, from submitting to the frame in which
# another chat takes keys, and from the address to the first chat. It looks only when the page has changed.
WATCH = """
const now = () => performance.timeOrigin + performance.now();
const read = (name) => JSON.parse(sessionStorage.getItem(name) ?? "[]");
const add = (name, values) => sessionStorage.setItem(name, JSON.stringify([...read(name), ...values]));
let waiting = []; // keys whose answer is not saved yet
addEventListener("keydown", (event) => {
    if (event.key === "t" || event.key === "f") waiting.push(now());
    if (!event.ctrlKey || event.key !== "Enter") return;
    const { chat } = document.querySelector("h1").dataset;
    sessionStorage.setItem("left", JSON.stringify({ at: now(), chat }));
}, true);
const send = window.fetch;
window.fetch = async (...request) => {
    const sent = now();
    const response = await send(...request);
    if (String(request[0]).includes("/labels/")) add("answered", [now() - sent]);
    return response;
};
const look = () => {
    const save = document.querySelector("#save");
    if (save?.textContent) window.openedAt ??= performance.now();
    if (waiting.length && save?.textContent.startsWith("Saved ") && !save.classList.contains("busy")) {
        const at = now();
        add("saved", waiting.map((pressed) => at - pressed));
        waiting = [];
    }
    const left = JSON.parse(sessionStorage.getItem("left"));
    const chat = document.querySelector("h1")?.dataset.chat;
    if (!left || !chat || chat === left.chat || !save?.textContent) return;
    sessionStorage.removeItem("left");
    requestAnimationFrame(() => add("next", [now() - left.at]));
};
new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
"""


def figures() -> Iterator[Figure]:
    """One rater, one server as in production with SQLite, one browser."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # Playwright leaves an event loop in this thread
    job, rater = filled_workspace()
    with served() as url, browser() as chromium:
        page = signed_in(chromium, url, rater)
        weights = weight(page)
        warm(page, url)
        page.locator(".head form button").press("Enter")
        label(page, WARM, pace=PACES["unhurried"])
        found = {name: label(page, (CHATS - WARM - 1) // 2, pace=pace) for name, pace in PACES.items()}
        opened = long_chat(page, url, job, rater)
    for name, times in found.items():
        yield Figure(f"{name} rater, key to saved, p95", p95(times["saved"]), SAVED_MS, "ms")
        yield Figure(f"{name} rater, the server's part of it, p95", p95(times["answered"]), SAVED_MS, "ms")
        yield Figure(f"{name} rater, submit to the next chat, p95", p95(times["next"]), NEXT_MS, "ms")
    yield Figure(f"a chat of {LONG_CHAT} turns, opened", opened, OPEN_S, "s")
    yield Figure("script and style of the screen, gzip", sum(weights), WEIGHT_KB, "KB")


def p95(values: list[float]) -> float:
    """The 95th percentile."""
    return quantiles(values, n=20, method="inclusive")[-1]


@contextmanager
def served() -> Iterator[str]:
    """The web server in processes of its own."""
    connections.close_all()
    port = free_port()
    child = start(web_command(f"127.0.0.1:{port}"))
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
                break
            time.sleep(0.1)
        yield url
    finally:
        stop([child])


@contextmanager
def browser() -> Iterator[Browser]:
    """The system's Chromium."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        yield chromium
        chromium.close()


def signed_in(chromium: Browser, url: str, rater: Rater) -> Page:
    """A page of the rater's."""
    client = Client(SERVER_NAME="localhost")
    assert rater.user is not None
    client.force_login(rater.user)
    context = chromium.new_context(viewport={"width": 1280, "height": 720})
    context.add_cookies([{"name": SESSION, "value": client.cookies[SESSION].value, "url": url}])
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(url + reverse("labeling:queue"))
    return page


def weight(page: Page) -> list[float]:
    """KB of each script and style that the rating screen loads, compressed; collected while it is used."""
    found: set[str] = set()
    sizes: list[float] = []

    def add(address: str) -> None:
        match = re.search(r"/static/\w+/([^?]+\.(?:js|css))", address)
        if match and match[1] not in found:
            found.add(match[1])
            sizes.append(len(gzip.compress(Path(str(finders.find(match[1]))).read_bytes())) / 1024)

    page.on("response", lambda response: add(response.url))
    return sizes


def warm(page: Page, url: str) -> None:
    """Every thread of every worker has answered once before anything is measured."""
    cookies = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in page.context.cookies())

    def get(_: int) -> None:
        connection = HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE)
        connection.request("GET", reverse("labeling:queue"), headers={"Cookie": cookies})
        connection.getresponse().read()
        connection.close()

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(get, range(96)))


def label(page: Page, chats: int, *, pace: float) -> dict[str, list[float]]:
    """So many chats by key; ms of each key until saved and answered, and from chat to chat."""
    names = ("saved", "answered", "next")
    page.evaluate("names => names.forEach((name) => sessionStorage.removeItem(name))", names)
    for number in range(1, chats + 1):
        until(page, "document.querySelector('#why')?.textContent.startsWith('0 of')")
        for n in range(CRITERIA):
            page.keyboard.press("tf"[(n + number) % 2])
            time.sleep(pace)
        page.keyboard.press("Control+Enter")
        until(page, f"JSON.parse(sessionStorage.getItem('next') ?? '[]').length >= {number}")
    found: list[str] = page.evaluate("names => names.map((name) => sessionStorage.getItem(name))", names)
    return {name: json.loads(text) for name, text in zip(names, found, strict=True)}


def until(page: Page, condition: str) -> None:
    """Wait until it holds. NB: `wait_for_function` would need `eval`, which the page's CSP forbids."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(Error):  # the page is just changing
            if page.evaluate(condition):
                return
        time.sleep(0.05)
    raise RuntimeError(f"not within {PATIENCE} s: {condition}")


def long_chat(page: Page, url: str, job: LabelingJob, rater: Rater) -> float:
    """Seconds from the address to a chat of many turns that takes keys; the best of three."""
    assignment = assignment_next(rater=rater, job=job)
    assert assignment is not None
    turns = [
        {"n": n, "role": ("user", "assistant")[n % 2], "content": f"Turn {n} has **words**. " * 8}
        for n in range(1, LONG_CHAT + 1)
    ]
    Chat.objects.filter(pk=assignment.chat_id).update(messages=turns, message_count=LONG_CHAT)
    times = []
    for _ in range(3):
        page.goto(url + reverse("labeling:rate", args=[assignment.pk]))
        until(page, "window.openedAt")
        times.append(page.evaluate("window.openedAt") / 1000)
    return float(min(times))


def filled_workspace() -> tuple[LabelingJob, Rater]:
    """A job of one rater: chats of ten turns, ten criteria."""
    keys = [f"rule_{n}" for n in range(CRITERIA)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rubric.json").write_text(json.dumps(rubric(keys)), encoding="utf-8")
        rubric_import(path=folder / "rubric.json", articles_set=lambda criterion, keys: False)
        chats = write_lines(folder / "chats.jsonl", chat_lines(CHATS, prefix="chat-", seed=5))
        chats_import(path=chats, set_name="bench")
    user = User.objects.create_user("bench")
    user.groups.set(user.groups.model.objects.filter(name=Role.RATER))
    rater = rater_for(user=user)
    criteria = list(Rubric.objects.get(name="Benchmark").criteria.all())
    job = job_open(
        chat_set=ChatSet.objects.get(name="bench"),
        name="bench",
        criteria=criteria,
        raters=[rater],
        overlap=1,
        by=None,
    )
    assert Assignment.objects.filter(job=job).count() == CHATS
    return job, rater
