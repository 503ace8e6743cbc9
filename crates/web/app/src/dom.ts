// Elements. Text only ever becomes text nodes, so that no string of the recording can be markup.

type Listener = (event: any) => void;
export type Child = Node | string | null | undefined | false;
type Props = Record<string, string | number | boolean | null | Listener>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, String(value));
  }
  add(element, children);
  return element;
}

export function add(element: Element, children: Child[]): void {
  for (const child of children) if (child) element.append(child);
}

export function replace(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  add(element, children);
}

/** Text in which what stands between backticks is to be typed. */
export function prose(text: string): Child[] {
  return text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));
}

/** A colour sample; the colour is one of the page's own. */
export function swatch(colour: string): HTMLElement {
  const sample = h("span", { class: "swatch", "aria-hidden": "true" });
  sample.style.background = colour;
  return sample;
}

let polite: HTMLElement | undefined;

/** Says something to users of screen readers. */
export function announce(text: string): void {
  if (!polite) {
    polite = h("div", { class: "unseen", role: "status", "aria-live": "polite" });
    document.body.append(polite);
  }
  polite.textContent = text;
}
