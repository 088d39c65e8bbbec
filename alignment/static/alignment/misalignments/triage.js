// Triage of disagreements, on their page and on the page of a chat. Each change is saved at once and in
// order; a change that fails is kept and sent again.
//
// The root has data-api and data-me. A record is the element that holds what is stored of one disagreement:
// data-id, -revision, -cause, -note, -owner. The form, .triage-form, shows the record of its data-item.

import { call, reasons, tryAgain } from "../../common/api.js";
import { keyOf } from "../../common/keys.js";

const NOTE_SHOWN = 60; // characters of a note in a status message
const RETRY = 3000;

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

export class Triage {
  // {record, change} or {undo}: not saved yet, the first one is being sent. A bulk change is one batch.
  #queue = [];
  #busy = false;
  #batch = null; // the last change, if it was a bulk change: what one undo reverts

  // current: the record that keys act on, which the form may not show yet. reveal: shows a record that an
  // undo changed. left: after the note is left.
  constructor(root, { current = () => this.record(), reveal = () => {}, left = () => {} } = {}) {
    Object.assign(this, { root, current, reveal, left });
    for (const record of this.records()) record.revision = record.dataset.revision;
    root.addEventListener("click", ({ target }) => this.#clicked(target));
    root.addEventListener("change", ({ target }) => {
      if (target.matches("[data-owner-choice]")) this.change(this.record(), { owner: target.value });
    });
    root.addEventListener("input", ({ target }) => {
      if (target === this.note()) this.record().typed = true;
    });
    root.addEventListener("focusout", ({ target }) => {
      if (target === this.note()) this.saveNote();
    });
    addEventListener("beforeunload", (event) => {
      this.saveNote();
      if (this.#queue.length) event.preventDefault();
    });
  }

  // NB: the form is a record itself on the page of a chat; beside the list the rows are.
  records() {
    const rows = $$("[data-record]", this.root);
    return rows.length ? rows : $$(".triage-form", this.root);
  }

  form() {
    return $(".triage-form", this.root);
  }

  note() {
    return $("#note", this.root);
  }

  // The record that the form shows; undefined without a form.
  record() {
    const item = this.form()?.dataset.item;
    return this.records().find(({ dataset }) => dataset.id === item);
  }

  // ---------- display ----------

  say(text) {
    const place = $("#saving");
    if (place) place.textContent = text;
  }

  warn(text) {
    const trouble = $("#trouble");
    trouble.hidden = !text;
    trouble.textContent = text;
  }

  paint(record) {
    const { cause, owner } = record.dataset;
    for (const place of $$("[data-cause-words]", record)) place.textContent = causeInWords(cause);
    for (const place of $$("[data-owner-name]", record)) place.textContent = owner;
    const form = this.form();
    if (!form || record !== this.record()) return;
    form.dataset.cause = cause;
    for (const button of $$(".causes button", form)) {
      button.setAttribute("aria-pressed", String(button.dataset.cause === cause));
    }
    const choice = $("[data-owner-choice]", form);
    if (owner && ![...choice.options].some(({ value }) => value === owner)) choice.add(new Option(owner));
    choice.value = owner;
    if (document.activeElement !== this.note() && !record.typed) this.note().value = record.dataset.note;
  }

  // ---------- changes ----------

  change(record, change, batch = null) {
    this.#batch = batch;
    Object.assign(record.dataset, change);
    this.#queue.push({ record, change, batch });
    this.paint(record);
    this.#send();
  }

  // One change of several records; returns how many of them it changes.
  changeAll(records, change) {
    const differs = ({ dataset }) => Object.entries(change).some(([name, value]) => dataset[name] !== value);
    const batch = { saved: 0, refused: [], what: inWords(change) };
    const changed = records.filter(differs);
    for (const record of changed) this.change(record, change, batch);
    return changed.length;
  }

  toggleCause(cause, record = this.current()) {
    this.change(record, { cause: record.dataset.cause === cause ? "" : cause });
  }

  toggleOwner() {
    const { me } = this.root.dataset;
    const record = this.current();
    this.change(record, { owner: record.dataset.owner === me ? "" : me });
  }

  saveNote() {
    const record = this.note() && this.record();
    if (!record || this.note().value === record.dataset.note) return;
    record.typed = false;
    this.change(record, { note: this.note().value });
  }

  // Reverts the last change; a bulk change as a whole.
  undo() {
    this.saveNote();
    const batch = this.#batch && { ...this.#batch, undone: 0 };
    this.#batch = null;
    for (let left = batch?.saved ?? 1; left > 0; left -= 1) this.#queue.push({ undo: true, batch });
    this.#send();
  }

  // Whether all changes are saved, at once or within this time.
  async settled(within = RETRY) {
    for (const end = Date.now() + within; this.#queue.length && Date.now() < end;) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return this.#queue.length === 0;
  }

  // ---------- sending ----------

  async #send() {
    if (this.#busy) return;
    this.#busy = true;
    while (this.#queue.length) {
      this.say("Saving…");
      const first = this.#queue[0];
      if (!(await (first.undo ? this.#sendUndo(first) : this.#sendChange(first)))) break;
      this.#queue.shift();
      if (this.#queue[0]?.batch !== first.batch) this.#ended(first.batch);
      if (this.#queue.length) this.say("Saving…");
    }
    this.#busy = false;
    if (this.#queue.length) setTimeout(() => this.#send(), RETRY);
  }

  // After the last request of a bulk change, or of its undo.
  #ended(batch) {
    if (!batch) return;
    updateCounts();
    if (batch.undone) return this.say(`Undone on ${disagreements(batch.undone)}`);
    this.say(`Saved: ${batch.what} on ${disagreements(batch.saved)}`);
    if (batch.refused.length) {
      const why = [...new Set(batch.refused)].join(" ");
      this.warn(`Not saved on ${disagreements(batch.refused.length)}: ${why}`);
    }
  }

  // False when the request has to be sent again.
  async #sendChange({ record, change, batch }) {
    const url = `${this.root.dataset.api}${record.dataset.id}/`;
    try {
      const response = await call("PATCH", url, { revision: Number(record.revision), ...change });
      const body = await response.json();
      if (response.ok) {
        this.#applyStored(record, body, batch);
        if ("note" in change) this.#dropDraft(record, body.note);
        if (batch) batch.saved += 1;
        this.say(`Saved: ${inWords(change)}`);
        this.warn("");
      } else {
        this.say("Not saved");
        await this.#showRefusal(record, url, change, reasonFor(response.status, body), batch);
      }
      return true;
    } catch (error) {
      this.say("Not saved");
      this.warn(`${tryAgain(error)} Your change is kept on this page and sent again.`);
      return false;
    }
  }

  // The note is stored, unless somebody has typed on.
  #dropDraft(record, stored) {
    if (record !== this.record() || this.note()?.value !== stored) return;
    this.form().dispatchEvent(new Event("draft:accepted", { bubbles: true }));
  }

  // The server knows your last change, even from before this page was opened.
  // NB: never sent again automatically: the undo may have been stored although no answer came.
  async #sendUndo({ batch }) {
    try {
      const response = await call("POST", `${this.root.dataset.api}undo/`);
      const body = await response.json();
      if (!response.ok) this.say(`Nothing undone: ${body.detail}`);
      else {
        const record = this.records().find(({ dataset }) => dataset.id === String(body.id));
        if (record) this.#applyStored(record, body, batch);
        else updateCounts();
        if (batch) batch.undone += 1;
        else if (record && record !== this.current()) this.reveal(record);
        this.say(undoInWords(body));
      }
    } catch (error) {
      this.say("Not undone");
      this.warn(tryAgain(error));
    }
    return true;
  }

  // Shows the stored values, and on top of them the changes that still wait to be sent.
  #applyStored(record, body, batch) {
    record.revision = body.revision;
    if (record.typed && this.note()?.value === body.note) record.typed = false;
    for (const name of ["revision", "cause", "note", "owner"]) record.dataset[name] = body[name] ?? "";
    if (!batch) updateCounts();
    for (const one of this.#queue.slice(1)) {
      if (one.record === record) Object.assign(record.dataset, one.change);
    }
    this.paint(record);
    // htmx reloads the history.
    if (record === this.record()) document.body.dispatchEvent(new Event("triaged"));
  }

  async #showRefusal(record, url, change, reason, batch) {
    const response = await call("GET", url);
    if (response.ok) this.#applyStored(record, await response.json(), batch);
    if (batch) return batch.refused.push(`${reason}.`.replace("..", "."));
    const note = "note" in change && change.note ? ` Your note was: ${change.note}` : "";
    this.warn(`Not saved: ${reason}.${note}`.replace("..", "."));
  }

  // ---------- keys and clicks ----------

  // moves: {key: command} of the page. A command is called on each repeat of its key if it moves.
  listen({ moves, writes = {}, active = () => true }) {
    const own = {
      c: () => this.note().focus(),
      o: () => this.toggleOwner(),
      u: () => this.undo(),
      g: () => this.openNextStep(),
      ...writes,
    };
    const commandFor = (event) => {
      const key = keyOf(event);
      if (this.note() && event.target === this.note()) {
        const leaves = key === "escape" || (key === "enter" && (event.ctrlKey || event.metaKey));
        return leaves ? () => this.#leaveNote() : null;
      }
      if (event.altKey || event.ctrlKey || event.metaKey) return null;
      if (event.target.closest("input:not([type=checkbox]), select, textarea, dialog")) return null;
      if (moves[key]) return moves[key];
      if (!this.form()) return null;
      const button = /^[1-6]$/.test(key) && $$(".causes button", this.form())[key - 1];
      return button ? () => this.toggleCause(button.dataset.cause) : own[key];
    };
    document.addEventListener("keydown", (event) => {
      if (event.isComposing || event.defaultPrevented || !active()) return;
      const command = commandFor(event);
      if (!command) return;
      event.preventDefault();
      if (!event.repeat || moves[keyOf(event)]) command();
    });
  }

  #leaveNote() {
    this.saveNote();
    this.note().blur();
    this.left();
  }

  #clicked(target) {
    const cause = target.closest(".triage-form .causes button");
    if (cause) this.toggleCause(cause.dataset.cause, this.record());
    if (target.closest("[data-undo]")) this.undo();
  }

  openNextStep() {
    const shown = $$(".next-step span", this.form()).find((one) => one.checkVisibility());
    const link = shown && $("a", shown);
    if (link) link.click();
    else if (!this.current().dataset.cause) this.say("Set a cause first");
    else this.say(shown?.textContent.trim() || "No next step for this cause. Describe it in the note.");
  }
}

// ---------- words ----------

// htmx reloads the counts.
const updateCounts = () => document.body.dispatchEvent(new Event("counts"));
const disagreements = (n) => `${n} disagreement${n === 1 ? "" : "s"}`;

function causeInWords(cause) {
  const button = cause && $(`.causes [data-cause=${cause}]`);
  return button ? button.firstChild.textContent.trim() : "";
}

function inWords({ cause, note, owner }) {
  if (cause !== undefined) return causeInWords(cause) || "no cause";
  if (note !== undefined) return note ? "note" : "no note";
  return owner ? `owner ${owner}` : "unassigned";
}

function reasonFor(status, body) {
  if (status === 409) return body.detail;
  return status === 404 ? "You can no longer see this disagreement." : reasons(body);
}

// Old and new values, in the words of the history.
function undoInWords({ chat, criterion, history: [{ was, now }] }) {
  const changes = Object.keys(now).map(
    (name) => `${name} ${valueInWords(name, was[name])} → ${valueInWords(name, now[name])}`,
  );
  return [`Undone on ${chat}, ${criterionName(criterion)}`, changes.join(", ")].filter(Boolean).join(": ");
}

function criterionName(key) {
  const option = $$("[name=criterion] option").find((one) => one.value === key);
  return option ? option.textContent.trim() : key.replaceAll("_", " ");
}

function valueInWords(name, value) {
  if (name === "cause") return causeInWords(value) || "none yet";
  if (name === "owner") return value || "unassigned";
  if (!value) return "none";
  return value.length > NOTE_SHOWN ? `“${value.slice(0, NOTE_SHOWN)}…”` : `“${value}”`;
}
