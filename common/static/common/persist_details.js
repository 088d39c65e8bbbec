// What htmx replaces stays unfolded as the reader left it: parts are told by their ids.

const unfolded = new Set();

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  for (const part of detail.target.querySelectorAll("details[id]")) {
    if (part.open) unfolded.add(part.id);
    else unfolded.delete(part.id);
  }
});

document.addEventListener("htmx:afterSwap", ({ detail }) => {
  for (const part of detail.target.querySelectorAll("details[id]")) {
    if (unfolded.has(part.id)) part.open = true;
  }
});
