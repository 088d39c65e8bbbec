// Autosave of one draft: saved shortly after the last key, one save at a time. Unsaved text is kept in this
// browser.

import { TooLarge, Trouble, call, reasons } from "../../common/api.js";
import { attempt, timeOfDay } from "../../common/local.js";

const PAUSE = 800; // ms after the last key
const LONGEST_WAIT = 30_000; // ms between two attempts when offline
const STORAGE_PREFIX = "lace-prompt-";

export class Draft {
  dirty = false;
  theirs = null; // {draft}: stored by another tab, until the author has chosen
  #url;
  #store;
  #base;
  #revision;
  #content;
  #on;
  #sent = 0; // the count of edits that the server has
  #edits = 0;
  #running = null;
  #timer = 0;
  #wait = 0;

  // url: of the draft; store: storage key of author and criterion; base, revision: of the text on the page
  // longest: the maximum number of characters
  // unstored: the server has no draft, and the page does not show the champion
  // content(): {text} or {sections}; on: {state(words, kind), stored(reply), refused(problem), clash()}
  constructor({ url, store, base, revision, longest, unstored, content, on }) {
    Object.assign(this, { longest, dirty: unstored });
    this.#url = url;
    this.#store = STORAGE_PREFIX + store;
    this.#base = base;
    this.#revision = revision;
    this.#content = content;
    this.#on = on;
    addEventListener("online", () => this.dirty && this.#edits && this.save());
    addEventListener("pagehide", () => this.#saveLocally());
  }

  get revision() {
    return this.#revision;
  }

  // Whether closing the page would lose text.
  get unsaved() {
    return this.#edits > this.#sent;
  }

  // What this browser stored on an earlier visit, {base, content}, or null.
  savedLocally() {
    const entry = attempt(() => JSON.parse(localStorage.getItem(this.#store)));
    return entry?.content ? entry : null;
  }

  #saveLocally() {
    if (!this.unsaved) return;
    const entry = { base: this.#base, revision: this.#revision, content: this.#content() };
    attempt(() => localStorage.setItem(this.#store, JSON.stringify(entry)));
  }

  // Continue from the locally stored text and its revision.
  resume({ base, revision }) {
    this.#base = base;
    this.#revision = revision;
    this.edited();
  }

  edited() {
    this.#edits += 1;
    this.dirty = true;
    if (this.theirs) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.save(), PAUSE);
    this.#on.state("Not saved yet", "busy");
  }

  // The server changed the draft, for example when an example was added.
  changed(revision) {
    this.#revision = revision;
    this.#on.stored({ revision });
    this.#on.state(`Saved ${timeOfDay()}`);
  }

  // True once the server has what the page shows.
  async flush() {
    while (this.dirty && !this.theirs) if (!(await this.save())) return false;
    return !this.theirs;
  }

  save() {
    clearTimeout(this.#timer);
    return (this.#running ??= this.#send().finally(() => (this.#running = null)));
  }

  async #send(more = {}) {
    const edits = this.#edits;
    const far = tooLong({ ...this.#content(), ...more }, this.longest);
    if (far) return this.#stays(`${far}. Your text stays on this page`);
    this.#on.state("Saving", "busy");
    try {
      const body = { base: this.#base, revision: this.#revision, ...this.#content(), ...more };
      const response = await call("PUT", this.#url, body);
      if (response.status === 404) throw new Trouble("Gone", "This criterion no longer exists");
      return await this.#answered(response, edits);
    } catch (error) {
      if (error instanceof TooLarge) return this.#stays(`${error.message}. Your text stays on this page`);
      this.#saveLocally();
      this.#wait = Math.min(this.#wait * 2 || 1000, LONGEST_WAIT);
      this.#timer = setTimeout(() => this.save(), this.#wait);
      const word = error instanceof Trouble ? error.word.toLowerCase() : "server trouble";
      this.#on.state(`Not saved: ${word}, retrying`, "off");
      return false;
    }
  }

  // Another attempt helps only after the author has changed something.
  #stays(why) {
    this.#saveLocally();
    this.#on.state(`Not saved: ${why}`, "off");
    return false;
  }

  async #answered(response, edits) {
    const body = await response.json();
    this.#wait = 0;
    if (response.status === 409) {
      this.#saveLocally();
      this.theirs = { draft: body.draft };
      this.#on.state("Not saved: changed elsewhere", "off");
      this.#on.clash(this.theirs.draft);
      return false;
    }
    if (response.status === 400) {
      this.#on.refused(body);
      return this.#stays(reasons(body));
    }
    this.#sent = edits;
    this.dirty = edits < this.#edits;
    this.#revision = body.revision;
    if (!this.dirty) this.forget();
    this.#on.refused({});
    this.#on.stored(body);
    this.#on.state(this.dirty ? "Not saved yet" : `Saved ${timeOfDay()}`, this.dirty ? "busy" : "");
    return true;
  }

  // After a conflict: the text on this page becomes the draft.
  keepMine() {
    const { draft } = this.theirs;
    this.theirs = null;
    this.#revision = draft?.revision ?? 0;
    const { sections } = this.#content();
    // Sections do not fit into a text that has other parts.
    const whole = sections && draft && !draft.sections ? { sections: undefined, text: joined(sections) } : {};
    this.dirty = true;
    return (this.#running ??= this.#send(whole).finally(() => (this.#running = null)));
  }

  // Delete the local copy.
  forget() {
    attempt(() => localStorage.removeItem(this.#store));
  }

  drop() {
    clearTimeout(this.#timer);
    this.#sent = this.#edits;
    this.forget();
  }
}

// Why this {text} or {sections} is too long, in characters as the server counts them; "" if it is not.
export function tooLong({ text, sections }, longest) {
  const words = text ?? Object.values(sections).join("");
  const length = words.length > longest ? [...words].length : 0;
  if (length <= longest) return "";
  return `${length.toLocaleString("en")} characters; the maximum is ${longest.toLocaleString("en")}`;
}

export function joined(sections) {
  const written = Object.entries(sections).filter(([, text]) => text.trim());
  const section = ([name, text]) => `# ${name[0].toUpperCase()}${name.slice(1)}\n${text.trim()}\n`;
  return written.map(section).join("\n");
}
