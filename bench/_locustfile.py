"""What raters, authors, leads and programs do; `bench/_crowd.py` lets locust run it.

It imports nothing of the workbench: locust has an environment of its own.
"""

import html
import itertools
import json
import os
import re
import time
import uuid
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from gevent import sleep, spawn
from locust import FastHttpUser, between, events, task
from locust.exception import StopUser

PLAN = json.loads(Path(os.environ["LACE_CROWD"]).read_text(encoding="utf-8"))
THINK = PLAN["think"]
ENDPOINT = PLAN.get("endpoint", "")  # an older version's plan may have none
NUMBERS = itertools.count(1)
NAMES = {role: itertools.cycle(names) for role, names in PLAN["accounts"].items()}
TOKENS = itertools.cycle(PLAN["tokens"])
BEGUN = time.monotonic()
FORM_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
# Parts of a page that a browser asks for as soon as the page is there.
TAG, TRIGGER, ADDRESS = (
    re.compile(r"<\w+[^>]*>"),
    re.compile(r'hx-trigger="load\b'),
    re.compile(r'hx-get="([^"]*)"'),
)
AGAIN_SECONDS, TRIES = 0.5, 240  # of those who try again, as the rating screen does

rows: list[tuple[str, str, float, float]] = []  # scenario, name, at, ms
errors: list[dict[str, Any]] = []
again = 0
saved: list[str] = []
runs: list[int] = []


@events.request.add_listener
def note(name: str, response_time: float, exception: Any, context: Any, response: Any, **_: Any) -> None:
    """Keep the time of each request that was answered, and what went wrong."""
    at = time.monotonic() - BEGUN
    rows.append((context["scenario"], name, at, response_time))
    if exception is not None:
        text = (getattr(response, "text", None) or "")[:300]
        error = {"scenario": context["scenario"], "name": name, "at": at, "error": str(exception)[:200]}
        errors.append(error | {"text": text})


@events.quitting.add_listener
def write(**_: Any) -> None:
    """Write down everything at the end."""
    result = {"rows": rows, "errors": errors, "again": again, "saved": saved, "runs": runs}
    Path(PLAN["result"]).write_text(json.dumps(result), encoding="utf-8")


class Client(FastHttpUser):  # type: ignore[misc]
    """Somebody or something that asks, with an address of its own, as behind a proxy with TLS."""

    abstract = True
    scenario = ""
    wait_time = between(THINK / 2, THINK * 3 / 2)
    network_timeout = connection_timeout = 60.0

    def on_start(self) -> None:
        number = next(NUMBERS)
        self.draw = Random(number)
        self.forwarded = {
            "X-Forwarded-Proto": "https",
            "X-Forwarded-For": f"10.0.{number // 250}.{number % 250 + 1}",
        }
        # Cookies are for TLS alone, which ends at the proxy.
        self.client.cookiejar.set_policy(DefaultCookiePolicy(secure_protocols=("http", "https")))

    def context(self) -> dict[str, str]:
        """Whose times these are."""
        return {"scenario": self.scenario}

    def ask(self, method: str, path: str, name: str, **options: Any) -> Any:
        """One request; some try until it is answered, as long as nothing is wrong with it."""
        global again
        headers = self.forwarded | options.pop("headers", {})
        for _ in range(TRIES if PLAN["repeat"] else 0):
            with self.client.request(
                method, path, name=name, headers=headers, catch_response=True, **options
            ) as answer:
                status = answer.status_code or 0
                if status < 400 and answer.request_meta["exception"]:
                    status = 0  # cut within the body
                if status not in PLAN["repeat"]:
                    return answer
                again += 1
                answer.success()
            sleep(AGAIN_SECONDS)
        return self.client.request(method, path, name=name, headers=headers, **options)


