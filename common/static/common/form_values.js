// The values of a form's controls as plain data: what a person can fill in, never secrets or files.

// data-no-draft: a control that is saved by itself.
const NEVER =
  "input[type=hidden], input[type=password], input[type=file], button, [type=submit], [data-no-draft]";
const NOT_OF_THE_PAGE = ["csrfmiddlewaretoken", "form_token", "form_draft"];

const nameOf = (control) => control.name || control.id;

function controlsOf(form) {
  return [...form.elements].filter((one) => nameOf(one) && !one.matches(NEVER));
}

// {name: [value]} of what a person can fill in; shown: as the page was sent, before browser and person.
export function valuesOf(form, { shown = false } = {}) {
  const values = {};
  for (const one of controlsOf(form)) (values[nameOf(one)] ??= []).push(...textsOf(one, shown));
  return values;
}

// The page as it was sent, without controls that have another value each time (data-random).
export function shownOf(form) {
  const values = valuesOf(form, { shown: true });
  for (const one of form.querySelectorAll("[data-random]")) delete values[nameOf(one)];
  return [values, hiddenOf(form)];
}

function textsOf(one, shown) {
  const checked = shown ? one.defaultChecked : one.checked;
  if (["checkbox", "radio"].includes(one.type)) return checked ? [one.value] : [];
  if (!one.options) return [shown ? one.defaultValue : one.value];
  const chosen = [...one.options].filter((option) => (shown ? option.defaultSelected : option.selected));
  if (!chosen.length && one.type === "select-one") return [one.options[0]?.value ?? ""];
  return chosen.map(({ value }) => value);
}

function hiddenOf(form) {
  const hidden = [...form.querySelectorAll("input[type=hidden]")];
  const own = hidden.filter(({ name }) => !NOT_OF_THE_PAGE.includes(name));
  return own.map(({ name, value }) => [name, value]);
}

export function fill(form, values) {
  const left = structuredClone(values);
  for (const one of controlsOf(form)) {
    const texts = left[nameOf(one)];
    if (!texts) continue;
    if (["checkbox", "radio"].includes(one.type)) one.checked = texts.includes(one.value);
    else if (one.type === "select-multiple") {
      for (const option of one.options) option.selected = texts.includes(option.value);
    } else if (texts.length) one.value = texts.shift();
    for (const name of ["input", "change"]) one.dispatchEvent(new Event(name, { bubbles: true }));
  }
}

export function same(one, other) {
  const written = (values) => Object.entries(values).filter(([, texts]) => texts.join(""));
  return JSON.stringify(written(one).sort()) === JSON.stringify(written(other).sort());
}

// Not for security: it tells two versions of a page apart.
export function fingerprint(text) {
  let [a, b] = [0xdeadbeef, 0x41c6ce57];
  for (let i = 0; i < text.length; i += 1) {
    a = Math.imul(a ^ text.charCodeAt(i), 2654435761);
    b = Math.imul(b ^ text.charCodeAt(i), 1597334677);
  }
  return `${(a >>> 0).toString(16)}-${(b >>> 0).toString(16)}-${text.length.toString(16)}`.slice(0, 32);
}
