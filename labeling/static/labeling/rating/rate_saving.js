// Autosave of a chat's answers: stored in this browser until the server has them, sent one by one.

import { Trouble, call, ended, reasons, uuid } from "../../common/api.js";
import { timeOfDay } from "../../common/local.js";

const LONGEST_WAIT = 30_000; // ms between two tries when offline
const HOUR = 3_600_000;

export class Saving {
  stopped = false;
  #kept;
  #url;
  #versions;
  #revisions;
  #on;
  #running = null;
  #inFlight = "";
  #lost = {}; // {key: answers} sent without a reply: the server may have one of them
  #theirs = {}; // {key: answer} that another tab saved first
  #refused = {}; // {key: why} the server refused the answer
  #trouble = null;
  #savedAt = null;
  #wait = 0;
  #retry = 0;

  // kept: the work in this browser; url: the assignment
  // versions, revisions: {key: number on this page}; revision 0 for no answer
  // on: {state(text, kind), stop(message), signedOut(is), saved(key, answer, reply), marked(key): conflict or
  //   refusal begins or ends; retired(key); time(key); lack(key): missing part that prevents sending}
  constructor({ kept, url, versions, revisions, on, signal }) {
    this.#kept = kept;
    this.#url = url;
    this.#versions = versions;
    this.#revisions = revisions;
    this.#on = on;
    addEventListener("online", () => this.flush(), { signal });
    const back = () => this.#trouble && !document.hidden && this.flush();
    addEventListener("focus", back, { signal });
    document.addEventListener("visibilitychange", back, { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#retry));
  }

  get waiting() {
    return Object.keys(this.#kept.pending);
  }

  get unsent() {
    return this.waiting.length;
  }

  get revisions() {
    return { ...this.#revisions };
  }

  theirs(key) {
    return this.#theirs[key];
  }

  refused(key) {
    return this.#refused[key];
  }

  put(key, answer) {
    const waiting = this.#kept.pending[key];
    delete this.#refused[key];
    if (this.#theirs[key] && sameAnswer(answer, this.#theirs[key])) return this.settle(key, false);
    const unsentTime = waiting && waiting.client_id !== this.#inFlight ? waiting.active_ms : 0;
    this.#kept.put(key, {
      client_id: uuid(),
      answer,
      active_ms: Math.min(unsentTime + this.#on.time(key), HOUR),
      revision: waiting ? waiting.revision : this.#revisions[key],
    });
    return this.flush();
  }

  // Takes over a revision that was saved elsewhere; a waiting answer gets its conflict from the server.
  adopt(key, revision) {
    if (this.#kept.pending[key]) return false;
    this.#revisions[key] = revision;
    return true;
  }

  // Resolves a conflict: true keeps this tab's answer, false drops it.
  settle(key, mine) {
    const { revision } = this.#theirs[key];
    const op = this.#kept.pending[key];
    delete this.#theirs[key];
    this.#revisions[key] = revision;
    if (mine) this.#kept.put(key, { ...op, client_id: uuid(), revision });
    else this.#kept.drop(key);
    return this.flush();
  }

  // Resolves when all answers are sent, or when the server can't be reached and a retry is planned.
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
    this.#on.signedOut(this.unsent > 0 && this.#trouble?.word === "Signed out");
    this.#on.state(...this.#state(busy));
  }

  #state(busy) {
    const left = this.unsent;
    const stuck = this.waiting.map((key) => this.#stuck(key)).filter(Boolean);
    if (left && this.stopped) return [`Not saved, ${left} in this browser`, "off"];
    if (left && this.#trouble) {
      const retrying = this.#trouble.word === "Signed out" ? "" : ", retrying";
      return [`${this.#trouble.word}, ${left} in this browser${retrying}`, "off"];
    }
    if (busy || left > stuck.length) return ["Saving", "busy"];
    if (left) return [`Not saved: ${stuck[0]}`, "off"];
    const loose = Object.keys(this.#kept.loose).length; // comments and evidence without an answer
    const waits = `${loose} ${loose === 1 ? "note waits" : "notes wait"} for an answer (this browser only)`;
    return [[this.#savedAt && `Saved ${this.#savedAt}`, loose && waits].filter(Boolean).join(". "), ""];
  }

  // Why an answer needs the rater's attention; "" where it can be sent
  #stuck(key) {
    if (this.#theirs[key]) return "choose the answer that counts";
    if (this.#refused[key]) return "an answer was refused";
    const lack = this.#on.lack(key);
    return lack && `${lack} missing`;
  }

  async #sendAll() {
    try {
      for (let key; !this.stopped && (key = this.waiting.find((one) => !this.#stuck(one))); ) {
        this.show(true);
        await this.#send(key, this.#kept.pending[key]);
        this.#trouble = null;
        this.#wait = 0;
      }
    } catch (error) {
      this.#trouble = error instanceof Trouble ? error : new Trouble("Server trouble");
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
    (this.#lost[key] ??= []).push(answer);
    const response = answer.answered
      ? await call("PUT", url, body)
      : await call("DELETE", `${url}?client_id=${client_id}&revision=${revision}`);
    if (response.status === 404) return this.#gone(key, response);
    if (response.status === 409) return this.#conflict(key, op, response);
    delete this.#lost[key];
    if (response.status === 400) return this.#refuse(key, op, reasons(await response.json()));
    // 204: the answer is withdrawn.
    return this.#saved(key, op, response.status === 204 ? { revision: 0 } : await response.json());
  }

  #saved(key, { client_id, answer }, reply) {
    const waiting = this.#kept.pending[key];
    if (waiting?.client_id === client_id) this.#kept.drop(key);
    else if (waiting) this.#kept.put(key, { ...waiting, revision: reply.revision });
    this.#revisions[key] = reply.revision;
    this.#savedAt = timeOfDay();
    this.#on.saved(key, answer, reply);
  }

  // The criterion is retired, or the rater no longer has the chat.
  async #gone(key, response) {
    const chat = await call("GET", `${this.#url}guideline/`);
    if (!chat.ok) return this.stop(await ended(response));
    this.#kept.drop(key);
    delete this.#revisions[key];
    return this.#on.retired(key);
  }

  async #conflict(key, op, response) {
    const { code, detail, answer, evidence } = await response.clone().json();
    if (code === "incomplete") {
      return this.#refuse(key, op, evidence?.length ? "Evidence is missing." : "A comment is missing.");
    }
    if (code !== "stale") return this.stop(code === "client_id_used" ? detail : await ended(response));
    const theirs = answer ?? { answered: false, value: null, rationale: "", evidence: [], revision: 0 };
    const own = this.#lost[key].some((sent) => sameAnswer(sent, theirs)); // its reply got lost
    const waiting = this.#kept.pending[key];
    delete this.#lost[key];
    if (own) return this.#kept.put(key, { ...waiting, client_id: uuid(), revision: theirs.revision });
    this.#theirs[key] = theirs;
    return this.#on.marked(key);
  }

  // The answer stays here until the rater changes it.
  #refuse(key, { client_id }, why) {
    if (this.#kept.pending[key]?.client_id !== client_id) return;
    this.#refused[key] = why;
    this.#on.marked(key);
  }
}

function sameAnswer(...both) {
  const place = ({ message, start, end }) => [message, start, end];
  const shape = ({ answered = true, value, rationale, evidence }) =>
    JSON.stringify(answered ? [value, rationale, evidence.map(place)] : []);
  return shape(both[0]) === shape(both[1]);
}
