// Passkeys: a form with data-passkey ("create" or "get") asks the device first and sends what it answers. The
// options are in the element that data-options names; without it, the form's address gives them.

const supported =
  window.PublicKeyCredential?.parseRequestOptionsFromJSON &&
  window.PublicKeyCredential?.parseCreationOptionsFromJSON;
const problem = document.querySelector("[data-passkey-problem]");

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.hidden = !supported;
  form.addEventListener("submit", (event) => {
    if (form.elements.credential.value) return;
    event.preventDefault();
    send(form);
  });
}
for (const note of document.querySelectorAll("[data-passkey-missing]")) note.hidden = Boolean(supported);

async function send(form) {
  const button = form.querySelector("button[type=submit]");
  button.disabled = true;
  problem.textContent = "";
  try {
    const credential = await ask(form.dataset.passkey, await options(form));
    form.elements.credential.value = JSON.stringify(credential.toJSON());
    form.requestSubmit();
  } catch (error) {
    problem.textContent =
      error.name === "InvalidStateError"
        ? "This device has a passkey for this account already."
        : "No passkey was used. Try again, or use another way.";
  } finally {
    button.disabled = false;
  }
}

async function options(form) {
  const own = form.dataset.options;
  if (own) {
    const given = JSON.parse(document.getElementById(own).textContent);
    return (given.request_options ?? given).publicKey;
  }
  const answer = await fetch(form.action, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return (await answer.json()).request_options.publicKey;
}

function ask(what, given) {
  return what === "create"
    ? navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(given) })
    : navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(given) });
}