class Person(Client):
    """Somebody with an account and a browser."""

    abstract = True
    role = ""

    def on_start(self) -> None:
        super().on_start()
        self.sign_in()

    def sign_in(self) -> None:
        """By the form, with name and password."""
        asked = {"context": {"scenario": "sign-in"}}
        form = self.ask("GET", "/accounts/login/", "sign-in form", **asked)
        found = FORM_TOKEN.search(form.text or "")
        fields = {"login": next(NAMES[self.role]), "password": PLAN["password"]}
        fields["csrfmiddlewaretoken"] = found[1] if found else ""
        self.send(
            "POST", "/accounts/login/", "sign in", data=urlencode(fields), allow_redirects=False, **asked
        )
        self.get("/", "first page", **asked)

    def send(self, method: str, path: str, name: str, **options: Any) -> Any:
        """A request that changes something, as the scripts of a page send it."""
        token = next((one.value for one in self.client.cookiejar if "csrftoken" in one.name), "")
        headers = {"X-CSRFToken": token or "", "Referer": self.host.replace("http:", "https:") + "/"}
        if "data" in options:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        return self.ask(method, path, name, headers=headers, **options)

    def get(self, path: str, name: str, **options: Any) -> Any:
        """A page, and then the parts that load themselves."""
        page = self.ask("GET", path, name, **options)
        for tag in TAG.findall(page.text or ""):
            if TRIGGER.search(tag) and (part := ADDRESS.search(tag)):
                address = html.unescape(part[1])
                headers = {"HX-Request": "true"}
                self.ask("GET", address, f"{name}: {pattern(address)}", headers=headers, **options)
        return page


def pattern(address: str) -> str:
    """An address without its query, its numbers and the key of its criterion."""
    return re.sub(r"\d+", "N", re.sub(r"/criteria/\w+/", "/criteria/KEY/", address.partition("?")[0]))


class Rater(Person):
    """Labels one chat after the other: a key each time."""

    role = scenario = "rater"
    fixed_count = PLAN["counts"]["rater"]
    abstract = not fixed_count
    assignment = 0
    open_keys: list[str]

    @task
    def work(self) -> None:
        """The next step."""
        if not self.assignment:
            self.get("/queue/", "queue")
            self.open_next()
        elif self.open_keys:
            self.save(self.open_keys.pop())
        else:
            url = f"/api/assignments/{self.assignment}/submit/"
            self.send("POST", url, "submit", json={})
            self.open_next()

    def open_next(self) -> None:
        """Lease the next chat and open it."""
        answer = self.send("POST", f"/api/jobs/{PLAN['job']}/next/", "next", json={"ahead": False})
        found = answer.json() if answer.status_code == 200 else {}
        self.assignment, self.open_keys = found.get("assignment") or 0, list(PLAN["criteria"])
        if self.assignment:
            self.get(found["url"], "rating screen")

    def save(self, key: str) -> None:
        """One answer; the run ends with the last one that was asked for."""
        client_id = str(uuid.uuid4())
        body = {"client_id": client_id, "value": self.draw.random() < 0.8, "revision": 0}
        url = f"/api/assignments/{self.assignment}/labels/{key}/"
        if self.send("PUT", url, "save a label", json=body).status_code == 200:
            saved.append(client_id)
        if PLAN["saves"] and len(saved) >= PLAN["saves"]:
            if len(saved) == PLAN["saves"]:
                spawn(self.environment.runner.quit)  # which ends this user
            raise StopUser


class Author(Person):
    """Reads disagreements and writes on a prompt."""

    role = scenario = "author"
    fixed_count = PLAN["counts"]["author"]
    abstract = not fixed_count

    def on_start(self) -> None:
        self.revisions: dict[str, int] = {}
        super().on_start()

    @task(2)
    def disagreements(self) -> None:
        """The list, then one of them."""
        self.get("/misalignments/", "disagreements")
        if PLAN["misalignments"]:
            self.wait()
            self.get(f"/misalignments/{self.draw.choice(PLAN['misalignments'])}/", "a disagreement")

    @task(3)
    def write(self) -> None:
        """Open the editor, and change the text three times."""
        prompt = self.draw.choice(PLAN["prompts"])
        key = prompt["criterion"]
        self.get(f"/criteria/{key}/prompt/", "editor")
        for _ in range(3):
            self.wait()
            revision = self.revisions.get(key, 0)
            body = {"base": prompt["number"], "revision": revision, "text": f"{prompt['text']}\n{revision}"}
            answer = self.send("PUT", f"/api/criteria/{key}/draft/", "save a draft", json=body)
            if answer.status_code == 200:
                self.revisions[key] = answer.json()["revision"]

    @task(1)
    def criterion(self) -> None:
        """The criteria, then one."""
        self.get("/criteria/", "criteria")
        self.wait()
        self.get(f"/criteria/{self.draw.choice(PLAN['prompts'])['criterion']}/", "a criterion")

    @task(1)
    def tests(self) -> None:
        """The regression tests."""
        self.get("/regressions/", "regression tests")


