// On a narrow screen the bars scroll sideways: the page one is on is in sight.
for (const item of document.querySelectorAll("nav [aria-current]")) item.scrollIntoView({ block: "nearest", inline: "nearest" });
