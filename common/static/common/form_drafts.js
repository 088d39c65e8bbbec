// Keeps what is typed into a form that is posted. It survives a closed page, a link, another tab and an
// expired session, and ends when the form is accepted. Forms with drafts of their own have data-own-draft;
// a form that a script sends has data-form-draft, its name on the page or its own address, and gets the event
// draft:accepted.

import { FormDraft, PENDING, storeOf } from "./form_draft.js";
import { attempt } from "./local.js";

const FREE = "textarea, input:not([type]), input[type=text], input[type=search], input[type=url]";
const SECRET = "input[type=password], input[autocomplete=one-time-code]";

const account = document.body.dataset.account ?? "";

const drafts = new Map(); // by form

function isKept(form) {
  const posts = form.method === "post" || form.hasAttribute("hx-post") || "formDraft" in form.dataset;
  const secret = form.querySelector(SECRET) || "ownDraft" in form.dataset;
  return posts && !secret && form.querySelector(FREE) !== null;
}

// The address that the form is sent to, or that of the page with the form's name.
function keyOf(form) {
  if (form.dataset.formDraft?.startsWith("/")) return form.dataset.formDraft;
  const target = form.getAttribute("hx-post") ?? form.getAttribute("action") ?? "";
  const { pathname, search } = new URL(target || location.href, location.href);
  const { formDraft } = form.dataset;
  return `${pathname}${search}${formDraft ? `#${formDraft}` : ""}`.slice(0, 500);
}

function find(root) {
  for (const form of root.querySelectorAll?.("form") ?? []) {
    if (drafts.has(form) || !isKept(form)) continue;
    const draft = new FormDraft({ form, account, key: keyOf(form) });
    drafts.set(form, draft);
    draft.open();
  }
}

// ---------- what became of a form ----------

function cookie(name) {
  const value = document.cookie.match(new RegExp(`(?:^|; )${name}=([^;]*)`))?.[1];
  return value && attempt(() => decodeURIComponent(value));
}

// The server accepted a form, and has deleted its draft. With TLS the cookie's name begins with __Host-.
function forgetAccepted() {
  const prefix = document.body.dataset.csrfCookie?.startsWith("__Host-") ? "__Host-" : "";
  const name = `${prefix}form_draft_accepted`;
  const key = cookie(name);
  if (!key) return;
  document.cookie = `${name}=; path=/; max-age=0${prefix && "; secure"}`;
  attempt(() => localStorage.removeItem(storeOf(account, key)));
}

// The page that answers a form that was sent: the sign-in, where the session had expired, or any other.
function settlePending() {
  const pending = attempt(() => JSON.parse(sessionStorage.getItem(PENDING)));
  if (!pending) return;
  const next = document.querySelector("form input[name=next]");
  if (!account && next) {
    next.value = pending.page;
    return attempt(() => sessionStorage.setItem(PENDING, JSON.stringify({ ...pending, signin: true })));
  }
  attempt(() => sessionStorage.removeItem(PENDING));
  if (!pending.signin || pending.account !== account) return;
  const draft = [...drafts.values()].find(({ key }) => key === pending.key);
  draft?.sendAgain(pending.button);
}

document.addEventListener("draft:accepted", ({ target }) => drafts.get(target)?.accepted());
document.addEventListener("htmx:load", (event) => account && find(event.detail.elt));
document.addEventListener("htmx:afterRequest", ({ detail }) => {
  const refused = /class="[^"]*\berror\b/.test(detail.xhr?.response ?? "");
  if (detail.successful && !refused) drafts.get(detail.elt)?.accepted();
});
document.addEventListener("submit", ({ target }) => {
  if (target.dataset.signOut === undefined) return;
  const starts = [storeOf(account, ""), `lace-rate-${account}-`, `lace-prompt-${account}-`];
  const own = Object.keys(localStorage).filter((name) => starts.some((start) => name.startsWith(start)));
  for (const name of own) localStorage.removeItem(name);
  sessionStorage.clear();
});

if (account) {
  forgetAccepted();
  find(document);
}
settlePending();
