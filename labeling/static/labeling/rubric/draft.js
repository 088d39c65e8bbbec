// Takes a drafted definition over into the form: a button with data-take-draft, the drafted text.

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-take-draft]");
  if (!button) return;
  const field = document.getElementById("id_definition");
  field.value = button.dataset.takeDraft;
  field.dispatchEvent(new Event("input", { bubbles: true })); // keeps the form's draft
  field.focus();
  button.textContent = "In the form. Read it before you save.";
  button.disabled = true;
});
