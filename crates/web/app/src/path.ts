// Draws the critical path: in a lane of its own, and as lines over the bars where its parts can be told apart.

import { Cells, css } from "./density";
import { type Frame, PATH_LANE } from "./frame";
import type { Rows } from "./rows";
import { type Colours, pixel } from "./theme";
import type { View } from "./view";

/** The columns of the critical path, and which of its parts are visible. */
interface Visible {
  owner: Float64Array;
  begin: Float64Array;
  length: Float64Array;
  from: number;
  to: number;
}

/** Rows lower than this cannot be told apart. */
const ROW_MIN = 3;

/** Null if the critical path is not known. */
function visiblePath(view: View): Visible | null {
  const table = view.recording.rest?.table("path");
  if (!table || table.rows === 0 || table.unknown("process") !== null) return null;
  const [owner, begin, length] = ["process", "begin_ns", "length_ns"].map((name) => table.column(name));
  const from = firstOf(table.rows, (at) => begin[at] + length[at] >= view.from);
  const to = firstOf(table.rows, (at) => begin[at] > view.to);
  return { owner, begin, length, from, to: Math.max(from, to) };
}

/** The first of so many for which a condition holds that then holds for all others. */
function firstOf(count: number, holds: (at: number) => boolean): number {
  let low = 0;
  for (let high = count; low < high;) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Whether lines can join the parts: rows and parts can be told apart. */
function isJoined(view: View, frame: Frame): boolean {
  const path = visiblePath(view);
  return path !== null && frame.rowHeight >= ROW_MIN && path.to - path.from < (frame.width - frame.gutter) / 4;
}

/** The critical path in a lane of its own below the axis: who was on it when. */
export function paintLane(context: CanvasRenderingContext2D, view: View, colours: Colours, frame: Frame): number {
  const path = visiblePath(view);
  if (!path) return 0;
  const columns = Math.ceil((frame.width - frame.gutter) / 2);
  const cells = new Cells(1, columns);
  const scale = columns / view.span;
  const inks = Uint32Array.from(colours.lanes, pixel);
  const { recording } = view;
  for (let at = path.from; at < path.to; at++) {
    const ink = inks[recording.lane[path.owner[at]] ?? 0] ?? pixel(colours.rest);
    const begin = (path.begin[at] - view.from) * scale;
    cells.add(0, begin, begin + path.length[at] * scale, ink, 1);
  }
  const top = frame.top - PATH_LANE + 2;
  let drawn = 0;
  let [from, last] = [0, 0];
  const paper = pixel(colours.paper);
  for (let column = 0; column <= columns; column++) {
    const colour = column < columns ? cells.colour(0, column, 1, paper) : 0;
    if (colour === last && column < columns) continue;
    if (last !== 0) {
      context.fillStyle = css(last);
      context.fillRect(frame.gutter + from * 2, top, (column - from) * 2, PATH_LANE - 5);
      drawn++;
    }
    [from, last] = [column, colour];
  }
  return drawn;
}

/** The critical path over the bars, where its parts can be told apart: along them, and up or down where it goes on in another process. */
export function paintPath(
  context: CanvasRenderingContext2D, view: View, rows: Rows, colours: Colours, frame: Frame,
): number {
  const path = visiblePath(view);
  if (!path || !isJoined(view, frame)) return 0;
  let drawn = 0;
  context.save();
  context.beginPath();
  context.rect(frame.gutter, frame.top, frame.width - frame.gutter, frame.height - frame.top);
  context.clip();
  drawn = joinPath(context, rows, colours, view, frame, path);
  context.restore();
  return drawn;
}

function joinPath(
  context: CanvasRenderingContext2D, rows: Rows, colours: Colours, view: View, frame: Frame, path: Visible,
): number {
  let drawn = 0;
  const { owner, begin, length } = path;
  const scale = (frame.width - frame.gutter) / view.span;
  const x = (t: number) => frame.gutter + Math.min(1e5, Math.max(-10, (t - view.from) * scale));
  // Along the lower edge of bars that have names.
  const level = frame.rowHeight >= 12 ? 0.95 : 0.5;
  const y = (row: number) => frame.top + (row + level - frame.row) * frame.rowHeight;
  const [line, steps] = [new Path2D(), new Path2D()];
  let started = false;
  // Parts within a pixel column are one vertical line.
  let column = NaN;
  let [highest, lowest, lastY] = [0, 0, 0];
  const flush = () => {
    if (Number.isNaN(column) || lowest - highest < 1) return;
    steps.moveTo(column, highest);
    steps.lineTo(column, lowest);
  };
  for (let at = Math.max(0, path.from - 1); at < path.to; at++) {
    const row = rows.rowOf[owner[at]] ?? -1;
    if (row < 0) {
      started = false;
      continue;
    }
    const [left, right, here] = [x(begin[at]), x(begin[at] + length[at]), y(row)];
    if (right - left < 1 && started) {
      if (Math.round(left) !== column) {
        flush();
        [column, highest, lowest] = [Math.round(left), Math.min(lastY, here), Math.max(lastY, here)];
      }
      highest = Math.min(highest, here);
      lowest = Math.max(lowest, here);
      lastY = here;
      continue;
    }
    flush();
    column = NaN;
    if (started) {
      steps.moveTo(left, lastY);
      steps.lineTo(left, here);
    }
    line.moveTo(left, here);
    line.lineTo(right, here);
    [started, lastY] = [true, here];
    drawn++;
  }
  flush();
  const wide = Math.min(3, Math.max(1.8, frame.rowHeight / 6));
  context.strokeStyle = colours.halo;
  context.lineWidth = wide + 2;
  context.stroke(line);
  context.strokeStyle = colours.path;
  context.lineWidth = wide;
  context.stroke(line);
  context.lineWidth = 1;
  context.stroke(steps);
  return drawn;
}
