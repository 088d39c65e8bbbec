// On a narrow screen the bars scroll sideways: scroll to the current page's entry.
for (const item of document.querySelectorAll("nav [aria-current]")) {
  item.scrollIntoView({ block: "nearest", inline: "nearest" });
}

// After "back", the filters show the state of the page, not later choices.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) for (const form of document.querySelectorAll("form.filters")) form.reset();
});
