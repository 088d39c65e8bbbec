// Autosave of one draft: sent a moment after the last key, one save after the other; what the server does not
// have yet is kept in this browser.

import { TooLarge, Trouble, call, reasons } from "../../common/api.js";

const PAUSE = 800; // ms after the last key
const LONGEST_WAIT = 30_000; // ms between two tries when offline
const KEPT = "lace-prompt-";

export class Draft {
  dirty = false;
  theirs = null; // {draft}: what another tab stored, until the author has chosen
  #url;
  #store;
  #base;
  #revision;
  #content;
  #on;
  #sent = 0; // counts edits, so that an answer is known to be about the newest
  #edits = 0;
  #running = null;
  #timer = 0;
  #wait = 0;

  // url: of the draft; store: names this author's work on this criterion; base, revision: what the page shows
  // longest: characters that a prompt may have
  // unstored: others that act on the stored draft would not see what the page shows
  // content(): {text} or {sections}; on: {state(words, kind), stored(reply), refused(problem), clash()}
  constructor({ url, store, base, revision, longest, unstored, content, on }) {
    Object.assign(this, { longest, dirty: unstored });
    this.#url = url;
    this.#store = KEPT + store;
    this.#base = base;
    this.#revision = revision;
    this.#content = content;
    this.#on = on;
    addEventListener("online", () => this.dirty && this.#edits && this.save());
    addEventListener("pagehide", () => this.#keep());
  }

  get revision() {
    return this.#revision;
  }

  // Whether closing the page would lose words.
  get unsaved() {
    return this.#edits > this.#sent;
  }

  // What this browser kept of an earlier visit, {base, content}; null: nothing.
  kept() {
    const entry = attempt(() => JSON.parse(localStorage.getItem(this.#store)));
    return entry?.content ? entry : null;
  }

  #keep() {
    if (!this.unsaved) return;
    const entry = { base: this.#base, revision: this.#revision, content: this.#content() };
    attempt(() => localStorage.setItem(this.#store, JSON.stringify(entry)));
  }

  // The author goes on from what was kept: over the revision that it was written on.
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

  // The server changed the draft by itself, as when an example is picked.
  changed(revision) {
    this.#revision = revision;
    this.#on.stored({ revision });
    this.#on.state(`Saved ${now()}`);
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
      if (response.status === 404) throw new Trouble("Gone", "This criterion is gone");
      return await this.#answered(response, edits);
    } catch (error) {
      if (error instanceof TooLarge) return this.#stays(`${error.message}. Your text stays on this page`);
      this.#keep();
      this.#wait = Math.min(this.#wait * 2 || 1000, LONGEST_WAIT);
      this.#timer = setTimeout(() => this.save(), this.#wait);
      const word = error instanceof Trouble ? error.word.toLowerCase() : "server trouble";
      this.#on.state(`Not saved: ${word}, retrying`, "off");
      return false;
    }
  }

  // Trying again would not help before the author has changed something.
  #stays(why) {
    this.#keep();
    this.#on.state(`Not saved: ${why}`, "off");
    return false;
  }

  async #answered(response, edits) {
    const body = await response.json();
    this.#wait = 0;
    if (response.status === 409) {
      this.#keep();
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
    this.#on.state(this.dirty ? "Not saved yet" : `Saved ${now()}`, this.dirty ? "busy" : "");
    return true;
  }

  // After a clash: what stands on this page is the draft.
  keepMine() {
    const { draft } = this.theirs;
    this.theirs = null;
    this.#revision = draft?.revision ?? 0;
    const { sections } = this.#content();
    // Sections have no place in a text that is not made of them.
    const whole = sections && draft && !draft.sections ? { sections: undefined, text: joined(sections) } : {};
    this.dirty = true;
    return (this.#running ??= this.#send(whole).finally(() => (this.#running = null)));
  }

  // Nothing of this page is needed any more.
  forget() {
    attempt(() => localStorage.removeItem(this.#store));
  }

  drop() {
    clearTimeout(this.#timer);
    this.#sent = this.#edits;
    this.forget();
  }
}

// Why this {text} or {sections} is no prompt's, in characters as the server counts them; "" where it may be one.
export function tooLong({ text, sections }, longest) {
  const words = text ?? Object.values(sections).join("");
  const length = words.length > longest ? [...words].length : 0;
  return length > longest ? `${length.toLocaleString("en")} characters, and a prompt has ${longest.toLocaleString("en")} at most` : "";
}

export function joined(sections) {
  const written = Object.entries(sections).filter(([, text]) => text.trim());
  return written.map(([name, text]) => `# ${name[0].toUpperCase()}${name.slice(1)}\n${text.trim()}\n`).join("\n");
}

function now() {
  return new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}

// Storage may be switched off, full or spoilt: then what is not saved lives as long as the page.
function attempt(work) {
  try {
    return work();
  } catch {
    return null;
  }
}
