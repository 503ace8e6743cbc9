// The keys, in a dialog: `?` opens it, Escape closes it.

import { h } from "./dom";

const KEYS: [string, string][] = [
  ["?", "this help"],
  ["/", "to the search; Enter goes to the next match, Shift and Enter to the one before"],
  ["Tab", "to the next part; in the timeline:"],
  ["← →", "back and on in time"],
  ["↑ ↓", "through the rows; also Page Up, Page Down, Home, End"],
  ["+ −", "zoom in time"],
  ["] [", "higher and lower rows"],
  ["Enter", "open the process of the row; Escape closes it"],
  ["Space", "fold or unfold what it started"],
  ["s", "select its time: strips and tables show only that"],
  ["z", "zoom to the selection"],
  ["f", "show everything; again, also what came after the end of the command"],
  ["Escape", "clear the selection"],
];
const MOUSE: [string, string][] = [
  ["drag", "move; in a strip, on the axis or with Shift: select a time"],
  ["wheel", "through the rows; with Ctrl zoom in time, with Alt zoom rows"],
  ["click", "a row: focus it; a triangle: fold; twice: open the process"],
];

export function help(): HTMLDialogElement {
  const close = h("button", { type: "button", class: "close", "aria-label": "Close" }, "×");
  const rows = (all: [string, string][]) => h("dl", {}, ...all.flatMap(([key, does]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)]));
  const dialog = h("dialog", { id: "help", "aria-labelledby": "help-title" },
    h("header", {}, h("h2", { id: "help-title" }, "Keys and mouse"), close),
    h("div", { id: "chart-keys" }, rows(KEYS)), rows(MOUSE));
  close.addEventListener("click", () => dialog.close());
  // Beside it.
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  return dialog;
}
