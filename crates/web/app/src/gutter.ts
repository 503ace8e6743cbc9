// The column beside the chart: names of rows in the tree, of categories, or numbers of rows.

import { niceStep } from "./format";
import { FONT, type Frame, PATH_LANE, visibleRows } from "./frame";
import { isThread, type Rows } from "./rows";
import { type Colours, mix } from "./theme";
import type { View } from "./view";

/** Lowest row that has a name. */
const NAMED_MIN = 9;

export function paintGutter(context: CanvasRenderingContext2D, view: View, rows: Rows, colours: Colours, frame: Frame): void {
  context.fillStyle = colours.paper;
  context.fillRect(0, 0, frame.gutter, frame.height);
  context.fillStyle = colours.grid;
  context.fillRect(frame.gutter - 1, 0, 1, frame.height);
  context.textBaseline = "middle";
  context.textAlign = "left";
  if (view.path && view.recording.rest?.table("path").rows) {
    context.fillStyle = colours.faint;
    context.font = `11px ${FONT}`;
    context.fillText("critical path", 12, frame.top - PATH_LANE / 2 - 1);
  }
  context.save();
  context.beginPath();
  context.rect(0, frame.top, frame.gutter - 2, frame.height - frame.top);
  context.clip();
  if (view.order === "category") paintCategories(context, view, rows, colours, frame);
  else if (frame.rowHeight < NAMED_MIN) paintNumbers(context, rows, colours, frame);
  else paintNames(context, view, rows, colours, frame);
  context.restore();
}

function paintNames(context: CanvasRenderingContext2D, view: View, rows: Rows, colours: Colours, frame: Frame): void {
  const { recording } = view;
  context.font = `${Math.min(12, frame.rowHeight - 2)}px ${FONT}`;
  const [from, to] = visibleRows(rows, frame);
  for (let row = from; row < to; row++) {
    const bar = rows.head[row];
    const process = rows.process[bar];
    const y = frame.top + (row + 0.5 - frame.row) * frame.rowHeight;
    const indent = indentOf(view, rows, bar);
    if (bar === view.focus) {
      context.fillStyle = mix(colours.focus, colours.paper, 0.82);
      context.fillRect(0, y - frame.rowHeight / 2, frame.gutter - 1, frame.rowHeight);
    }
    const thread = isThread(recording, bar);
    const below = thread ? 0 : view.tree?.below[process] ?? 0;
    const hidden = thread ? 0 : view.tree?.hidden(process) ?? 0;
    const folded = view.tree !== null && view.tree.folded[process] !== 0;
    if (below) {
      context.fillStyle = colours.faint;
      context.fillText(folded ? "▸" : "▾", indent, y);
    }
    context.fillStyle = view.found && !view.found[process] ? colours.faint : colours.ink;
    const name = thread ? "thread" : view.nameOf(process) + (hidden ? ` +${hidden}` : "");
    context.fillText(name, indent + 12, y);
    if (!thread) {
      const width = context.measureText(name).width;
      context.fillStyle = colours.faint;
      context.fillText(recording.pid(process), indent + 18 + width, y);
    }
  }
}

/** The name of each category at the first of its rows that is visible. */
function paintCategories(context: CanvasRenderingContext2D, view: View, rows: Rows, colours: Colours, frame: Frame): void {
  const { recording } = view;
  context.font = `12px ${FONT}`;
  const [from, to] = visibleRows(rows, frame);
  let last = -1;
  let free = -Infinity;
  for (let row = from; row < to; row++) {
    const lane = recording.lane[rows.process[rows.head[row]]];
    if (lane === last) continue;
    last = lane;
    const top = Math.max(frame.top, frame.top + (row - frame.row) * frame.rowHeight);
    // Not through the name above it.
    if (top - free > 7) {
      context.fillStyle = colours.grid;
      context.fillRect(0, top, frame.gutter, 1);
    }
    const y = top + 9;
    if (y - free < 13) continue;
    free = y;
    context.fillStyle = colours.lanes[lane];
    context.fillRect(12, y - 5, 9, 9);
    context.fillStyle = colours.ink;
    context.fillText(recording.lanes[lane]?.name ?? "", 27, y);
  }
}

/** Where rows are too low for names: how many there are. */
function paintNumbers(context: CanvasRenderingContext2D, rows: Rows, colours: Colours, frame: Frame): void {
  context.fillStyle = colours.faint;
  context.font = `11px ${FONT}`;
  context.textAlign = "right";
  const shown = (frame.height - frame.top) / frame.rowHeight;
  const step = Math.max(1, niceStep(Math.min(shown, rows.count), 6));
  for (let row = Math.ceil(frame.row / step) * step; row <= Math.min(rows.count, frame.row + shown); row += step) {
    const y = frame.top + (row - frame.row) * frame.rowHeight;
    context.fillText(row.toLocaleString("en"), frame.gutter - 10, Math.max(frame.top + 8, y));
    context.fillRect(frame.gutter - 6, y, 5, 1);
  }
  context.textAlign = "left";
  context.fillText("row", 12, frame.top + 8);
}

/** Where the name of a bar begins in the gutter. */
export function indentOf(view: View, rows: Rows, bar: number): number {
  return view.tree ? 6 + Math.min(rows.depth[bar], 12) * 11 : 6;
}
