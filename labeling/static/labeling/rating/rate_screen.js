// The rating screen of one chat: display and the rater's actions. Users' text is only inserted as text.

import { Answers, WORDS } from "./rate_answers.js";
import { call, ended } from "../../common/api.js";
import { Clock } from "./rate_clock.js";
import { Dock } from "./rate_dock.js";
import { Finish } from "./rate_finish.js";
import { Guide, watchTexts } from "./rate_guide.js";
import { Knowledge } from "./rate_knowledge.js";
import { LocalWork } from "./rate_local_work.js";
import { Lease } from "./rate_lease.js";
import { Ahead, offerBack } from "./rate_next.js";
import { Notes } from "./rate_notes.js";
import { wireReveal } from "./rate_reveal.js";
import { Saving } from "./rate_saving.js";
import { Search } from "./rate_search.js";
import { Spans, clearTints } from "./rate_spans.js";
import { Switch, byTouch } from "./rate_switch.js";
import { Tabs } from "./rate_tabs.js";
import { Picking } from "./rate_turns.js";
import { CriterionView, clashBox, refusedBox } from "./rate_views.js";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const TYPING_PAUSE = 800; // ms without a key before a comment is saved
const FRESH = 1000; // ms; an older page was fetched ahead

export class Screen {
  opened = "";
  path = location.pathname;
  #page = JSON.parse($("#rate-state").textContent);
  #end = new AbortController();
  #views = new Map();
  #lacked = ""; // the missing part of the open criterion when it was opened or answered
  #typing = 0;

