// The rater's answers on one chat: what they are, what they still lack, and the way back through them.

const UNDO_STEPS = 100;
const LACKS = { evidence: "Evidence", comment: "A comment" };

export const WORDS = { true: "True", false: "False", null: "Not applicable" };

export class Answers {
  keys;
  #given = {};
  #rules;
  #kept;
  #saving;
  #changed;

  // changed(key): an answer is another one now
  constructor({ page, kept, saving, changed }) {
    this.keys = page.criteria.map(({ key }) => key);
    this.#rules = page.rules;
    this.#kept = kept;
    this.#saving = saving;
    this.#changed = changed;
    for (const key of this.keys) {
      const saved = page.answers[key];
      this.#given[key] = saved ? given(saved) : empty(kept.loose[key]);
      if (kept.pending[key]) this.#given[key] = kept.pending[key].answer; // newer than what the server has
      if (this.#given[key].answered) kept.hold(key, null);
    }
  }

  of(key) {
    return this.#given[key];
  }

  get some() {
    return this.keys.some((key) => this.of(key).answered);
  }

  // What keeps a criterion from being complete: "answer", "evidence", "comment" or "".
  lack(key) {
    const { answered, value, rationale, evidence } = this.of(key);
    if (!answered) return "answer";
    if (this.#rules.evidence_on_false && value === false && !evidence.length) return "evidence";
    return this.#rules.comment_required && !rationale.trim() ? "comment" : "";
  }

  get incomplete() {
    return this.keys.filter((key) => this.lack(key));
  }

  // Why the chat can't be submitted yet, or that it can. name(key): the criterion in words
  status(name) {
    const open = this.keys.filter((key) => this.lack(key) === "answer").length;
    if (open) return `${this.keys.length - open} of ${this.keys.length} answered, ${open} open`;
    return this.missing(this.incomplete, name) || "All answered";
  }

  // What the first of these criteria lacks, in words; "" for none
  missing([key, ...more], name) {
    if (!key) return "";
    return `${LACKS[this.lack(key)]} is missing: ${name(key)}${more.length ? ` and ${more.length} more` : ""}`;
  }

  // It is no longer asked.
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

  // What was saved elsewhere is shown here, without a step to undo.
  take(key, answer) {
    this.#given[key] = answer.answered === false ? empty() : given(answer);
    this.#kept.hold(key, null);
    this.#changed(key);
  }

  // One step back or forth; returns the criterion's key, "" for none, null where it can't be taken.
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

// As the server tells it; the words of a part are in the chat.
function given({ value, rationale, evidence }) {
  return { answered: true, value, rationale, evidence: evidence.map(({ quote, ...place }) => place) };
}
