// Draws the bars of the visible rows. What a frame costs depends on the pixels, not on the processes: blocks of
// rows outside the visible time are skipped, many bars within few pixels are drawn as a density, and where a whole
// recording is narrower than its processes, it is drawn from an overview that is made once.

import { Cells } from "./density";
import { moment, niceStep, time } from "./format";
import { AXIS, FONT, type Frame, visibleRows } from "./frame";
import { paintGutter } from "./gutter";
import { Marks } from "./marks";
import { paintLane, paintPath } from "./path";
import { isThread, type Rows } from "./rows";
import { type Colours, inkOn, mix, pixel } from "./theme";
import type { View } from "./view";

/** Rows lower than this are drawn as a density. */
const RECT_MIN = 4;
/** Rows per block for which the time span is known. */
const BLOCK = 64;
/** Size of a cell of the density in CSS pixels. */
const CELL = 3;
const COLUMN = 2;
/** What was searched for is seen among any number of others. */
const FOUND_SHARE = 1000;
/** Size of the overview. */
const OVERVIEW_ROWS = 512;
const OVERVIEW_COLUMNS = 1024;

export class Painter {
  /** How many rectangles or runs of pixels the last frame drew. */
  drawn = 0;
  readonly marks: Marks;
  private blocks: { from: Float64Array; to: Float64Array } | null = null;
  private overview: { perRow: number; cells: Cells } | null = null;
  private image: ImageData | null = null;
  private crowd: ImageData | null = null;
  private pixels = new Uint32Array(0);
  /** Colour number of each bar. */
  private codes = new Uint8Array(0);
  private palette: string[] = [];
  private inks = new Uint32Array(0);
  /** Colours from this code on are those of what was not searched for. */
  private pale = 0;

  constructor(private readonly view: View, private rows: Rows, private colours: Colours) {
    this.marks = new Marks(view);
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
    this.inks = Uint32Array.from(this.palette, pixel);
    this.pale = base.length;
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
    if (frame.rowHeight < RECT_MIN) {
      this.paintDensity(context, frame);
      this.paintGrid(context, frame);
    } else {
      this.paintGrid(context, frame);
      this.paintRects(context, frame);
    }
    if (this.view.path) this.drawn += paintPath(context, this.view, this.rows, colours, frame);
    this.paintAxis(context, frame);
    if (this.view.path) this.drawn += paintLane(context, this.view, colours, frame);
    this.paintAfter(context, frame);
    this.marks.paint(context, colours, frame);
    this.paintSelection(context, frame);
    paintGutter(context, this.view, this.rows, colours, frame);
  }

  // ---- rows of less than a few pixels ----

  private paintDensity(context: CanvasRenderingContext2D, frame: Frame): void {
    const { view, rows } = this;
    const width = Math.max(1, Math.round((frame.width - frame.gutter) * frame.ratio));
    const height = Math.max(1, Math.round((frame.height - frame.top) * frame.ratio));
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    const out = this.pixels;
    const paper = pixel(this.colours.paper);
    out.fill(paper);
    const columns = Math.max(1, Math.ceil(width / (COLUMN * frame.ratio)));
    let perCell = Math.max(1, Math.ceil(CELL / frame.rowHeight));
    const overview = this.overviewFor(perCell, view.span / columns);
    // Rows of the overview are in one cell each.
    if (overview) perCell -= perCell % overview.perRow;
    // Cells begin at multiples of their rows, so that they do not change while rows are scrolled.
    const [from, to] = visibleRows(rows, frame);
    const first = Math.floor(from / perCell);
    const cells = new Cells(Math.max(1, Math.ceil(to / perCell) - first), columns);
    if (overview) this.addOverview(cells, overview, first, perCell);
    else this.addBars(cells, from, to, first, perCell);
    const rowPixels = frame.rowHeight * frame.ratio;
    const columnPixels = width / columns;
    for (let cell = 0; cell < cells.rows; cell++) {
      const begin = (first + cell) * perCell;
      const top = Math.max(0, Math.round((begin - frame.row) * rowPixels));
      const bottom = Math.min(height, Math.max(top + 1, Math.round((begin + perCell - frame.row) * rowPixels)));
      // Half of its rows fill a cell: one of two can be seen as well as one of one.
      const filled = Math.max(1, Math.min(perCell, rows.count - begin) / 2);
      for (let column = 0; column < columns; column++) {
        const colour = cells.colour(cell, column, filled, paper);
        if (colour === 0) continue;
        const left = Math.round(column * columnPixels);
        const right = Math.min(width, Math.round((column + 1) * columnPixels));
        for (let y = top; y < bottom; y++) {
          for (let x = left; x < right; x++) out[y * width + x] = colour;
        }
      }
    }
    context.putImageData(this.image, Math.round(frame.gutter * frame.ratio), Math.round(frame.top * frame.ratio));
  }

