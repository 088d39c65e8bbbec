// On a narrow screen the bars scroll sideways: the page one is on is in sight.
for (const item of document.querySelectorAll("nav [aria-current]")) item.scrollIntoView({ block: "nearest", inline: "nearest" });

// Going back shows the filters of the page that is shown, not what was chosen on it before leaving.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) for (const form of document.querySelectorAll("form.filters")) form.reset();
});
