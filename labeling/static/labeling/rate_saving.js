// Autosave of one chat's answers: kept in this browser until the server has them, sent one after the other.

import { call, reasons, uuid } from "./rate_api.js";

const LONGEST_WAIT = 30_000; // ms between two tries when offline
const HOUR = 3_600_000;

export class Saving {
  // pending: {key: op}; loose: {key: comment and evidence of an open criterion}; active: {key: ms not sent yet}
  kept = { pending: {}, loose: {}, undo: [], redo: [], active: {} };
  stopped = false;
  #store;
  #done = false;
  #url;
  #versions;
  #revisions;
  #on;
  #running = null;
  #inFlight = "";
  #lost = {}; // {key: answer} sent, and no reply came: the server may have it
  #offline = false;
  #savedAt = null;
  #wait = 0;
  #retry = 0;

  // store: names this rater's work on this chat, in this database
  // revisions: {key: the revision this page knows}; 0 for none
  // on: {state(text, kind), stop(message), refuse(message), saved(key, answer, reply), clash(key), time(key)}
  constructor({ store, url, versions, revisions, on, signal }) {
    this.#store = `lace-rate-${store}`;
    this.#url = url;
    this.#versions = versions;
    this.#revisions = revisions;
    this.#on = on;
    try {
      Object.assign(this.kept, JSON.parse(localStorage.getItem(this.#store)));
    } catch {
      // storage switched off or spoilt: work goes on without it
    }
    addEventListener("online", () => this.flush(), { signal });
    addEventListener("pagehide", () => this.keep(), { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#retry));
  }

  get unsent() {
    return Object.keys(this.kept.pending).length;
  }

  get clashing() {
    return Object.keys(this.kept.pending).filter((key) => this.kept.pending[key].theirs);
  }

  keep() {
    if (this.#done) return;
    try {
      localStorage.setItem(this.#store, JSON.stringify(this.kept));
    } catch {
      // full or switched off: unsent answers then live as long as the page
    }
  }

  // Nothing is left to do for this chat.
  forget() {
    Object.assign(this.kept, { pending: {}, loose: {}, undo: [], redo: [], active: {} });
    this.#done = true;
    try {
      localStorage.removeItem(this.#store);
    } catch {
      // nothing was kept then
    }
  }

  put(key, answer) {
    const waiting = this.kept.pending[key];
    const unsentTime = waiting && waiting.client_id !== this.#inFlight ? waiting.active_ms : 0;
    this.kept.pending[key] = {
      client_id: uuid(),
      answer,
      active_ms: Math.min(unsentTime + this.#on.time(key), HOUR),
      revision: waiting ? waiting.revision : this.#revisions[key],
      theirs: waiting?.theirs,
    };
    this.flush();
  }

  // Another tab's answer is now the one this page knows; one that waits here is told by the server.
  adopt(key, revision) {
    if (this.kept.pending[key]) return false;
    this.#revisions[key] = revision;
    return true;
  }

  // After a clash: true keeps this tab's answer, false drops it.
  settle(key, mine) {
    const { theirs, ...op } = this.kept.pending[key];
    this.#revisions[key] = theirs.revision;
    if (mine) this.kept.pending[key] = { ...op, client_id: uuid(), revision: theirs.revision };
    else delete this.kept.pending[key];
    this.keep();
    this.flush();
  }

  // Resolves when everything is sent, or the server can't be reached; then it is tried again later.
  flush() {
    clearTimeout(this.#retry);
    this.#running ??= this.#sendAll().finally(() => {
      this.#running = null;
      this.show();
    });
    return this.#running;
  }

  stop(message) {
    this.stopped = true;
    this.show();
    this.#on.stop(message);
  }

  show(busy = false) {
    const left = this.unsent;
    if (left && this.stopped) this.#on.state(`Not saved, ${left} kept here`, "off");
    else if (left && this.#offline) this.#on.state(`Offline, ${left} kept here, retrying`, "off");
    else if (this.clashing.length && !busy) this.#on.state("Not saved: choose the answer that counts", "off");
    else if (busy || left) this.#on.state("Saving", "busy");
    else this.#on.state(this.#savedAt ? `Saved ${this.#savedAt}` : "", "");
  }

  async #sendAll() {
    const next = () => Object.keys(this.kept.pending).find((key) => !this.kept.pending[key].theirs);
    try {
      for (let key; !this.stopped && (key = next()); ) {
        this.show(true);
        await this.#send(key, this.kept.pending[key]);
        this.#offline = false;
        this.#wait = 0;
      }
    } catch {
      this.#offline = true;
      this.#wait = Math.min(this.#wait * 2 || 1000, LONGEST_WAIT);
      this.#retry = setTimeout(() => this.flush(), this.#wait);
    }
  }

  async #send(key, op) {
    const { client_id, answer, active_ms, revision } = op;
    this.#inFlight = client_id;
    const url = `${this.#url}labels/${key}/`;
    const { value, rationale, evidence } = answer;
    const body = { client_id, value, rationale, evidence, active_ms, revision, version: this.#versions[key] };
    this.#lost[key] ??= [];
    this.#lost[key].push(answer);
    const response = answer.answered
      ? await call("PUT", url, body)
      : await call("DELETE", `${url}?client_id=${client_id}&revision=${revision}`);
    if (response.status === 409) return this.#conflict(key, client_id, await response.json());
    if (response.status === 404) return this.stop("This chat is no longer yours. What was not saved is kept in this browser.");
    if (!response.ok && response.status !== 400) throw new Error(`HTTP ${response.status}`);
    delete this.#lost[key];
    if (response.status === 400) {
      this.#drop(key, client_id);
      return this.#on.refuse(reasons(await response.json()));
    }
    const saved = response.status === 204 ? { revision: 0 } : await response.json(); // withdrawn: there is none
    this.#drop(key, client_id, saved.revision);
    this.#revisions[key] = saved.revision;
    this.#savedAt = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    this.#on.saved(key, answer, saved);
  }

  #drop(key, client_id, revision) {
    const waiting = this.kept.pending[key];
    if (waiting?.client_id === client_id) delete this.kept.pending[key];
    else if (waiting && revision !== undefined) waiting.revision = revision;
    this.keep();
  }

  #conflict(key, client_id, { code, detail, answer }) {
    if (code === "incomplete") {
      this.#drop(key, client_id);
      return this.#on.refuse(detail);
    }
    if (code !== "stale") return this.stop(detail);
    const theirs = answer ?? { answered: false, value: null, rationale: "", evidence: [], revision: 0 };
    const own = this.#lost[key].some((sent) => sameAnswer(sent, theirs)); // its reply got lost
    const waiting = this.kept.pending[key];
    delete this.#lost[key];
    if (own) Object.assign(waiting, { client_id: uuid(), revision: theirs.revision });
    else waiting.theirs = theirs;
    this.keep();
    return own || this.#on.clash(key);
  }
}

function sameAnswer(...both) {
  const place = ({ message, start, end }) => [message, start, end];
  const shape = ({ answered = true, value, rationale, evidence }) =>
    JSON.stringify(answered ? [value, rationale, evidence.map(place)] : []);
  return shape(both[0]) === shape(both[1]);
}