  private addBars(cells: Cells, from: number, to: number, first: number, perCell: number): void {
    const { view } = this;
    const blocks = this.blockSpans();
    const scale = cells.columns / view.span;
    for (let row = from; row < to; row++) {
      const block = Math.floor(row / BLOCK);
      if (blocks.to[block] < view.from || blocks.from[block] > view.to) {
        row = (block + 1) * BLOCK - 1;
        continue;
      }
      this.addRow(cells, Math.floor(row / perCell) - first, row, scale);
    }
  }

  /** The visible bars of a row. */
  private addRow(cells: Cells, cell: number, row: number, scale: number): void {
    const { view, rows } = this;
    for (let at = this.isPacked() ? this.firstVisible(row) : rows.first[row]; at < rows.first[row + 1]; at++) {
      const bar = rows.bars[at];
      if (rows.start[bar] > view.to) {
        if (view.threads) continue;
        break;
      }
      if (rows.end[bar] < view.from) continue;
      const code = this.codes[bar];
      const share = code < this.pale ? FOUND_SHARE : 1;
      cells.add(cell, (rows.start[bar] - view.from) * scale, (rows.end[bar] - view.from) * scale, this.inks[code], share);
      this.drawn++;
    }
  }

  private isPacked(): boolean {
    return this.view.order === "category" && !this.view.threads;
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
  private overviewFor(perCell: number, perColumn: number): Painter["overview"] {
    const { rows } = this;
    const { length } = this.view.recording;
    const perRow = Math.ceil(rows.count / OVERVIEW_ROWS);
    if (perRow < 8 || perCell < perRow || perColumn < length / OVERVIEW_COLUMNS) return null;
    if (!this.overview) {
      const cells = new Cells(OVERVIEW_ROWS, OVERVIEW_COLUMNS);
      const scale = OVERVIEW_COLUMNS / length;
      for (let row = 0; row < rows.count; row++) {
        for (let at = rows.first[row]; at < rows.first[row + 1]; at++) {
          const bar = rows.bars[at];
          const share = this.codes[bar] < this.pale ? FOUND_SHARE : 1;
          cells.add(Math.floor(row / perRow), rows.start[bar] * scale, rows.end[bar] * scale, this.inks[this.codes[bar]], share);
        }
      }
      this.overview = { perRow, cells };
    }
    return this.overview;
  }

  private addOverview(cells: Cells, overview: NonNullable<Painter["overview"]>, first: number, perCell: number): void {
    const { view } = this;
    const { perRow, cells: from } = overview;
    const perColumn = view.recording.length / OVERVIEW_COLUMNS;
    const scale = cells.columns / view.span;
    const begin = Math.max(0, Math.floor(view.from / perColumn));
    const end = Math.min(from.columns, Math.ceil(view.to / perColumn));
    for (let row = 0; row < from.rows; row++) {
      const cell = Math.floor((row * perRow) / perCell) - first;
      if (cell < 0 || cell >= cells.rows) continue;
      for (let column = begin; column < end; column++) {
        const left = (column * perColumn - view.from) * scale;
        cells.spread(cell, left, left + perColumn * scale, from, row * from.columns + column);
      }
    }
    this.drawn += cells.rows;
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
    const packed = this.isPacked();
    const columns = Math.ceil((frame.width - frame.gutter) / COLUMN);
    if (this.visibleBars(row) > columns / 8) {
      this.paintCrowd(context, frame, row, top, height, columns);
      return;
    }
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
      // What is narrower than two pixels would hardly be seen.
      const right = Math.max(left + 2, end);
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

  /** A row of more bars than can be told apart: as pixels, since so many rectangles would take longer than all else. */
  private paintCrowd(
    context: CanvasRenderingContext2D, frame: Frame, row: number, top: number, height: number, columns: number,
  ): void {
    const cells = new Cells(1, columns);
    const before = this.drawn;
    this.addRow(cells, 0, row, columns / this.view.span);
    this.drawn = before + 1;
    const width = Math.max(1, Math.round((frame.width - frame.gutter) * frame.ratio));
    const lines = Math.max(1, Math.round(height * frame.ratio));
    if (!this.crowd || this.crowd.width !== width || this.crowd.height !== lines) this.crowd = new ImageData(width, lines);
    const out = new Uint32Array(this.crowd.data.buffer);
    const paper = pixel(this.colours.paper);
    for (let column = 0; column < columns; column++) {
      const colour = cells.colour(0, column, 1, paper) || paper;
      out.fill(colour, Math.round((column * width) / columns), Math.round(((column + 1) * width) / columns));
    }
    for (let line = 1; line < lines; line++) out.copyWithin(line * width, 0, width);
    // What reaches over the axis is painted over.
    context.putImageData(this.crowd, Math.round(frame.gutter * frame.ratio), Math.round(top * frame.ratio));
  }

  /** At most so many bars of a row are visible: they are in order of their start. */
  private visibleBars(row: number): number {
    const { rows, view } = this;
    const first = this.isPacked() ? this.firstVisible(row) : rows.first[row];
    let [low, high] = [first, rows.first[row + 1]];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows.start[rows.bars[middle]] <= view.to) low = middle + 1;
      else high = middle;
    }
    return low - first;
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
      const text = moment(at, step);
      if (x + 6 + context.measureText(text).width <= frame.width) context.fillText(text, x + 4, AXIS / 2);
    }
  }

  private paintGrid(context: CanvasRenderingContext2D, frame: Frame): void {
    const { view, colours } = this;
    const step = niceStep(view.span, (frame.width - frame.gutter) / 110);
    const scale = (frame.width - frame.gutter) / view.span;
    context.fillStyle = colours.grid;
    context.globalAlpha = 0.7;
    for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
      context.fillRect(Math.round(frame.gutter + (at - view.from) * scale), frame.top - 4, 1, frame.height);
    }
    context.globalAlpha = 1;
  }

  /** What comes after the end of the command is another matter. */
  private paintAfter(context: CanvasRenderingContext2D, frame: Frame): void {
    const { view, colours } = this;
    if (view.recording.jobEnd === view.recording.length) return;
    const x = frame.gutter + (view.recording.jobEnd - view.from) * ((frame.width - frame.gutter) / view.span);
    if (x >= frame.width) return;
    const left = Math.max(frame.gutter, Math.round(x));
    context.fillStyle = colours.shade;
    context.globalAlpha = colours.dark ? 0.5 : 0.16;
    context.fillRect(left, frame.top, frame.width - left, frame.height - frame.top);
    context.globalAlpha = 1;
    if (x < frame.gutter) return;
    context.fillStyle = colours.mark;
    context.fillRect(left, frame.top - 4, 1, frame.height);
    const text = "after the end of the command";
    context.font = `11px ${FONT}`;
    context.textBaseline = "middle";
    if (left + 10 + context.measureText(text).width < frame.width) context.fillText(text, left + 5, frame.height - 9);
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
