// The rating screen of one chat: what is shown and what the rater does. People's text is only ever set as text.

import { Answers } from "./rate_answers.js";
import { call, reasons } from "./rate_api.js";
import { Clock } from "./rate_clock.js";
import { Guide, watchTexts } from "./rate_guide.js";
import { Lease } from "./rate_lease.js";
import { Ahead, load, offerBack, rememberSubmitted } from "./rate_next.js";
import { Notes } from "./rate_notes.js";
import { wireReveal } from "./rate_reveal.js";
import { Saving } from "./rate_saving.js";
import { Search } from "./rate_search.js";
import { Spans, clearTints } from "./rate_spans.js";
import { Tabs } from "./rate_tabs.js";
import { Picking } from "./rate_turns.js";
import { CriterionView, clashView } from "./rate_views.js";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const TYPING_PAUSE = 800; // ms without a key before a comment is saved

export class Screen {
  opened = "";
  path = location.pathname;
  leaving = false; // the chat is being submitted: keys wait for the next one
  #page = JSON.parse($("#rate-state").textContent);
  #end = new AbortController();
  #views = new Map();
  #typing = 0;
  #saidTimer = 0;

  // replaced(): the page of the next chat stands in place of this one
  constructor(replaced) {
    this.replaced = replaced;
    const { signal } = this.#end;
    const page = this.#page;
    const by = (name) => Object.fromEntries(page.criteria.map((one) => [one.key, one[name]]));
    const versions = by("version");
    const store = page.store;
    this.saving = new Saving({ store, url: page.urls.assignment, versions, revisions: by("revision"), on: this.#savingCalls(), signal });
    const { kept } = this.saving;
    this.spans = new Spans(page.texts);
    this.answers = new Answers({ page, saving: this.saving, changed: (key) => this.#render(key) });
    this.picking = new Picking({ toggle: (n, on) => this.#pickTurn(n, on), turn: (n) => this.spans.turn(n) });
    this.search = new Search(() => this.focusAnswer());
    this.guide = new Guide(() => this.focusAnswer());
    this.notes = new Notes({ url: page.urls.notes, say: (text) => this.say(text) });
    this.clock = new Clock({ before: page.active_ms, active: kept.active, signal });
    this.tabs = new Tabs({ store, on: this.#tabCalls(), signal });
    for (const one of page.criteria) this.#views.set(one.key, new CriterionView(one, this));
    this.#holdChat(signal);
    const names = Object.fromEntries(this.answers.keys.map((key) => [key, this.name(key)]));
    watchTexts({ url: page.urls.assignment, versions, names, signal });
    this.#start();
  }

  get submitted() {
    return this.#page.submitted;
  }

  get stopped() {
    return this.saving.stopped;
  }

  name(key) {
    return this.#views.get(key).name;
  }

  view() {
    return this.#views.get(this.opened);
  }

  #start() {
    for (const key of this.answers.keys) this.#render(key);
    this.open(this.answers.incomplete[0] ?? this.answers.keys[0], { focus: false });
    this.saving.show();
    for (const key of this.saving.clashing) this.#showClash(key);
    if (this.saving.unsent) this.saving.flush();
    this.guide.notice((key) => this.open(key));
    offerBack({ signal: this.#end.signal });
    const { reveal } = this.#page.urls;
    if (reveal) {
      const item = (key) => this.#views.get(key)?.item;
      const shown = () => {
        this.#page.revealed = true;
        this.#renderTotals();
      };
      wireReveal({ button: $("#reveal"), url: reveal, item, say: (text) => this.say(text), shown });
    }
  }

  end() {
    this.#end.abort();
    clearTimeout(this.#typing);
    clearTimeout(this.#saidTimer);
    clearTints();
  }

  // ---------- what the others report ----------

  #savingCalls() {
    return {
      state: (text, kind) => this.#showSaving(text, kind),
      stop: (message) => this.#showStop(message),
      refuse: (message) => this.say(`Not saved: ${message}`),
      saved: (key, answer, { revision, post_reveal }) => {
        this.lease?.renewed();
        this.tabs.saved(key, answer, revision);
        if (post_reveal) this.#views.get(key).uncounted();
      },
      clash: (key) => this.#showClash(key),
      time: (key) => this.clock.take(key),
    };
  }

  #tabCalls() {
    return {
      others: (count) => ($("#tabs").hidden = !count),
      saved: (key, answer, revision) => {
        if (!this.saving.adopt(key, revision)) return;
        this.answers.take(key, answer);
        this.say(`Changed in another tab: ${this.name(key)}`);
      },
      gone: (word) => this.saving.stop(`This chat was ${word} in another tab.`),
    };
  }

  #holdChat(signal) {
    const { lease, urls } = this.#page;
    this.ahead = new Ahead({ url: urls.ahead, id: this.#page.id });
    if (!lease) return;
    const extend = async () => {
      try {
        const response = await call("POST", urls.extend);
        const body = await response.json();
        if (response.ok) return new Date(body.expires_at) - Date.now() + this.#skew;
        this.saving.stop(body.detail ?? "This chat is no longer yours.");
      } catch {
        this.say("Not extended: the server can’t be reached. Try again.");
      }
      return null;
    };
    this.lease = new Lease({ ...lease, extend, signal });
  }

  // ms by which this computer's clock is ahead of the server's
  #skew = Date.now() - this.#page.now;

  // ---------- showing ----------

  #showSaving(text, kind) {
    const words = text || (this.answers?.some ? "Saved" : "Saves as you answer");
    const field = $("#save");
    field.className = `save soft nowrap ${kind}`;
    if (field.textContent !== words) field.textContent = words;
  }

  #showStop(message) {
    $("#stopped p").textContent = message;
    $("#stopped").hidden = false;
    $("#lease").hidden = true;
    for (const control of $$("input, textarea, .pick-turns, .ev button", $("#ask"))) control.disabled = true;
    this.#renderTotals();
  }

  #showClash(key) {
    const { theirs, answer } = this.saving.kept.pending[key];
    const settle = (mine) => {
      this.saving.settle(key, mine);
      if (!mine) this.answers.take(key, theirs);
    };
    this.#views.get(key).clash(clashView({ theirs, answer, name: this.name(key), settle }));
  }

  #render(key) {
    const view = this.#views.get(key);
    const answer = this.answers.of(key);
    view.show(answer, this.answers.lack(key), { typing: this.#typing });
    if (key === this.opened) this.#tint(answer);
    this.#renderTotals();
  }

  #tint({ evidence }) {
    this.picking.mark(evidence);
    this.spans.show(evidence);
  }

  #renderTotals() {
    for (const group of $$("[data-group]")) {
      const here = [...this.#views.values()].filter(({ item }) => group.contains(item));
      const done = here.filter(({ key }) => !this.answers.lack(key)).length;
      $("h2 span", group).textContent = `${done} of ${here.length}`;
    }
    const why = this.submitted ? "Changes count at once" : this.answers.status((key) => this.name(key));
    $("#why").textContent = this.submitted && this.#page.revealed ? "Changes are kept, and not counted" : why;
    if (this.submitted) return;
    $("#submit").disabled = this.stopped || this.answers.incomplete.length > 0;
    $("#skip-chat").disabled = this.stopped;
    this.ahead.fetch(this.answers.incomplete.length);
  }

  say(text) {
    const toast = $("#said");
    toast.hidden = false;
    toast.textContent = text;
    clearTimeout(this.#saidTimer);
    this.#saidTimer = setTimeout(() => (toast.hidden = true), 5000);
  }

  // ---------- moving ----------

  open(key, { focus = true } = {}) {
    this.commitComment();
    this.picking.end();
    this.opened = key;
    this.clock.open(key);
    this.guide.follow(key);
    for (const view of this.#views.values()) view.toggle(view.key === key);
    this.#tint(this.answers.of(key));
    if (focus) this.view().reveal();
  }

  focusAnswer() {
    this.view().focus();
  }

  move(step) {
    const { keys } = this.answers;
    this.open(keys[(keys.indexOf(this.opened) + step + keys.length) % keys.length]);
  }

  #advance() {
    const { keys } = this.answers;
    const at = keys.indexOf(this.opened);
    if (this.answers.lack(this.opened)) return this.#stay();
    const next = [...keys.slice(at + 1), ...keys.slice(0, at)].find((key) => this.answers.lack(key));
    return next ? this.open(next) : this.focusAnswer();
  }

  #stay() {
    this.say(this.answers.lack(this.opened) === "evidence" ? "False needs evidence" : "A comment is needed");
    this.focusAnswer();
  }

  // ---------- answering ----------

  answer(value, { stay = false } = {}) {
    if (this.stopped || (value === null && !this.view().allowNa)) return;
    this.commitComment();
    this.answers.change(this.opened, { ...this.answers.of(this.opened), answered: true, value });
    if (!stay) this.#advance();
  }

  travel(back) {
    if (this.stopped) return;
    this.commitComment();
    const key = this.answers.travel(back, this);
    if (key === null) return this.say("A submitted answer can be changed, not cleared");
    if (!key) return this.say(back ? "Nothing to undo" : "Nothing to redo");
    this.open(key);
    return this.say(`${back ? "Undone" : "Redone"}: ${this.name(key)}`);
  }

  typed() {
    clearTimeout(this.#typing);
    this.#typing = setTimeout(() => this.commitComment(), TYPING_PAUSE);
  }

  commitComment() {
    clearTimeout(this.#typing);
    this.#typing = 0;
    if (!this.opened || this.stopped) return;
    const text = this.view().comment;
    const answer = this.answers.of(this.opened);
    if (text !== answer.rationale) this.answers.change(this.opened, { ...answer, rationale: text });
  }

  // ---------- evidence ----------

  #pickTurn(n, on) {
    const { evidence } = this.answers.of(this.opened);
    const others = evidence.filter((part) => part.message !== n || part.start !== undefined);
    this.setEvidence(on ? [...others, { message: n }] : others);
  }

  setEvidence(evidence) {
    const place = ({ message, start }) => message * 1e6 + (start ?? -1);
    const inOrder = evidence.toSorted((a, b) => place(a) - place(b));
    this.answers.change(this.opened, { ...this.answers.of(this.opened), evidence: inOrder });
  }

  // The selected words become evidence; without any, turns are picked.
  addEvidence() {
    if (this.stopped) return undefined;
    const part = this.spans.selected();
    if (part === "several") return this.say("Select words inside one turn");
    $("#said").hidden = true;
    if (!part) return this.picking.start(this.answers.of(this.opened).evidence);
    const { evidence } = this.answers.of(this.opened);
    const same = ({ message, start, end }) => message === part.message && start === part.start && end === part.end;
    if (!evidence.some(same)) this.setEvidence([...evidence, part]);
    if (this.picking.words) return this.picking.leave();
    getSelection().removeAllRanges();
    return this.focusAnswer();
  }

  endPicking() {
    this.picking.end();
    this.view().reveal();
  }

  // ---------- notes ----------

  note(kind) {
    const { name, text, version } = this.view();
    this.notes.open(kind, { key: this.opened, name, text, version });
  }

  // ---------- finishing ----------

  async submit() {
    if (this.stopped || this.leaving) return;
    this.commitComment();
    const [next] = this.submitted ? [] : this.answers.incomplete;
    if (next) {
      this.open(next);
      this.say($("#why").textContent);
      return;
    }
    this.leaving = true;
    try {
      await this.saving.flush();
      if (this.stopped) return;
      if (this.saving.unsent) this.say("Not submitted: answers are not saved yet");
      else if (this.submitted) location.assign($("#onwards").href);
      else await this.#finish(await call("POST", this.#page.urls.submit), "submitted");
    } catch {
      this.say("Not submitted: the server can’t be reached. Try again.");
    } finally {
      this.leaving = false;
    }
  }

  async skip(form) {
    const problem = $(".error", form);
    const reason = new FormData(form).get("reason");
    const text = $("#skip-text").value;
    try {
      const response = await call("POST", this.#page.urls.skip, { reason, text });
      problem.textContent = response.status === 400 ? reasons(await response.json()) : "";
      if (response.status !== 400) {
        $("#skip").close();
        await this.#finish(response, "skipped");
      }
    } catch {
      problem.textContent = "The server can’t be reached. Try again.";
    }
    problem.hidden = !problem.textContent;
  }

  async #finish(response, word) {
    const body = await response.json();
    if (response.ok) {
      this.saving.forget();
      this.tabs.gone(word);
      if (word === "submitted") rememberSubmitted();
      if (word === "submitted" && this.ahead.show()) return this.replaced();
      return load(body.next);
    }
    if (body.code !== "unanswered" && body.code !== "incomplete") return this.saving.stop(body.detail ?? "This chat is no longer yours.");
    if (this.#views.has(body.criteria?.[0])) this.open(body.criteria[0]);
    return this.say(body.detail);
  }
}

