// Submits or skips a chat and opens the next one.

import { call, ended, reasons } from "../../common/api.js";
import { load, rememberSubmitted } from "./rate_next.js";

const $ = (selector, root = document) => root.querySelector(selector);

export class Finish {
  leaving = false; // keys wait for the next chat
  left = false; // the server has the chat: no warning when leaving
  #screen;
  #page;

  constructor(screen, page) {
    this.#screen = screen;
    this.#page = page;
  }

  async submit() {
    const screen = this.#screen;
    if (this.leaving || (screen.stopped && !screen.submitted)) return;
    screen.commitComment();
    const [next] = screen.unfinished;
    if (next) {
      screen.open(next);
      screen.say($("#why").textContent);
      return;
    }
    await this.#leave((why) => screen.say(`Not submitted: ${why}`), async () => {
      await screen.saving.flush();
      if (screen.submitted) return this.#onwardsFromSubmitted();
      if (screen.stopped) return false;
      if (screen.saving.unsent) return this.#unsaved("Not submitted: answers are not saved yet");
      return this.#submitted(await call("POST", this.#page.urls.submit, this.#known()));
    });
  }

  // complain(why): reports the failure; the chat stays open
  async #leave(complain, work) {
    this.leaving = true;
    this.#screen.renderTotals();
    try {
      this.leaving = Boolean(await work());
    } catch (error) {
      this.leaving = false;
      complain(this.#screen.dock.failed(error));
    }
    if (!this.leaving) this.#screen.renderTotals();
  }

  // The revisions and the text versions on this page.
  #known() {
    const { saving, clock } = this.#screen;
    return { revisions: saving.revisions, guideline: this.#page.guideline || null, active_ms: clock.unsent };
  }

  #unsaved(text) {
    this.#screen.open(this.#screen.saving.waiting[0]);
    this.#screen.say(text);
    return false;
  }

  #onwardsFromSubmitted() {
    const { saving, stopped } = this.#screen;
    if (saving.unsent && !stopped) return this.#unsaved("Your change is not saved yet");
    location.assign($("#onwards").href);
    return true;
  }

  async #submitted(response) {
    const body = await response.clone().json();
    if (response.ok) {
      this.#screen.kept.forget();
      rememberSubmitted();
      return this.#next("submitted", body.next);
    }
    if (response.status === 400) return this.#screen.say(`Not submitted: ${reasons(body)}`);
    const incomplete = body.evidence?.length ? "Evidence is missing" : "A comment is missing";
    const reason = { unanswered: "Not answered yet", incomplete }[body.code];
    if (body.code === "stale") await this.#screen.reread(body.criteria);
    else if (reason) this.#screen.say(`${reason}: ${this.#screen.names(body.criteria)}`);
    else this.#screen.saving.stop(await ended(response));
    if (body.criteria?.length) this.#screen.open(body.criteria[0]);
    return false;
  }

  async skip(form) {
    const screen = this.#screen;
    const problem = $(".error", form);
    const show = (why) => {
      problem.textContent = why;
      problem.hidden = !why;
    };
    if (this.leaving) return;
    await this.#leave(show, async () => {
      await screen.saving.flush();
      const given = { reason: new FormData(form).get("reason"), text: $("#skip-text").value };
      const response = await call("POST", this.#page.urls.skip, given);
      show(response.status === 400 ? reasons(await response.json()) : "");
      if (response.status === 400) return false;
      $("#skip").close();
      if (!response.ok) return screen.saving.stop(await ended(response));
      return this.#next("skipped", (await response.json()).next);
    });
  }

  // Informs the other tabs and shows the next chat.
  async #next(word, url) {
    this.left = true;
    this.#screen.tabs.gone(word);
    const age = await this.#screen.ahead.show();
    if (age === null) load(url);
    else this.#screen.replaced(age);
    return true;
  }
}
