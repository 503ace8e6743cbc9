// Draws the bars of the visible rows. What a frame costs depends on the pixels, not on the processes: blocks of
// rows outside the visible time are skipped, bars within one pixel are drawn once, and where a whole recording
// is narrower than its processes, it is drawn from an overview that is made once.

import { moment, niceStep, time } from "./format";
import { FONT, type Frame, visibleRows } from "./frame";
import { paintGutter } from "./gutter";
import { isJoined, markPath, paintPath } from "./path";
import { isThread, type Rows } from "./rows";
import { type Colours, inkOn, mix, pixel } from "./theme";
import type { View } from "./view";

/** Rows lower than this are drawn as pixels; rows of many bars also if they are higher. */
const RECT_MIN = 3;
const PACKED_RECT_MIN = 10;
/** Rows per block for which the time span is known. */
const BLOCK = 64;
/** Labels of marks: their lines, height of a line, and letters. */
const MARK_LEVELS = 4;
const MARK_LINE = 14;
const MARK_LETTERS = 40;
/** Size of the overview. */
const OVERVIEW_ROWS = 1024;
const OVERVIEW_COLUMNS = 2048;

export class Painter {
  /** How many rectangles or runs of pixels the last frame drew. */
  drawn = 0;
  /** How many lines of marks it drew. */
  marks = 0;
  private blocks: { from: Float64Array; to: Float64Array } | null = null;
  private overview: { rows: number; perRow: number; codes: Uint8Array } | null = null;
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);
  /** Colour number of each bar. */
  private codes = new Uint8Array(0);
  private palette: string[] = [];

  constructor(private readonly view: View, private rows: Rows, private colours: Colours) {
    this.changed(rows, colours);
  }

  /** Other rows, colours or search results. */
  changed(rows: Rows, colours: Colours): void {
    this.rows = rows;
    this.colours = colours;
    this.blocks = null;
    this.overview = null;
    const { recording } = this.view;
    const lanes = colours.lanes;
    // Colours, then the same for what was not searched for.
    const base = this.view.byOutcome ? [colours.rest, colours.series[1], colours.series[5], colours.grid] : lanes;
    const pale = base.map((colour) => mix(colour, colours.paper, 0.8));
    this.palette = [...base, ...pale];
    const status = this.view.byOutcome && recording.rest ? recording.processes.column("status") : null;
    const found = this.view.found;
    this.codes = new Uint8Array(rows.process.length);
    for (let bar = 0; bar < this.codes.length; bar++) {
      const process = rows.process[bar];
      let code = recording.lane[process];
      if (status) {
        const how = status[process];
        code = Number.isNaN(how) ? 3 : how === 0 ? 0 : how & 0x7f ? 2 : 1;
      }
      this.codes[bar] = found && !found[process] ? code + base.length : code;
    }
  }

  colourOf(bar: number): string {
    return this.palette[this.codes[bar]] ?? this.colours.rest;
  }

  paint(context: CanvasRenderingContext2D, frame: Frame): void {
    const { colours } = this;
    this.drawn = 0;
    context.setTransform(frame.ratio, 0, 0, frame.ratio, 0, 0);
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, frame.width, frame.height);
    const asPixels = frame.rowHeight < (this.view.order === "category" ? PACKED_RECT_MIN : RECT_MIN);
    if (asPixels) {
      this.paintPixels(context, frame);
      this.paintGrid(context, frame);
    } else {
      this.paintGrid(context, frame);
      this.paintRects(context, frame);
    }
    this.paintAxis(context, frame);
    if (this.view.path && (!asPixels || isJoined(this.view, frame))) this.drawn += paintPath(context, this.view, this.rows, colours, frame);
    this.paintMarks(context, frame);
    this.paintSelection(context, frame);
    paintGutter(context, this.view, this.rows, colours, frame);
  }

  // ---- rows of less than a few pixels ----

  private paintPixels(context: CanvasRenderingContext2D, frame: Frame): void {
    const { view, rows } = this;
    const width = Math.max(1, Math.round((frame.width - frame.gutter) * frame.ratio));
    const height = Math.max(1, Math.round((frame.height - frame.top) * frame.ratio));
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    const out = this.pixels;
    out.fill(pixel(this.colours.paper));
    const palette = Uint32Array.from(this.palette, pixel);
    const rowPixels = frame.rowHeight * frame.ratio;
    const scale = width / view.span;
    const overview = this.overviewFor(rowPixels, scale);
    if (overview) this.copyOverview(overview, palette, width, height, frame);
    else {
      const [from, to] = visibleRows(rows, frame);
      const blocks = this.blockSpans();
      const packed = view.order === "category" && !view.threads;
      const narrowest = packed ? 1 : 2;
      for (let row = from; row < to; row++) {
        const block = Math.floor(row / BLOCK);
        if (blocks.to[block] < view.from || blocks.from[block] > view.to) {
          row = (block + 1) * BLOCK - 1;
          continue;
        }
        const top = Math.max(0, Math.floor((row - frame.row) * rowPixels));
        const below = Math.floor((row + 1 - frame.row) * rowPixels) - (rowPixels >= 5 ? 1 : 0);
        const bottom = Math.min(height, Math.max(top + 1, below));
        let [covered, coveredCode] = [-1, -1];
        for (let at = packed ? this.firstVisible(row) : rows.first[row]; at < rows.first[row + 1]; at++) {
          const bar = rows.bars[at];
          if (rows.start[bar] > view.to) {
            if (view.threads) continue;
            break;
          }
          if (rows.end[bar] < view.from) continue;
          const left = Math.max(0, Math.floor((rows.start[bar] - view.from) * scale));
          const right = Math.min(width, Math.max(left + narrowest, Math.floor((rows.end[bar] - view.from) * scale)));
          const code = this.codes[bar];
          // The same pixels again.
          if (right <= covered && code === coveredCode) continue;
          [covered, coveredCode] = [right, code];
          const colour = palette[code];
          for (let y = top; y < bottom; y++) {
            const line = y * width;
            if (right - left > 24) out.fill(colour, line + left, line + right);
            else for (let x = left; x < right; x++) out[line + x] = colour;
          }
          this.drawn++;
        }
      }
    }
    if (view.path && !isJoined(view, frame)) {
      const ink = pixel(this.colours.path);
      this.drawn += markPath(view, rows, frame, (left, top, right, bottom) => {
        const [first, last] = [Math.max(0, left), Math.min(width, right)];
        for (let y = Math.max(0, top); y < Math.min(height, bottom); y++) {
          for (let x = first; x < last; x++) out[y * width + x] = ink;
        }
      });
    }
    context.putImageData(this.image, Math.round(frame.gutter * frame.ratio), Math.round(frame.top * frame.ratio));
  }

  private blockSpans(): { from: Float64Array; to: Float64Array } {
    if (!this.blocks) {
      const { rows } = this;
      const count = Math.ceil(rows.count / BLOCK);
      const from = new Float64Array(count).fill(Infinity);
      const to = new Float64Array(count).fill(-Infinity);
      for (let row = 0; row < rows.count; row++) {
        const block = Math.floor(row / BLOCK);
        for (let at = rows.first[row]; at < rows.first[row + 1]; at++) {
          from[block] = Math.min(from[block], rows.start[rows.bars[at]]);
          to[block] = Math.max(to[block], rows.end[rows.bars[at]]);
        }
      }
      this.blocks = { from, to };
    }
    return this.blocks;
  }

  /** The overview, if a frame needs no more detail than it has. */
  private overviewFor(rowPixels: number, scale: number): Painter["overview"] {
    const { rows } = this;
    const { length } = this.view.recording;
    const perRow = Math.ceil(rows.count / OVERVIEW_ROWS);
    if (perRow < 8 || rowPixels * perRow > 1.5 || scale > (1.05 * OVERVIEW_COLUMNS) / length) return null;
    if (!this.overview) {
      // Code 255: no bar.
      const codes = new Uint8Array(OVERVIEW_ROWS * OVERVIEW_COLUMNS).fill(255);
      const columns = OVERVIEW_COLUMNS / length;
      for (let row = 0; row < rows.count; row++) {
        const base = Math.floor(row / perRow) * OVERVIEW_COLUMNS;
        for (let at = rows.first[row]; at < rows.first[row + 1]; at++) {
          const bar = rows.bars[at];
          const left = Math.min(OVERVIEW_COLUMNS - 1, Math.floor(rows.start[bar] * columns));
          const right = Math.min(OVERVIEW_COLUMNS, Math.max(left + 1, Math.floor(rows.end[bar] * columns)));
          codes.fill(this.codes[bar], base + left, base + right);
        }
      }
      this.overview = { rows: OVERVIEW_ROWS, perRow, codes };
    }
    return this.overview;
  }

  private copyOverview(
    overview: NonNullable<Painter["overview"]>, palette: Uint32Array, width: number, height: number, frame: Frame,
  ): void {
    const { view } = this;
    const columnOf = new Uint32Array(width);
    const perPixel = ((view.span / width) * OVERVIEW_COLUMNS) / view.recording.length;
    const first = (view.from * OVERVIEW_COLUMNS) / view.recording.length;
    for (let x = 0; x < width; x++) columnOf[x] = Math.min(OVERVIEW_COLUMNS - 1, Math.floor(first + x * perPixel));
    const rowPixels = frame.rowHeight * frame.ratio;
    for (let y = 0; y < height; y++) {
      const row = Math.floor((frame.row + (y + 0.5) / rowPixels) / overview.perRow);
      if (row >= overview.rows) break;
      for (let x = 0; x < width; x++) {
        const code = overview.codes[row * OVERVIEW_COLUMNS + columnOf[x]];
        if (code !== 255) this.pixels[y * width + x] = palette[code];
      }
    }
    this.drawn += height;
  }

  // ---- rows that can be told apart ----

  private paintRects(context: CanvasRenderingContext2D, frame: Frame): void {
    const { view, rows, colours } = this;
    const [from, to] = visibleRows(rows, frame);
    const gap = frame.rowHeight >= 6 ? Math.max(1, Math.round(frame.rowHeight * 0.12)) : 0;
    const labels = frame.rowHeight >= 12;
    context.save();
    context.beginPath();
    context.rect(frame.gutter, frame.top, frame.width - frame.gutter, frame.height - frame.top);
    context.clip();
    context.font = `${Math.min(12, frame.rowHeight - 3)}px ${FONT}`;
    context.textBaseline = "middle";
    for (let row = from; row < to; row++) {
      const top = Math.round((frame.top + (row - frame.row) * frame.rowHeight) * frame.ratio) / frame.ratio;
      const bottom = Math.round((frame.top + (row + 1 - frame.row) * frame.rowHeight) * frame.ratio) / frame.ratio;
      const height = bottom - top - gap;
      if (rows.head[row] === view.focus) {
        context.fillStyle = mix(colours.focus, colours.paper, 0.82);
        context.fillRect(frame.gutter, top - gap / 2, frame.width - frame.gutter, frame.rowHeight);
      }
      this.paintRow(context, frame, row, top, height, labels);
    }
    context.restore();
  }

  /** The bars of a row; those with the same colour and less than a pixel between them as one. */
  private paintRow(
    context: CanvasRenderingContext2D, frame: Frame, row: number, top: number, height: number, labels: boolean,
  ): void {
    const { view, rows } = this;
    const scale = (frame.width - frame.gutter) / view.span;
    const packed = view.order === "category" && !view.threads;
    const snap = (x: number) => Math.round(x * frame.ratio) / frame.ratio;
    let [runLeft, runRight, runCode, runInset] = [0, -1, -1, 0];
    const flush = () => {
      if (runCode < 0) return;
      context.fillStyle = this.palette[runCode] ?? this.colours.rest;
      context.fillRect(runLeft, top + runInset, runRight - runLeft, height - 2 * runInset);
      this.drawn++;
    };
    const named: [number, number, number][] = [];
    for (let at = packed ? this.firstVisible(row) : rows.first[row]; at < rows.first[row + 1]; at++) {
      const bar = rows.bars[at];
      if (rows.start[bar] > view.to) {
        if (view.threads) continue;
        break;
      }
      if (rows.end[bar] < view.from) continue;
      // Whole pixels are sharp, and drawn faster.
      const left = snap(frame.gutter + Math.max(-2, (rows.start[bar] - view.from) * scale));
      const end = snap(frame.gutter + Math.min(frame.width + 2, (rows.end[bar] - view.from) * scale));
      const right = Math.max(left + 1 / frame.ratio, end);
      const code = this.codes[bar];
      const inner = rows.nested[bar] === 1;
      const inset = inner || isThread(view.recording, bar) ? Math.round(height * 0.28) : 0;
      if (code === runCode && inset === runInset && left >= runLeft && left <= runRight) {
        runRight = Math.max(runRight, right);
      } else {
        flush();
        [runLeft, runRight, runCode, runInset] = [left, right, code, inset];
      }
      if (labels && !inner && right - left > 46) named.push([bar, left, right]);
    }
    flush();
    for (const [bar, left, right] of named) this.label(context, bar, left, right, top + height / 2, frame);
  }

  /** The first bar of a packed row that ends within the visible time or later: they do not overlap. */
  private firstVisible(row: number): number {
    const { rows, view } = this;
    let [low, high] = [rows.first[row], rows.first[row + 1]];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows.end[rows.bars[middle]] < view.from) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private label(
    context: CanvasRenderingContext2D, bar: number, left: number, right: number, y: number, frame: Frame,
  ): void {
    const { recording } = this.view;
    const colour = this.colourOf(bar);
    const from = Math.max(left, frame.gutter);
    const room = Math.min(right, frame.width) - from - 8;
    const letters = Math.floor(room / 6.2);
    if (letters < 3) return;
    const process = this.rows.process[bar];
    const text = isThread(recording, bar) ? "thread" : recording.rest?.command(process) ?? recording.name(process);
    context.fillStyle = inkOn(colour);
    context.fillText(text.length > letters ? `${text.slice(0, letters - 1)}…` : text, from + 4, y + 0.5, room);
  }

  // ---- over the bars ----

  private paintAxis(context: CanvasRenderingContext2D, frame: Frame): void {
    const { view, colours } = this;
    const step = niceStep(view.span, (frame.width - frame.gutter) / 110);
    const scale = (frame.width - frame.gutter) / view.span;
    context.font = `11px ${FONT}`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, frame.width, frame.top);
    context.fillStyle = colours.faint;
    for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
      const x = Math.round(frame.gutter + (at - view.from) * scale) + 0.5;
      context.fillText(moment(at, step), x + 4, frame.top / 2);
    }
  }

  private paintGrid(context: CanvasRenderingContext2D, frame: Frame): void {
    const { view, colours } = this;
    const step = niceStep(view.span, (frame.width - frame.gutter) / 110);
    const scale = (frame.width - frame.gutter) / view.span;
    context.fillStyle = colours.grid;
    context.globalAlpha = 0.7;
    for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
      context.fillRect(Math.round(frame.gutter + (at - view.from) * scale), frame.top - 5, 1, frame.height);
    }
    context.globalAlpha = 1;
  }

  /** Lines at the moments that the payload named. A label is above all labels whose lines it would touch. */
  private paintMarks(context: CanvasRenderingContext2D, frame: Frame): void {
    const { view, colours } = this;
    const scale = (frame.width - frame.gutter) / view.span;
    const placed: { x: number; level: number }[] = [];
    this.marks = 0;
    context.save();
    context.beginPath();
    context.rect(frame.gutter, 0, frame.width - frame.gutter, frame.height);
    context.clip();
    context.font = `11px ${FONT}`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    const { marks } = view.recording;
    for (let at = marks.length - 1; at >= 0; at--) {
      const [time, name] = marks[at];
      if (time < view.from || time > view.to) continue;
      const x = Math.round(frame.gutter + (time - view.from) * scale) + 0.5;
      const last = placed[placed.length - 1];
      // Several lines in a pixel are one.
      if (last && last.x - x < 1) continue;
      const text = name.length > MARK_LETTERS ? `${name.slice(0, MARK_LETTERS - 1)}…` : name;
      const end = x + 4 + context.measureText(text).width + 6;
      let level = 0;
      for (let other = placed.length - 1; other >= 0 && placed[other].x < end; other--) {
        level = Math.max(level, placed[other].level + 1);
      }
      const labelled = level < MARK_LEVELS;
      placed.push({ x, level: labelled ? level : -1 });
      const y = frame.top + (MARK_LEVELS - level - 0.5) * MARK_LINE;
      context.strokeStyle = colours.mark;
      context.lineWidth = 1;
      context.setLineDash([5, 4]);
      context.beginPath();
      context.moveTo(x, labelled ? y - MARK_LINE / 2 : frame.top);
      context.lineTo(x, frame.height);
      context.stroke();
      this.marks++;
      if (!labelled) continue;
      context.setLineDash([]);
      // So that it can be read on bars.
      context.strokeStyle = colours.paper;
      context.lineWidth = 4;
      context.lineJoin = "round";
      context.strokeText(text, x + 4, y);
      context.fillStyle = colours.ink;
      context.fillText(text, x + 4, y);
    }
    context.restore();
  }

  private paintSelection(context: CanvasRenderingContext2D, frame: Frame): void {
    const { view, colours } = this;
    const scale = (frame.width - frame.gutter) / view.span;
    const x = (t: number) => Math.min(frame.width, Math.max(frame.gutter, frame.gutter + (t - view.from) * scale));
    if (view.selection) {
      const [from, to] = view.selection.map(x);
      context.fillStyle = colours.shade;
      context.globalAlpha = colours.dark ? 0.55 : 0.28;
      context.fillRect(frame.gutter, 0, from - frame.gutter, frame.height);
      context.fillRect(to, 0, frame.width - to, frame.height);
      context.globalAlpha = 1;
      context.fillStyle = colours.focus;
      context.fillRect(from - 0.5, 0, 1, frame.height);
      context.fillRect(to - 0.5, 0, 1, frame.height);
      context.font = `11px ${FONT}`;
      context.fillText(time(view.selection[1] - view.selection[0]), from + 4, frame.height - 8);
    }
    if (view.hover !== null && view.hover >= view.from && view.hover <= view.to) {
      context.fillStyle = colours.faint;
      context.fillRect(Math.round(x(view.hover)), 0, 1, frame.height);
    }
  }
}
