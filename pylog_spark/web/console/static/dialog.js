// Dialogs that ask for something and do it: what is refused stays on the screen with the broker's sentence, and nothing typed is lost.

import { el, button } from "./dom.js";
import { say, troubles } from "./live.js";

/** The page's number for ids of fields. */
let ids = 0;

/**
 * Open a dialog.
 * @param {object} given title, fields (nodes), verb (the button), danger (whether it deletes), does(): the change; what it throws is
 *   shown, and the dialog stays; done(answer): after it.
 */
export function ask({ title, fields, verb, danger = false, does, done }) {
  const trouble = troubles();
  const go = el("button", { type: "submit", class: danger ? "danger" : "primary" }, verb);
  const label = `dialog-${++ids}`;
  const form = el("form", { method: "dialog", novalidate: true, on: { submit: send } },
    el("h2", { id: label }, title),
    fields,
    trouble,
    el("div", { class: "buttons" }, button("Cancel", () => dialog.close(), { class: "quiet" }), go));
  const dialog = el("dialog", { "aria-labelledby": label, on: { close: () => dialog.remove() } }, form);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.addEventListener("input", () => trouble.replaceChildren());
  document.body.append(dialog);
  dialog.showModal();
  form.querySelector("input:not([type=checkbox]), textarea, select")?.focus();

  async function send(event) {
    event.preventDefault();
    if (go.disabled) return;
    go.disabled = true;
    try {
      const answer = await does();
      dialog.close();
      done?.(answer);
    } catch (error) {
      say(trouble, error);
    } finally {
      go.disabled = false;
    }
  }
  return dialog;
}

/** A field with its label above; `hint` is a line below. */
export function field(label, input, hint = null, ...beside) {
  const id = input.id || `field-${++ids}`;
  input.id = id;
  const said = hint && el("small", { class: "dim", id: `${id}-hint` }, hint);
  if (said) input.setAttribute("aria-describedby", said.id);
  return el("div", { class: "field" }, el("div", { class: "label" }, el("label", { for: id }, label), beside), input, said);
}

/** A box to tick, with its label beside. */
export function tick(label, input) {
  input.type = "checkbox";
  return el("label", { class: "tick" }, input, label);
}

/** Something wrong in a field, said before anything is sent. */
export function refuse(sentence) {
  const error = new Error(sentence);
  error.name = "Not sent";
  error.status = 0;
  return error;
}
