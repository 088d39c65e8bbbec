// The rater's answers on one chat: values, missing parts, undo and redo.

const UNDO_STEPS = 100;
const LACKS = { evidence: "Evidence", comment: "A comment" };

export const WORDS = { true: "True", false: "False", null: "Not applicable" };

export class Answers {
  keys;
  #given = {};
  #commentRequired;
  #evidenceFor; // {key: the answers that need evidence}
  #kept;
  #saving;
  #changed;

  // changed(key): called when an answer changes
  constructor({ page, kept, saving, changed }) {
    this.keys = page.criteria.map(({ key }) => key);
    this.#commentRequired = page.comment_required;
    this.#evidenceFor = Object.fromEntries(page.criteria.map((one) => [one.key, one.evidence_for]));
    this.#kept = kept;
    this.#saving = saving;
    this.#changed = changed;
    for (const key of this.keys) {
      const saved = page.answers[key];
      this.#given[key] = saved ? given(saved) : empty(kept.loose[key]);
      if (kept.pending[key]) this.#given[key] = kept.pending[key].answer; // newer than the server's answer
      if (this.#given[key].answered) kept.hold(key, null);
    }
  }

  of(key) {
    return this.#given[key];
  }

  get some() {
    return this.keys.some((key) => this.of(key).answered);
  }

  // The missing part of a criterion: "answer", "evidence", "comment" or "".
  lack(key) {
    const { answered, value, rationale, evidence } = this.of(key);
    if (!answered) return "answer";
    if (!evidence.length && this.#evidenceFor[key].includes(value)) return "evidence";
    return this.#commentRequired && !rationale.trim() ? "comment" : "";
  }

  get incomplete() {
    return this.keys.filter((key) => this.lack(key));
  }

  // Whether the chat can be submitted, or why not. name(key): the criterion's name
  status(name) {
    const open = this.keys.filter((key) => this.lack(key) === "answer").length;
    if (open) return `${this.keys.length - open} of ${this.keys.length} answered, ${open} open`;
    return this.missing(this.incomplete, name) || "All answered";
  }

  // The missing part of the first of these criteria as a sentence; "" for none
  missing([key, ...more], name) {
    if (!key) return "";
    const rest = more.length ? ` and ${more.length} more` : "";
    return `${LACKS[this.lack(key)]} is missing: ${name(key)}${rest}`;
  }

  // Removes a criterion that is no longer part of the job.
  remove(key) {
    this.keys = this.keys.filter((one) => one !== key);
    const { tab } = this.#kept;
    for (const steps of ["undo", "redo"]) tab[steps] = tab[steps].filter((step) => step.key !== key);
  }

  change(key, next, { history = true } = {}) {
    const before = this.of(key);
    const { tab } = this.#kept;
    if (this.#saving.stopped || JSON.stringify(before) === JSON.stringify(next)) return;
    this.#given[key] = next;
    if (history) {
      tab.undo = [...tab.undo, { key, before, after: next }].slice(-UNDO_STEPS);
      tab.redo = [];
    }
    this.#kept.hold(key, next.answered ? null : { rationale: next.rationale, evidence: next.evidence });
    if (next.answered || before.answered) this.#saving.put(key, next);
    else this.#saving.show();
    this.#changed(key);
  }

  // Takes over an answer that was saved elsewhere, without an undo step.
  take(key, answer) {
    this.#given[key] = answer.answered === false ? empty() : given(answer);
    this.#kept.hold(key, null);
    this.#changed(key);
  }

  // Undoes or redoes a step; returns the criterion's key, "" for none, null where it is not possible.
  travel(back, { submitted }) {
    const { tab } = this.#kept;
    const [from, to, side] = back ? [tab.undo, tab.redo, "before"] : [tab.redo, tab.undo, "after"];
    const step = from.at(-1);
    if (!step) return "";
    if (submitted && !step[side].answered) return null;
    to.push(from.pop());
    this.change(step.key, step[side], { history: false });
    return step.key;
  }
}

function empty({ rationale = "", evidence = [] } = {}) {
  return { answered: false, value: null, rationale, evidence };
}

// The answer as the server sends it; the words of a passage are in the chat.
function given({ value, rationale, evidence }) {
  return { answered: true, value, rationale, evidence: evidence.map(({ quote, ...place }) => place) };
}
