"""`python -m docs_tools.screenshots` takes docs/images/*.png of a demo that it builds and serves."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs/images"
WIDTH, HEIGHT, COLOURS = 1440, 900, 128
LARGEST = 120_000  # bytes


@dataclass(frozen=True, slots=True)
class Shot:
    """A page as one of the accounts sees it; `press`, in a row with `row`, is pressed before the picture."""

    name: str
    account: str
    path: str
    press: str = ""
    shows: str = "h1"
    row: str = ""


SHOTS = (
    Shot("rate", "rater", "/", press="Start chat", shows="#why"),
    Shot("home", "lead", "/"),
    Shot("report", "lead", "/reports/", press="Run", shows="table:visible", row="Simulated judge"),
    Shot("criterion", "author", "/criteria/caused_needless_turns/"),
    Shot("editor", "author", "/criteria/caused_needless_turns/prompt/", shows="#text-objective"),
    Shot("gate", "lead", "/regressions/6/"),
    Shot("monitoring", "lead", "/monitoring/", shows="main svg:visible"),
    Shot("alert", "lead", "/alerts/1/"),
)


def main() -> None:
    """Take all pictures, or those named as arguments; LACE_DEMO_URL and LACE_DEMO_PASSWORD name a demo."""
    wanted = [shot for shot in SHOTS if not sys.argv[1:] or shot.name in sys.argv[1:]]
    with demo() as (url, password), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for shot in wanted:
            data = small(picture(browser, shot, url, password))
            if len(data) > LARGEST:
                raise SystemExit(f"{shot.name}.png has {len(data):,} bytes, more than {LARGEST:,}")
            (IMAGES / f"{shot.name}.png").write_bytes(data)
            print(f"{shot.name}.png {len(data):,} bytes")
        browser.close()


def chromium() -> str | None:
    """Return the browser of this machine."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def demo() -> Iterator[tuple[str, str]]:
    """Build and serve a demo of its own; address and password."""
    if "LACE_DEMO_URL" in os.environ:
        yield os.environ["LACE_DEMO_URL"], os.environ["LACE_DEMO_PASSWORD"]
        return
    with tempfile.TemporaryDirectory() as folder:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        path = Path(folder)
        places = {"LACE_DATA_DIR": folder, "LACE_BROKER_DIR": str(path / "broker"), "PORT": str(port)}
        env = os.environ | places | {"DATABASE_URL": f"sqlite:///{path / 'demo.sqlite3'}"}
        manage = [sys.executable, str(ROOT / "manage.py")]
        subprocess.run([*manage, "migrate", "--verbosity", "0"], env=env, check=True)
        subprocess.run([*manage, "create_demo", "--evaluate"], env=env, check=True, stdout=subprocess.DEVNULL)
        log = path / "serve.log"
        with log.open("w") as file:
            serve = subprocess.Popen([*manage, "serve"], env=env, stdout=file, stderr=file)
        try:
            while "LACE workbench on" not in log.read_text():
                if serve.poll() is not None:
                    raise SystemExit(log.read_text())
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}", (path / "demo_password").read_text().strip()
        finally:
            serve.terminate()
            serve.wait()


def picture(browser: Browser, shot: Shot, url: str, password: str) -> bytes:
    """Return the upper part of the page as PNG, in light colours."""
    viewport = {"width": WIDTH, "height": HEIGHT}
    context = browser.new_context(viewport=viewport, color_scheme="light", reduced_motion="reduce")  # type: ignore[arg-type]
    page = context.new_page()
    page.set_default_timeout(60_000)
    sign_in(page, url, shot.account, password)
    page.goto(url + shot.path)
    if shot.press:
        place = page.locator("main tr").filter(has_text=shot.row).first if shot.row else page.locator("main")
        place.locator("a, button").filter(has_text=shot.press).first.click()
    page.locator(shot.shows).first.wait_for()
    page.wait_for_timeout(1_500)  # charts and panels
    page.evaluate("document.querySelectorAll('*').forEach((one) => one.scrollTo(0, 0))")
    data = page.screenshot()
    context.close()
    return data


def sign_in(page: Page, url: str, name: str, password: str) -> None:
    """Sign in by the form."""
    page.goto(url)
    page.get_by_label("User name or e-mail").fill(name)
    page.get_by_label("Password").fill(password)
    page.keyboard.press("Enter")
    page.locator(".account summary").wait_for()


def small(data: bytes) -> bytes:
    """Return the picture with few colours, which pages have anyway."""
    image = Image.open(BytesIO(data)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    out = BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    main()
