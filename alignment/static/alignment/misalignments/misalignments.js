// The Disagreements page: the list beside the open disagreement, and changes of several at once.

import { $, $$, Triage } from "./triage.js";
import { Selection } from "./selection.js";

const list = $(".triage");
const rows = () => $$(".item", list);
const current = () => $(".item:has([aria-current])", list);

function wire() {
  const triage = new Triage(list, { current, reveal: open, left: () => select(current()) });

  function select(row) {
    if (!row) return;
    triage.saveNote();
    for (const link of $$(".item [aria-current]", list)) link.removeAttribute("aria-current");
    const link = $("a", row);
    link.setAttribute("aria-current", "true");
    link.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  function open(row) {
    if (row) $("a", row).click(); // htmx loads the chat
  }

  function step(by) {
    const all = rows();
    const next = all[all.indexOf(current()) + by];
    if (next) return open(next);
    const page = $(`.items a[rel=${by > 0 ? "next" : "prev"}]`, list);
    if (page) page.click();
    else triage.say(by > 0 ? "Last disagreement" : "First disagreement");
  }

  const selection = new Selection(triage, rows);
  const [next, previous] = [() => step(1), () => step(-1)];
  triage.listen({
    moves: { n: next, p: previous, j: next, k: previous },
    writes: { x: () => selection.toggle(current()) },
    active: current,
  });
  list.addEventListener("click", ({ target }) => {
    const row = target.closest(".item");
    if (row && !target.closest("label")) select(row);
  });
  document.addEventListener("htmx:afterSwap", ({ target }) => {
    if (target.id === "item" && current()) triage.paint(current()); // values saved meanwhile
  });
}

if (list && current()) wire();
