// The part of the chart that is visible: what all that draw it look at.

import type { Rows } from "./rows";

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";

/** Height of the axis, of the lane of the critical path below it, and of a line of names of marks. */
export const AXIS = 20;
export const PATH_LANE = 12;
export const MARK_LINE = 14;

export interface Frame {
  width: number; height: number; gutter: number; top: number; ratio: number;
  /** First visible row (may be a fraction) and height of a row in CSS pixels. */
  row: number; rowHeight: number;
}

/** First and last visible rows. */
export function visibleRows(rows: Rows, frame: Frame): [number, number] {
  const from = Math.max(0, Math.floor(frame.row));
  const shown = (frame.height - frame.top) / frame.rowHeight;
  return [from, Math.min(rows.count, Math.ceil(frame.row + shown))];
}
