// The draft of one form: kept in this browser at once, and on the server shortly after the last key.

import { Trouble, call } from "./api.js";
import { attempt, timeOfDay } from "./local.js";
import { fill, fingerprint, same, shownOf, valuesOf } from "./form_values.js";

const PAUSE = 800; // ms after the last key
const LONGEST_WAIT = 30_000; // ms between two attempts when offline
const URL = "/api/form-drafts/";
// {key, account, page, button, signin}: a form that was sent, until a page answers
export const PENDING = "lace-form-pending";

export const storeOf = (account, key) => `lace-form-${account}-${key}`;

export class FormDraft {
  #form;
  #account;
  #key;
  #store;
  #base;
  #shown; // the values with which the page was shown
  #revision = 0;
  #timer = 0;
  #wait = 0;
  #running = null;
  #again = false;
  #conflict = false;
  #filling = false;
  #notice;
  #state;

  constructor({ form, key, account }) {
    this.#account = account;
    this.#form = form;
    this.#key = key;
    this.#store = storeOf(account, key);
    this.#shown = valuesOf(form, { shown: true });
    this.#base = fingerprint(JSON.stringify(shownOf(form)));
    this.#addParts();
    for (const kind of ["input", "change"]) {
      form.addEventListener(kind, ({ target }) => "noDraft" in target.dataset || this.#edited());
    }
    form.addEventListener("submit", (event) => this.#sending(event), { capture: true });
    addEventListener("online", () => this.#wait && this.#save());
    addEventListener("pagehide", () => this.#timer && this.#save());
  }

  get key() {
    return this.#key;
  }

  #addParts() {
    const key = Object.assign(document.createElement("input"), { type: "hidden", name: "form_draft" });
    key.value = this.#key;
    this.#notice = Object.assign(document.createElement("div"), { className: "draft-notice", hidden: true });
    this.#notice.setAttribute("role", "status");
    this.#state = Object.assign(document.createElement("small"), { className: "draft-state" });
    this.#form.prepend(key, this.#notice);
    this.#form.append(this.#state);
  }

  // Shows what an earlier visit left: this browser's copy if it is newer than the server's.
  async open() {
    const local = attempt(() => JSON.parse(localStorage.getItem(this.#store)));
    const stored = await this.#stored();
    if (stored === undefined && !local) return; // offline, and nothing here
    if (local && stored === null && local.revision) return this.#forget(); // accepted, or discarded elsewhere
    const newer = local && !(stored?.revision > local.revision);
    const draft = newer ? { ...local, revision: stored?.revision ?? 0 } : stored;
    if (!draft || same(draft.values, this.#shown)) {
      this.#revision = draft?.revision ?? 0;
      return;
    }
    this.#revision = draft.revision;
    const now = valuesOf(this.#form);
    const typing = !same(now, this.#shown) && !same(now, draft.values); // while the server was asked
    if (typing) this.#offer("There is a draft of this form", "Use the draft", draft);
    else if (draft.base === this.#base) this.#restore(draft);
    else this.#offer("The saved text has changed since your draft", "Use the draft", draft);
  }

  // undefined where the server cannot be reached
  async #stored() {
    try {
      const response = await call("GET", `${URL}?key=${encodeURIComponent(this.#key)}`);
      return response.ok ? (await response.json()).draft : null;
    } catch {
      return undefined;
    }
  }

  #restore(draft) {
    this.#fill(draft.values);
    this.#tell(`Draft${draft.updated_at ? ` of ${timeOfDay(draft.updated_at)}` : ""} restored.`, [
      ["Discard", () => this.#discard()],
    ]);
    if (draft.base !== this.#base) this.#edited();
  }

  #offer(words, label, draft) {
    this.#conflict = true;
    this.#tell(`${words}.`, [
      [label, () => this.#settle(draft.revision, () => this.#restore(draft))],
      ["Keep what is shown", () => this.#settle(draft.revision, () => this.#edited())],
    ]);
  }

  #settle(revision, then) {
    this.#conflict = false;
    this.#revision = revision;
    this.#notice.hidden = true;
    then();
  }

  #tell(words, actions) {
    const buttons = actions.map(([label, act]) => {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "plain" });
      button.textContent = label;
      button.addEventListener("click", act);
      return button;
    });
    this.#notice.replaceChildren(words, ...buttons.flatMap((one) => [" ", one]));
    this.#notice.hidden = false;
  }

  async #discard() {
    this.#fill(this.#shown);
    this.#notice.hidden = true;
    this.#forget();
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#state.textContent = "";
    await attempt(() => call("DELETE", `${URL}?key=${encodeURIComponent(this.#key)}`));
    this.#revision = 0;
  }

  #forget() {
    attempt(() => localStorage.removeItem(this.#store));
  }

  #keepHere() {
    const known = { base: this.#base, revision: this.#revision, updated_at: new Date().toISOString() };
    const entry = JSON.stringify({ ...known, values: valuesOf(this.#form) });
    attempt(() => localStorage.setItem(this.#store, entry));
  }

  #fill(values) {
    this.#filling = true;
    fill(this.#form, values);
    this.#filling = false;
  }

  #edited() {
    if (this.#filling) return;
    this.#keepHere();
    if (this.#conflict) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#save(), PAUSE);
  }

  #save() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (this.#running) return (this.#again = true);
    this.#running = this.#send().finally(() => {
      this.#running = null;
      if (this.#again) this.#save();
    });
  }

  async #send() {
    this.#again = false;
    const values = valuesOf(this.#form);
    const body = { key: this.#key, values, base: this.#base, revision: this.#revision };
    try {
      const response = await call("PUT", URL, body);
      const { draft } = await response.json();
      if (response.status === 409) return this.#changedElsewhere(draft);
      if (!response.ok) return this.#say("Too long for a draft: this browser alone keeps it");
      this.#wait = 0;
      this.#revision = draft.revision;
      this.#say(`Draft saved ${timeOfDay(draft.updated_at)}`);
    } catch (error) {
      this.#wait = Math.min(this.#wait * 2 || 1000, LONGEST_WAIT);
      this.#timer = setTimeout(() => this.#save(), this.#wait);
      const word = error instanceof Trouble ? error.word.toLowerCase() : "server trouble";
      this.#say(`Draft not saved: ${word}. This browser keeps it`);
    }
  }

  #changedElsewhere(draft) {
    if (draft && !same(draft.values, valuesOf(this.#form))) {
      return this.#offer("Another tab has changed this draft", "Use that draft", draft);
    }
    this.#revision = draft?.revision ?? 0;
    if (!draft) this.#save(); // it was discarded or sent elsewhere, and here somebody goes on
  }

  #say(words) {
    this.#state.textContent = words;
  }

  #sending(event) {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const button = event.submitter;
    if (this.#running) {
      // A draft on its way arrives first: after the form was accepted it would come back.
      event.preventDefault();
      event.stopImmediatePropagation();
      this.#again = false;
      return this.#running.then(() => this.#form.requestSubmit(button));
    }
    this.#keepHere();
    const page = location.pathname + location.search;
    const pressed = button?.name ? [button.name, button.value] : null;
    const sent = { key: this.#key, account: this.#account, page, button: pressed };
    attempt(() => sessionStorage.setItem(PENDING, JSON.stringify(sent)));
  }

  // Once, after a sign-in by the same account: it was sent while the session had expired.
  sendAgain(button) {
    const local = attempt(() => JSON.parse(localStorage.getItem(this.#store)));
    if (!local) return;
    this.#fill(local.values);
    const buttons = [...this.#form.elements].filter((one) => one.type === "submit");
    const pressed = ({ name, value }) => button && name === button[0] && value === button[1];
    this.#form.requestSubmit(buttons.find(pressed));
  }

  accepted() {
    this.#forget();
    attempt(() => call("DELETE", `${URL}?key=${encodeURIComponent(this.#key)}`));
  }
}
