// Elements and their text. All that is shown goes through here as text nodes and attributes, never as markup: what stands in a topic,
// a key or a group's name cannot become an element or a script.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element.
 * @param {string} tag
 * @param {object} given attributes; `on` has listeners by event; true is an attribute without a value; null and false are left out.
 * @param {...(Node|string|number|null|Array)} children text and nodes; null is left out.
 */
export function el(tag, given = {}, ...children) {
  return filled(document.createElement(tag), given, children);
}

/** The same of SVG. */
export function svg(tag, given = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), given, children);
}

function filled(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false).map(node));
  return element;
}

function node(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

/** A button that does something here. */
export function button(text, does, given = {}) {
  return el("button", { type: "button", ...given, on: { click: does } }, text);
}

/** The location of a view: parts are encoded, so a name may have any character. */
export function at(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/** A sentence in place of what is not there. */
export function empty(sentence, ...more) {
  return el("div", { class: "empty" }, el("p", {}, sentence), more);
}

/** A mark with a word. */
export function badge(word, kind = "", title = null) {
  return el("span", { class: `badge ${kind}`, title }, word);
}
