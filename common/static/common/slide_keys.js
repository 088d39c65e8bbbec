// Arrow keys go from criterion to criterion, like slides, for discussing a calibration round.
(function () {
  "use strict";
  const ENDS = { ArrowLeft: "prev", ArrowRight: "next" };

  document.addEventListener("keydown", function (event) {
    const end = ENDS[event.key];
    if (!end || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || event.isComposing) return;
    if (event.target.closest("input, textarea, select, dialog, [contenteditable]")) return;
    const link = document.querySelector(`a[rel="${end}"]`);
    if (!link) return;
    event.preventDefault();
    link.click();
  });
})();
