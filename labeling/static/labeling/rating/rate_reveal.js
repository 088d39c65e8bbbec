// After submitting: shows the judge's verdicts beside the rater's answers. Later changes do not count.

import { call } from "../../common/api.js";

const STATES = {
  unparsed: "Unparsed",
  refused: "Refused",
  cut_off: "Cut off",
  too_long: "Too long",
  failed: "Failed",
  none: "No verdict",
};
const HIDDEN = /((?![\u200c\u200d])\p{Cf})/u; // joiners spell emoji and some scripts
const ANSWERS = { true: "True", false: "False", null: "Not applicable" };

// button: starts the reveal; item(key): a criterion's element; say(text): shows a message
export function wireReveal({ button, url, item, say, shown }) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const response = await call("POST", url);
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      const { verdicts, judge, revealed_at } = await response.json();
      for (const verdict of verdicts) item(verdict.criterion)?.append(view(verdict, judge));
      button.hidden = true;
      if (revealed_at) shown();
      const notice = "The judge’s view is shown at each criterion";
      say(verdicts.length ? notice : "The judge has no verdict on this chat");
    } catch {
      button.disabled = false;
      say("The judge’s view can’t be shown now. Try again.");
    }
  });
}

function view({ value, state, rationale }, judge) {
  const box = document.createElement("div");
  box.className = "judged";
  const head = document.createElement("p");
  const chip = document.createElement("b");
  const read = !state || state === "read";
  chip.className = read ? "j" : "tag";
  chip.textContent = read ? ANSWERS[value] : (STATES[state] ?? state);
  head.append("Judge ", ...visible(judge), " ", chip);
  const why = document.createElement("p");
  why.className = "why-judge";
  why.dir = "auto";
  why.append(...visible(rationale ?? ""));
  box.append(head, why);
  return box;
}

// text with visible hidden characters, as the server renders the chat
function visible(text) {
  return text.split(HIDDEN).map((part, place) => {
    if (place % 2 === 0) return part;
    const mark = document.createElement("span");
    mark.className = "hid";
    mark.textContent = `U+${part.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
    return mark;
  });
}