  // replaced(age): called when the next chat replaces this one; age: ms since its page was fetched
  constructor(replaced, age = 0) {
    this.replaced = replaced;
    const { signal } = this.#end;
    const page = this.#page;
    this.#skew = Date.now() - age - page.now;
    const by = (name) => Object.fromEntries(page.criteria.map((one) => [one.key, one[name]]));
    const versions = by("version");
    const { store } = page;
    this.kept = new LocalWork({ store, keys: Object.keys(versions), signal });
    const { kept } = this;
    this.dock = new Dock({ signal });
    this.saving = new Saving({
      kept,
      url: page.urls.assignment,
      versions,
      revisions: by("revision"),
      on: this.#savingCalls(),
      signal,
    });
    this.spans = new Spans(page.texts);
    this.answers = new Answers({ page, kept, saving: this.saving, changed: (key) => this.#changed(key) });
    this.picking = new Picking({
      toggle: (n, on) => this.#pickTurn(n, on),
      turn: (n) => this.spans.turn(n),
      say: (text) => this.say(text),
      signal,
    });
    const leave = () => this.focusAnswer();
    this.search = new Search(leave);
    this.knowledge = new Knowledge({ leave, signal });
    this.guide = new Guide({ leave, opened: (box) => this.knowledge.fill(box) });
    this.switch = new Switch((which) => this.#switched(which));
    this.clock = new Clock({ before: page.active_ms, active: kept.tab.active, signal });
    this.tabs = new Tabs({ store, on: this.#tabCalls(), signal });
    this.finish = new Finish(this, page);
    this.ahead = new Ahead({ url: page.urls.ahead, id: page.id, signal });
    for (const one of page.criteria) this.#views.set(one.key, new CriterionView(one, this));
    this.notes = new Notes({ url: page.urls.notes, say: (text) => this.say(text) });
    this.#holdChat(age, signal);
    this.#watchTexts(versions, age, signal);
    this.#keepPlace(signal);
    this.#start();
  }

  get submitted() {
    return this.#page.submitted;
  }

  get stopped() {
    return this.saving.stopped;
  }

  get leaving() {
    return this.finish.leaving;
  }

  // The criteria that prevent submitting the chat or saving a change.
  get unfinished() {
    if (!this.submitted) return this.answers.incomplete;
    return this.saving.waiting.filter((key) => this.answers.lack(key));
  }

  name(key) {
    return this.#views.get(key).name;
  }

  names(keys) {
    return keys.map((key) => this.#views.get(key)?.name ?? key).join(", ");
  }

  view() {
    return this.#views.get(this.opened);
  }

  #start() {
    for (const key of this.answers.keys) this.#render(key);
    this.open(this.answers.incomplete[0] ?? this.answers.keys[0], { focus: false });
    this.saving.show();
    if (this.#page.stopped) this.saving.stop(this.#page.stopped);
    else if (this.saving.unsent) this.saving.flush();
    this.guide.notice((key) => this.open(key));
    offerBack({ signal: this.#end.signal });
    const { reveal } = this.#page.urls;
    if (reveal) {
      const item = (key) => this.#views.get(key)?.item;
      const shown = () => {
        this.#page.revealed = true;
        this.renderTotals();
      };
      wireReveal({ button: $("#reveal"), url: reveal, item, say: (text) => this.say(text), shown });
    }
  }

  end() {
    this.#end.abort();
    clearTimeout(this.#typing);
    clearTints();
  }

  // ---------- callbacks ----------

  #savingCalls() {
    return {
      state: (text, kind) => {
        this.dock.saving(text || (this.answers.some ? "Saved" : "Saves as you answer"), kind);
      },
      signedOut: (is) => this.dock.signedOut(is),
      stop: (message) => {
        this.dock.stop(message);
        this.renderTotals();
      },
      saved: (key, answer, { revision, post_reveal }) => {
        this.lease?.renewed();
        this.tabs.saved(key, answer, revision);
        if (post_reveal) this.#views.get(key).uncounted();
        if (!this.submitted && !this.saving.unsent) this.ahead.rest(this.answers.incomplete.length);
      },
      marked: (key) => {
        this.#render(key);
        this.#views.get(key).item.scrollIntoView({ block: "nearest" });
      },
      retired: (key) => this.#retire(key),
      time: (key) => this.clock.take(key),
      lack: (key) => (this.submitted ? this.answers.lack(key) : ""),
    };
  }

  #tabCalls() {
    return {
      others: (count) => {
        $("#tabs").hidden = !count;
        const notice = "This chat is also open in another tab. Answers saved there appear here.";
        $("#tabs").textContent = count ? notice : "";
      },
      saved: (key, answer, revision) => {
        if (!this.saving.adopt(key, revision)) return;
        this.answers.take(key, answer);
        this.say(`Changed in another tab: ${this.name(key)}`);
      },
      gone: (word) => this.saving.stop(`This chat was ${word} in another tab.`),
    };
  }

  // Takes over the server's answers where they differ from this page.
  async reread(keys) {
    const { labels } = await (await call("GET", this.#page.urls.assignment)).json();
    for (const key of keys.filter((one) => this.#views.has(one))) {
      const theirs = labels.find(({ criterion }) => criterion === key);
      if (this.saving.adopt(key, theirs?.revision ?? 0)) {
        this.answers.take(key, theirs ?? { answered: false });
      }
    }
    this.say(`Changed elsewhere: ${this.names(keys)}. Check them before you submit`);
  }

  // ms that this computer's clock is ahead of the server's
  #skew = 0;

  #left(until) {
    return new Date(until) - Date.now() + this.#skew;
  }

  #holdChat(age, signal) {
    const { lease, urls } = this.#page;
    if (!lease) return;
    const extend = async () => {
      try {
        const response = await call("POST", urls.extend);
        if (response.ok) return this.#left((await response.json()).expires_at);
        this.saving.stop(await ended(response));
      } catch (error) {
        this.say(`Not extended: ${this.dock.failed(error)}`);
      }
      return null;
    };
    const leave = () => this.focusAnswer();
    this.lease = new Lease({ left: lease.left - age, length: lease.length, extend, leave, signal });
  }

  // Keeps the place in the chat over a sign-in or a reload.
  #keepPlace(signal) {
    const pane = $("#main");
    pane.scrollTop = this.kept.tab.place ?? 0;
    pane.addEventListener("scroll", () => (this.kept.tab.place = pane.scrollTop), { passive: true, signal });
  }

  #watchTexts(versions, age, signal) {
    const { urls, guideline } = this.#page;
    watchTexts({
      url: `${urls.assignment}guideline/`,
      read: urls.read,
      numbers: { ...versions, "": guideline },
      names: {
        ...Object.fromEntries(this.answers.keys.map((key) => [key, this.name(key)])),
        "": "Guideline",
      },
      soon: age > FRESH,
      held: (until) => this.lease?.renewed(this.#left(until)),
      signal,
    });
  }

  // Removes a criterion that is no longer part of the job.
  #retire(key) {
    const name = this.name(key);
    this.answers.remove(key);
    this.#views.get(key).item.remove();
    this.#views.delete(key);
    if (!this.answers.keys.length) return this.saving.stop("This job has no criteria left for this chat.");
    if (key === this.opened) {
      this.opened = "";
      this.open(this.answers.incomplete[0] ?? this.answers.keys[0]);
    }
    this.renderTotals();
    return this.say(`${name} is no longer part of this job`);
  }

  // ---------- display ----------

  #changed(key) {
    this.ahead.busy();
    this.#render(key);
  }

  #render(key) {
    const view = this.#views.get(key);
    const answer = this.answers.of(key);
    const lack = this.saving.refused(key) ? "refused" : this.answers.lack(key);
    view.show(answer, lack, { typing: this.#typing });
    view.notice(this.#notice(key));
    if (key === this.opened) this.#tint(answer);
    this.renderTotals();
  }

  #notice(key) {
    const name = this.name(key);
    const why = this.saving.refused(key);
    if (why) return refusedBox({ name, why });
    const theirs = this.saving.theirs(key);
    if (!theirs) return null;
    const settle = (mine) => {
      this.saving.settle(key, mine);
      if (mine) this.#render(key);
      else this.answers.take(key, theirs);
      this.focusAnswer();
    };
    return clashBox({ theirs, answer: this.answers.of(key), name, settle });
  }

  #tint({ evidence }) {
    this.picking.mark(evidence);
    this.spans.show(evidence);
  }

  renderTotals() {
    for (const group of $$("[data-group]")) {
      const here = [...this.#views.values()].filter(({ item }) => group.contains(item));
      const done = here.filter(({ key }) => !this.answers.lack(key)).length;
      $("h2 span", group).textContent = `${done} of ${here.length}`;
    }
    $("#why").textContent = this.#status();
    this.switch.count(this.unfinished.length);
    if (this.submitted) return;
    $("#submit").disabled = this.stopped || this.answers.incomplete.length > 0;
    $("#skip-chat").disabled = this.stopped;
  }

  #status() {
    const name = (key) => this.name(key);
    if (!this.submitted) return this.leaving ? "Submitting" : this.answers.status(name);
    const { revealed } = this.#page;
    const counts = revealed ? "Changes are saved but not counted" : "Changes are saved immediately";
    return this.answers.missing(this.unfinished, name) || counts;
  }

  say(text) {
    this.dock.say(text);
  }

  // ---------- navigation ----------

  open(key, { focus = true } = {}) {
    if (!this.#views.has(key)) return;
    this.commitComment();
    this.picking.end();
    this.opened = key;
    this.#lacked = this.answers.lack(key);
    this.clock.open(key);
    this.knowledge.follow(this.#views.get(key).item.dataset.knowledge);
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
    this.#lacked = this.answers.lack(this.opened);
    if (this.#lacked) return this.#stay();
    const next = [...keys.slice(at + 1), ...keys.slice(0, at)].find((key) => this.answers.lack(key));
    if (next) return this.open(next);
    this.picking.end();
    return this.focusAnswer();
  }

  #stay() {
    const { value } = this.answers.of(this.opened);
    const how = byTouch() ? "" : ". Press e, then the number of a turn";
    const evidence = `${WORDS[value]} needs evidence${how}`;
    this.say(this.#lacked === "evidence" ? evidence : "A comment is required");
    this.focusAnswer();
  }

  #switched(which) {
    if (which === "criteria") this.endPicking({ proceed: false });
  }

  // Moves on after a comment or evidence if it was the only missing part.
  proceed() {
    if (this.#lacked && !this.answers.lack(this.opened)) return this.#advance();
    return this.view().reveal();
  }

  // ---------- answers ----------

  answer(value) {
    if (this.stopped) return undefined;
    if (value === null && !this.view().allowNa) return this.say("This criterion always applies");
    this.commitComment();
    this.answers.change(this.opened, { ...this.answers.of(this.opened), answered: true, value });
    return this.#advance();
  }

  travel(back) {
    if (this.stopped) return;
    this.commitComment();
    const key = this.answers.travel(back, this);
    if (key === null) return this.say("A submitted answer can be changed but not cleared");
    if (!key) return this.say(back ? "Nothing to undo" : "Nothing to redo");
    if (key !== this.opened || !this.picking.active) this.open(key);
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

  // Adds the selected words as evidence; without a selection, starts picking turns.
  addEvidence() {
    if (this.stopped) return undefined;
    const part = this.spans.selected();
    if (part === "several") return this.say("Select words inside one turn");
    $("#said").hidden = true;
    if (!part) return this.#startPicking();
    const { evidence } = this.answers.of(this.opened);
    const same = ({ message, start, end }) =>
      message === part.message && start === part.start && end === part.end;
    if (!evidence.some(same)) this.setEvidence([...evidence, part]);
    if (this.picking.words) return this.picking.leave();
    getSelection().removeAllRanges();
    return this.picking.active ? undefined : this.proceed();
  }

  #startPicking() {
    this.switch.show("chat");
    this.picking.start(this.answers.of(this.opened).evidence);
  }

  endPicking({ proceed = true } = {}) {
    this.picking.end();
    if (proceed) this.proceed();
  }

  // ---------- notes ----------

  note(kind) {
    const { name, text, version } = this.view();
    this.notes.open(kind, { key: this.opened, name, text, version });
  }
}
