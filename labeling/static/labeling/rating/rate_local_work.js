// Unsaved work on a chat in this browser. Each answer has its own key: two tabs on the chat do not overwrite
// each other, and the next tab finds the work of both.

import { attempt } from "../../common/local.js";

const ALL = "lace-rate-";
const LONGEST = 30 * 24 * 3_600_000; // ms until unsent work is deleted

export class LocalWork {
  pending = {}; // {criterion: {client_id, answer, active_ms, revision}}, not saved yet
  loose = {}; // {criterion: {rationale, evidence}} of criteria without an answer
  tab = { undo: [], redo: [], active: {} }; // of this tab: undo steps, and {criterion: unsent ms}
  #store;
  #done = false;

  // store: key of this rater's work on this chat in this database; keys: the criteria of the job
  constructor({ store, keys, signal }) {
    this.#store = `${ALL}${store}`;
    attempt(() => this.#read(new Set(keys)));
    const save = () => sessionStorage.setItem(this.#store, JSON.stringify(this.tab));
    const write = () => this.#done || attempt(save);
    addEventListener("pagehide", write, { signal });
    document.addEventListener("visibilitychange", () => document.hidden && write(), { signal });
  }

  #read(keys) {
    for (const [name, entry] of entries()) {
      if (!(entry?.at > Date.now() - LONGEST)) localStorage.removeItem(name);
      else if (name.startsWith(`${this.#store}:`)) this.#take(keys, name, entry);
    }
    const tab = JSON.parse(sessionStorage.getItem(this.#store));
    if (!tab) return;
    const asked = ({ key }) => keys.has(key);
    Object.assign(this.tab, { ...tab, undo: tab.undo.filter(asked), redo: tab.redo.filter(asked) });
  }

  // Keeps the newest answer per criterion and drops criteria that are not in the job.
  #take(keys, name, entry) {
    const { key, what } = entry;
    const other = this[what][key];
    if (keys.has(key) && !(other?.at > entry.at)) this[what][key] = entry;
    else localStorage.removeItem(name);
    if (other && this[what][key] === entry) localStorage.removeItem(this.#name(other));
  }

  #name({ what, key, client_id }) {
    return `${this.#store}:${what === "pending" ? client_id : `loose-${key}`}`;
  }

  put(key, op) {
    this.drop(key);
    this.#write("pending", key, op);
  }

  drop(key) {
    this.#remove("pending", key);
  }

  // Stores comment and evidence of a criterion without an answer; null once it has one.
  hold(key, part) {
    this.#remove("loose", key);
    if (part && (part.rationale || part.evidence.length)) this.#write("loose", key, part);
  }

  #write(what, key, given) {
    const entry = { ...given, what, key, at: Date.now() };
    this[what][key] = entry;
    attempt(() => localStorage.setItem(this.#name(entry), JSON.stringify(entry)));
  }

  #remove(what, key) {
    const entry = this[what][key];
    if (!entry) return;
    delete this[what][key];
    attempt(() => localStorage.removeItem(this.#name(entry)));
  }

  // Deletes the work on this chat when it is done.
  forget() {
    this.#done = true;
    for (const what of ["pending", "loose"]) {
      for (const key of Object.keys(this[what])) this.#remove(what, key);
    }
    this.tab = { undo: [], redo: [], active: {} };
    attempt(() => sessionStorage.removeItem(this.#store));
  }
}

function entries() {
  const names = Object.keys(localStorage).filter((name) => name.startsWith(ALL));
  return names.map((name) => [name, attempt(() => JSON.parse(localStorage.getItem(name)))]);
}
