// One criterion on the rating screen: its line, its form, its evidence.

import { WORDS } from "./rate_answers.js";

const $ = (selector, root) => root.querySelector(selector);
const LACKS = {
  answer: "open",
  evidence: "evidence missing",
  comment: "comment missing",
  refused: "not saved",
};
const QUOTED = 80; // characters of a quote in a button's name

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

export class CriterionView {
  #screen;
  #inverted; // True is the failing answer
  #evidenceFor; // the answers that need evidence

  constructor({ key, version, allow_na, inverted, evidence_for }, screen) {
    this.key = key;
    this.version = version;
    this.allowNa = allow_na;
    this.#inverted = inverted;
    this.#evidenceFor = evidence_for;
    this.item = document.querySelector(`[data-criterion="${key}"]`);
    this.row = $(".crit", this.item);
    this.form = $("form", this.item);
    this.#screen = screen;
    this.#wire();
  }

  get name() {
    return $(".name", this.row).textContent;
  }

  // The question and its definition on the screen.
  get text() {
    return `${$("legend", this.form).textContent} ${$(".def", this.form).textContent}`;
  }

  get comment() {
    return $("textarea", this.form).value;
  }

  get #choices() {
    return this.form.querySelectorAll(".choice button");
  }

  #wire() {
    const { form } = this;
    const screen = this.#screen;
    const comment = $("textarea", form);
    this.row.addEventListener("click", () => screen.open(this.key));
    form.addEventListener("submit", (event) => event.preventDefault());
    for (const button of this.#choices) {
      button.addEventListener("click", () => screen.answer(JSON.parse(button.value)));
      // Space answers nothing; some browsers press a button when it is released.
      button.addEventListener("keyup", (event) => event.key === " " && event.preventDefault());
    }
    comment.addEventListener("input", () => screen.typed());
    comment.addEventListener("blur", () => screen.commitComment());
    comment.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      screen.commitComment();
      screen.proceed();
    });
    $(".pick-turns", form).addEventListener("click", () => {
      if (screen.picking.active) screen.endPicking();
      else screen.addEvidence();
    });
    $(".unclear", form).addEventListener("click", () => screen.note("unclear"));
    $(".to-guide", form)?.addEventListener("click", () => screen.guide.toggle());
  }

  show(answer, lack, { typing }) {
    const { row, form } = this;
    const word = $(".ans", row);
    const parts = [answer.answered && this.#word(answer.value), lack && LACKS[lack]];
    word.textContent = parts.filter(Boolean).join(", ");
    word.classList.toggle("none", Boolean(lack));
    $(".name", row).classList.toggle("done", !lack);
    $(".name", row).classList.toggle("strong", Boolean(lack));
    for (const button of this.#choices) {
      button.ariaPressed = String(answer.answered && button.value === String(answer.value));
    }
    this.#showNeed(answer);
    const comment = $("textarea", form);
    if (comment !== document.activeElement || !typing) comment.value = answer.rationale;
    $(".evidence", form).replaceChildren(...answer.evidence.map((part) => this.#evidence(part, answer)));
  }

  // The answer, with its meaning where True is the failing one.
  #word(value) {
    const meaning = this.#inverted && { true: " = bad", false: " = good" }[value];
    return WORDS[value] + (meaning || "");
  }

  #showNeed({ answered, value, evidence }) {
    const field = $(".need", this.form);
    const here = answered && this.#evidenceFor.includes(value);
    field.className = `need ${here ? (evidence.length ? "met" : "unmet") : ""}`;
    const words = this.#evidenceFor.map((one) => WORDS[one]).join(" and ");
    if (here) field.textContent = `${WORDS[value]} needs evidence`;
    else field.textContent = words && !answered ? `required for ${words}` : "";
  }

  #evidence(part, answer) {
    const row = element("li", "ev", "");
    const turn = element("a", "t", `turn ${part.message}`);
    turn.href = `#m${part.message}`;
    turn.addEventListener("click", () => {
      document.querySelector(`#m${part.message} details`)?.setAttribute("open", "");
      this.#screen.switch.show("chat");
    });
    const words = part.start === undefined ? "" : this.#screen.spans.quote(part);
    const what = words || element("span", "", "whole turn");
    const remove = element("button", "", "Remove");
    remove.type = "button";
    const quote = words && `: ${words.textContent.slice(0, QUOTED)}`;
    remove.setAttribute("aria-label", `Remove turn ${part.message}${quote}`);
    remove.addEventListener("click", () => {
      this.#screen.setEvidence(answer.evidence.filter((other) => other !== part));
      this.focus();
    });
    row.append(turn, what, remove);
    return row;
  }

  toggle(here) {
    this.form.hidden = !here;
    this.row.hidden = here;
    this.row.setAttribute("aria-expanded", String(here));
  }

  // Focuses the card, never an answer: Space and arrows must not answer.
  focus() {
    this.form.focus({ preventScroll: true });
  }

  toggleDefinition() {
    const definition = $(".defn", this.form);
    definition.open = !definition.open;
  }

  focusComment() {
    $("textarea", this.form).focus();
  }

  // Focuses the form and scrolls to it; a long form from its start.
  reveal() {
    this.#screen.switch.show("criteria");
    this.focus();
    this.form.scrollIntoView({ block: this.form.offsetHeight > innerHeight * 0.6 ? "start" : "nearest" });
  }

  // Changed after the judge's view was shown.
  uncounted() {
    $(".uncounted", this.form).hidden = false;
  }

  // Shows a conflict or refusal to resolve; null removes it
  notice(box) {
    $(".settle", this.item)?.remove();
    if (box) this.item.prepend(box);
  }
}

// A conflict of two tabs: shows both answers, and the rater chooses one.
export function clashBox({ theirs, answer, name, settle }) {
  const word = ({ value, answered = true }) => (answered ? WORDS[value] : "open");
  const box = settleBox(`${name}: another tab saved “${word(theirs)}”, this tab has “${word(answer)}”.`);
  const actions = element("div", "actions", "");
  for (const [mine, text] of [[true, `Keep ${word(answer)}`], [false, `Take ${word(theirs)}`]]) {
    const button = element("button", "btn", text);
    button.type = "button";
    button.addEventListener("click", () => settle(mine));
    actions.append(button);
  }
  box.append(actions);
  return box;
}

// The server refused an answer: it stays here until the rater changes it.
export function refusedBox({ name, why }) {
  return settleBox(`${name} is not saved: ${why} Change the answer to save it.`);
}

function settleBox(text) {
  const box = element("div", "call warn settle", "");
  box.setAttribute("role", "alert");
  box.append(element("p", "", text));
  return box;
}