class Lead(Person):
    """Looks after everything."""

    role = scenario = "lead"
    fixed_count = PLAN["counts"]["lead"]
    abstract = not fixed_count

    @task(3)
    def home(self) -> None:
        """What is to be done."""
        self.get("/", "home")

    @task(2)
    def report(self) -> None:
        """The alignment report of a run."""
        self.get(f"/reports/runs/{PLAN['run']}/", "report")

    @task(2)
    def monitoring(self) -> None:
        """All criteria in production, then one."""
        self.get("/monitoring/", "monitoring")
        self.wait()
        key = self.draw.choice(PLAN["prompts"])["criterion"]
        self.get(f"/monitoring/criteria/{key}/", "monitoring of a criterion")

    @task(1)
    def people(self) -> None:
        """Accounts and jobs."""
        self.get("/people/", "people")
        self.wait()
        self.get(f"/jobs/{PLAN['job']}/", "job")

    @task(1)
    def runs(self) -> None:
        """The runs, then one."""
        self.get("/runs/", "runs")
        self.wait()
        self.get(f"/runs/{PLAN['run']}/", "run")

    @task(1)
    def issues(self) -> None:
        """Issues and alerts."""
        self.get("/issues/", "issues")
        self.wait()
        self.get("/alerts/", "alerts")


class Program(Client):
    """Sends chats, starts runs and reads reports, with a token."""

    scenario = "program"
    fixed_count = PLAN["counts"]["program"]
    abstract = not fixed_count

    def on_start(self) -> None:
        super().on_start()
        self.number = 0
        self.token = next(TOKENS)

    def call(self, method: str, path: str, name: str, **options: Any) -> Any:
        """A request with the token."""
        return self.ask(method, path, name, headers={"Authorization": f"Token {self.token}"}, **options)

    @task(4)
    def chats(self) -> None:
        """Ten new chats."""
        said = [("user", "Where is my order?"), ("assistant", "It leaves tomorrow.")]
        messages = [{"role": role, "content": text} for role, text in said * 4]
        lines = [{"id": str(uuid.uuid4()), "messages": messages} for _ in range(10)]
        self.call("POST", "/api/chats/", "send chats", json={"source": "bench", "chats": lines})

    @task(2)
    def read(self) -> None:
        """A report as JSON, where there is one."""
        if not PLAN["run"]:
            return
        self.call("GET", f"/api/runs/{PLAN['run']}/alignment_report/", "report as JSON")

    @task(2)
    def labels(self) -> None:
        """A page of labels."""
        self.call("GET", f"/api/labels/?set={quote(PLAN['set'])}", "labels")

    @task(2)
    def judge(self) -> None:
        """A run of two chats, until it has ended."""
        self.number += 1
        body = {"set": PLAN["set"], "engine": "direct", "endpoint": ENDPOINT, "limit": 2}
        body["replicate"] = self.draw.randrange(3000)
        answer = self.call("POST", "/api/runs/", "start a run", json=body)
        if answer.status_code not in (200, 202):
            return
        run = answer.json()["id"]
        runs.append(run)
        for _ in range(10):
            self.wait()
            answer = self.call("GET", f"/api/runs/{run}/", "state of a run")
            if answer.status_code != 200 or answer.json()["state"] not in ("running", "planned"):
                break
