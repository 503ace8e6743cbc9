// Lines at the moments that the payload named, with their names in a band of their own above the rows.

import { AXIS, FONT, type Frame, MARK_LINE, PATH_LANE } from "./frame";
import type { Colours } from "./theme";
import type { View } from "./view";

/** Most lines of names, and letters of a name. */
const LEVELS_MAX = 4;
const LETTERS_MAX = 40;
const LETTERS_MIN = 6;

interface Placed { x: number; text: string; /** -1 for none. */ level: number; left: number }

export class Marks {
  /** How many lines were drawn last. */
  drawn = 0;
  private readonly names: string[];
  /** Widths of names and of parts of them: to measure them takes longer than to draw them. */
  private readonly widths = new Map<string, number>();

  constructor(private readonly view: View) {
    this.names = shortened(view.recording.marks.map(([, name]) => name));
  }

  /** Lines of names that the whole recording needs. */
  levels(context: CanvasRenderingContext2D, frame: Frame): number {
    const placed = this.place(context, frame, 0, this.view.home);
    return placed.reduce((most, one) => Math.max(most, one.level + 1), 0);
  }

  private width(context: CanvasRenderingContext2D, text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      width = context.measureText(text).width;
      this.widths.set(text, width);
    }
    return width;
  }

  /** From right to left: a name is above all names whose lines it would touch. */
  private place(context: CanvasRenderingContext2D, frame: Frame, from: number, to: number): Placed[] {
    const { marks } = this.view.recording;
    const scale = (frame.width - frame.gutter) / (to - from);
    const placed: Placed[] = [];
    context.font = `11px ${FONT}`;
    for (let at = marks.length - 1; at >= 0; at--) {
      const [time] = marks[at];
      if (time < from || time > to) continue;
      const x = Math.round(frame.gutter + (time - from) * scale) + 0.5;
      const last = placed[placed.length - 1];
      // Several lines in a pixel are one.
      if (last && last.x - x < 1) continue;
      let text = this.names[at];
      let width = this.width(context, text);
      const shorten = (room: number) => {
        for (let letters = text.length - 1; letters >= LETTERS_MIN; letters--) {
          const cut = `${text.slice(0, letters)}…`;
          const wide = this.width(context, cut);
          if (wide > room) continue;
          [text, width] = [cut, wide];
          return true;
        }
        return false;
      };
      // At the right edge, it is cut, or on the other side of its line.
      if (x + 4 + width > frame.width) shorten(frame.width - x - 6);
      const left = x + 4 + width > frame.width ? Math.max(frame.gutter + 2, x - 4 - width) : x + 4;
      let level = 0;
      for (const other of placed) {
        if (Math.min(other.x, other.left) < left + width + 6 && other.level >= level) level = other.level + 1;
      }
      if (level >= LEVELS_MAX && last) {
        // As much of it as there is room for before the next line.
        if (shorten(Math.min(last.x, last.left) - x - 8)) level = 0;
      }
      placed.push({ x, text, level: level < LEVELS_MAX ? level : -1, left });
    }
    return placed;
  }

  paint(context: CanvasRenderingContext2D, colours: Colours, frame: Frame): void {
    const { view } = this;
    const lines = Math.round((frame.top - AXIS - PATH_LANE) / MARK_LINE);
    context.save();
    context.beginPath();
    context.rect(frame.gutter, 0, frame.width - frame.gutter, frame.height);
    context.clip();
    context.textBaseline = "middle";
    context.textAlign = "left";
    this.drawn = 0;
    const placed = this.place(context, frame, view.from, view.to);
    for (const { x, text, level, left } of placed) {
      const named = level >= 0 && level < lines;
      const y = AXIS + (lines - level - 0.5) * MARK_LINE;
      context.strokeStyle = colours.mark;
      context.lineWidth = 1;
      context.setLineDash([5, 4]);
      context.beginPath();
      context.moveTo(x, named ? y - MARK_LINE / 2 : frame.top);
      context.lineTo(x, frame.height);
      context.stroke();
      this.drawn++;
      if (!named) continue;
      context.setLineDash([]);
      context.fillStyle = colours.ink;
      context.fillText(text, left, y);
    }
    context.restore();
  }
}

/** Long names without what all of them begin with; then what remains, cut. */
function shortened(names: string[]): string[] {
  let common = names[0] ?? "";
  for (const name of names) while (!name.startsWith(common)) common = common.slice(0, -1);
  // Up to the end of a word.
  const end = names.length > 1 && names.some((name) => name.length > 24) ? common.search(/[^/:.\s]*$/) : 0;
  return names.map((name) => {
    const rest = end > 3 ? `…${name.slice(end)}` : name;
    return rest.length > LETTERS_MAX ? `${rest.slice(0, LETTERS_MAX - 1)}…` : rest;
  });
}
