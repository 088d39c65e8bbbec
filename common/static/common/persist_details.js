// Keeps <details> open or closed, by id, when htmx replaces them.

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
