// Takes a drafted definition over into the form: a button with data-take-draft, the id of the drafted text.

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-take-draft]");
  if (!button) return;
  const field = document.getElementById("id_definition");
  field.value = document.getElementById(button.dataset.takeDraft).textContent;
  field.dispatchEvent(new Event("input", { bubbles: true })); // keeps the form's draft
  field.focus();
  button.textContent = "Taken over. Read it before you save.";
  button.disabled = true;
});
