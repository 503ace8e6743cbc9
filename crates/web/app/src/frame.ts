// The part of the chart that is visible: what all that draw it look at.

import type { Rows } from "./rows";

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";

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
