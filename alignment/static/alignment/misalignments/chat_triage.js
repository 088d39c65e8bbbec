// Triage on the page of a chat: the form, and the keys that lead to the next and the previous disagreement.

import { $, Triage } from "./triage.js";

const triage = new Triage($("[data-triage]") ?? $("main")); // without a disagreement there are only the moves

// Leaves the page as soon as every change is saved.
async function go(link) {
  triage.saveNote();
  if (await triage.settled()) location.assign(link.href);
  else triage.say("Not saved yet: stay on this page until it is");
}

function step(rel, end) {
  const link = $(`a[rel=${rel}]`);
  if (link) go(link);
  else triage.say(end);
}

const next = () => step("next", "Last disagreement");
const previous = () => step("prev", "First disagreement");
triage.listen({ moves: { n: next, p: previous, j: next, k: previous } });
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[rel=next], a[rel=prev]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(link);
});
