// The rater's answers on one chat: what they are, what they still lack, and the way back through them.

const UNDO_STEPS = 100;
const EMPTY = { answered: false, value: null, rationale: "", evidence: [] };
const LACKS = { evidence: "Evidence", comment: "A comment" };

export const WORDS = { true: "True", false: "False", null: "Not applicable" };

export class Answers {
  keys;
  #given = {};
  #rules;
  #saving;
  #changed;

  // changed(key): an answer is another one now
  constructor({ page, saving, changed }) {
    this.keys = page.criteria.map(({ key }) => key);
    this.#rules = page.rules;
    this.#saving = saving;
    this.#changed = changed;
    const { kept } = saving;
    for (const key of this.keys) {
      const saved = page.answers[key];
      this.#given[key] = saved ? given(saved) : { ...EMPTY, ...kept.loose[key] };
      if (kept.pending[key]) this.#given[key] = kept.pending[key].answer; // newer than what the server has
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
    const [key, ...more] = this.incomplete;
    if (!key) return "All answered";
    return `${LACKS[this.lack(key)]} is missing: ${name(key)}${more.length ? ` and ${more.length} more` : ""}`;
  }

  change(key, next, { history = true } = {}) {
    const before = this.of(key);
    const { kept } = this.#saving;
    if (this.#saving.stopped || JSON.stringify(before) === JSON.stringify(next)) return;
    this.#given[key] = next;
    if (history) {
      kept.undo = [...kept.undo, { key, before, after: next }].slice(-UNDO_STEPS);
      kept.redo = [];
    }
    delete kept.loose[key];
    if (!next.answered) kept.loose[key] = { rationale: next.rationale, evidence: next.evidence }; // until there is an answer
    if (next.answered || before.answered) this.#saving.put(key, next);
    this.#saving.keep();
    this.#changed(key);
  }

  // What was saved elsewhere is shown here, without a step to undo.
  take(key, answer) {
    this.#given[key] = answer.answered === false ? { ...EMPTY } : given(answer);
    this.#changed(key);
  }

  // One step back or forth; returns the criterion's key, "" for none, null where it can't be taken.
  travel(back, { submitted }) {
    const { kept } = this.#saving;
    const [from, to, side] = back ? [kept.undo, kept.redo, "before"] : [kept.redo, kept.undo, "after"];
    const step = from.at(-1);
    if (!step) return "";
    if (submitted && !step[side].answered) return null;
    to.push(from.pop());
    this.change(step.key, step[side], { history: false });
    this.#saving.keep();
    return step.key;
  }
}

function given({ value, rationale, evidence }) {
  return { answered: true, value, rationale, evidence };
}
