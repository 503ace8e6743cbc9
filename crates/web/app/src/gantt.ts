// The chart of all processes: a canvas with its keys, pointer and tooltip.

import type { Recording } from "./data";
import { announce, h, replace } from "./dom";
import { Painter } from "./draw";
import { AXIS, type Frame, MARK_LINE, PATH_LANE } from "./frame";
import { outcome, time } from "./format";
import { indentOf } from "./gutter";
import { isThread, type Rows, rowsOf } from "./rows";
import type { Colours } from "./theme";
import type { View } from "./view";

const ROW_MAX = 24;

export class Gantt {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  readonly frame: Frame;
  rows: Rows;
  private readonly painter: Painter;
  private readonly tip: HTMLElement;
  private dirty = false;
  private readonly recording: Recording;

  constructor(
    private readonly view: View, colours: Colours, private readonly openProcess: (process: number) => void,
  ) {
    this.recording = view.recording;
    this.canvas = h("canvas", {
      tabindex: "0", role: "application", "aria-roledescription": "timeline", "aria-describedby": "chart-keys",
      "aria-label": `Timeline of ${this.recording.n} processes. The table of processes below has the same data.`,
    });
    this.tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.element = h("div", { class: "chart" }, this.canvas, this.tip);
    this.rows = rowsOf(view);
    this.painter = new Painter(view, this.rows, colours);
    this.frame = { width: 0, height: 0, gutter: 220, top: AXIS + PATH_LANE, ratio: 1, row: 0, rowHeight: 1 };
    this.listen();
  }

  /** Sets the size, and shows all rows if they were all shown before. */
  resize(): void {
    const { frame } = this;
    const all = frame.width === 0 || frame.rowHeight <= this.fitting() * 1.001;
    // Within the border: a picture that is scaled by two pixels is blurred.
    frame.width = Math.max(200, this.element.clientWidth);
    frame.height = Math.max(60, this.element.clientHeight);
    frame.gutter = gutterFor(frame.width);
    frame.ratio = Math.min(3, window.devicePixelRatio || 1);
    this.canvas.width = Math.round(frame.width * frame.ratio);
    this.canvas.height = Math.round(frame.height * frame.ratio);
    const context = this.canvas.getContext("2d", { alpha: false })!;
    frame.top = AXIS + PATH_LANE + this.painter.marks.levels(context, frame) * MARK_LINE;
    if (all) this.fit();
    this.limit();
    this.draw();
  }

  /** The height at which all rows are visible. */
  private fitting(): number {
    return Math.min(18, (this.frame.height - this.frame.top - 4) / Math.max(1, this.rows.count));
  }

  fit(): void {
    this.frame.rowHeight = this.fitting();
    this.frame.row = 0;
    this.draw();
  }

  /** Everything: all rows, and the time of the command; if that is shown already, also what came after it. */
  all(): void {
    const { view } = this;
    const isHome = view.from === 0 && view.to === view.home;
    view.look(0, isHome ? view.recording.length : view.home);
    this.fit();
  }

  /** The height that shows all rows well, if there is so much room. */
  wanted(room: number): number {
    return Math.max(110, Math.min(room, this.frame.top + 18 * this.rows.count + 8));
  }

  /** After a change of order, folding, threads or search. */
  rebuild(colours: Colours): void {
    const all = this.frame.rowHeight <= this.fitting() * 1.001;
    this.rows = rowsOf(this.view);
    this.painter.changed(this.rows, colours);
    if (all) this.fit();
    this.limit();
    this.draw();
  }

  recolour(colours: Colours): void {
    this.painter.changed(this.rows, colours);
    this.draw();
  }

  draw(): void {
    if (this.dirty) return;
    this.dirty = true;
    requestAnimationFrame(() => {
      this.dirty = false;
      this.paint();
    });
  }

  paint(): void {
    const context = this.canvas.getContext("2d", { alpha: false })!;
    this.painter.paint(context, this.frame);
    // For tests.
    const { dataset } = this.canvas;
    dataset.drawn = String(this.painter.drawn);
    dataset.marks = String(this.painter.marks.drawn);
    dataset.rows = String(this.rows.count);
    dataset.window = `${this.view.from} ${this.view.to}`;
    dataset.selection = this.view.selection?.join(" ") ?? "";
  }

  /** Makes the row of a process visible, high enough to be recognized, and its time too. */
  reveal(process: number): void {
    const { tree } = this.view;
    for (let at = process; tree && tree.parent[at] >= 0; at = tree.parent[at]) {
      if (tree.isWithin(at)) {
        tree.folded[tree.parent[at]] = 0;
        this.view.tell("rows");
      }
    }
    const { frame, view } = this;
    const row = this.rows.rowOf[process];
    if (row < 0) return;
    if (frame.rowHeight < 12) frame.rowHeight = 16;
    const shown = (frame.height - frame.top) / frame.rowHeight;
    if (row < frame.row || row >= frame.row + shown - 1) frame.row = row - shown / 2;
    const [start, end] = [this.rows.start[process], this.rows.end[process]];
    const scale = (frame.width - frame.gutter) / view.span;
    const tooShort = (end - start) * scale < 3;
    if (start < view.from || start > view.to || tooShort) {
      const span = Math.max((end - start) * 6, view.recording.length / 1e6, 1000);
      view.look(start - span * 0.3, start + span * 0.7);
    }
    this.limit();
    this.draw();
  }

  scrollRows(by: number): boolean {
    const before = this.frame.row;
    this.frame.row += by;
    this.limit();
    this.draw();
    return this.frame.row !== before;
  }

  zoomRows(factor: number, y = (this.frame.height + this.frame.top) / 2): void {
    const { frame } = this;
    const at = frame.row + (y - frame.top) / frame.rowHeight;
    frame.rowHeight = Math.min(ROW_MAX, Math.max(this.fitting(), frame.rowHeight * factor));
    frame.row = at - (y - frame.top) / frame.rowHeight;
    this.limit();
    this.draw();
  }

  private limit(): void {
    const { frame } = this;
    const shown = (frame.height - frame.top) / frame.rowHeight;
    frame.row = Math.max(0, Math.min(frame.row, this.rows.count - shown + 0.5));
  }

  timeAt(x: number): number {
    const { frame, view } = this;
    return view.from + ((x - frame.gutter) / (frame.width - frame.gutter)) * view.span;
  }

  /** The bar at a point; of low rows the nearest one. -1 for none. */
  barAt(x: number, y: number): number {
    const { frame, rows, view } = this;
    if (y < frame.top) return -1;
    const row = frame.row + (y - frame.top) / frame.rowHeight;
    const reach = frame.rowHeight < 3 ? 2 / frame.rowHeight : 0;
    if (x < frame.gutter) return rows.head[Math.floor(row)] ?? -1;
    const at = this.timeAt(x);
    const slack = (2 * view.span) / (frame.width - frame.gutter);
    let [best, distance] = [-1, Infinity];
    for (let r = Math.max(0, Math.floor(row - reach)); r <= Math.min(rows.count - 1, row + reach); r++) {
      for (let i = rows.first[r]; i < rows.first[r + 1]; i++) {
        const bar = rows.bars[i];
        const away = Math.max(rows.start[bar] - at, at - rows.end[bar], 0);
        if (away > slack) continue;
        // Of two at the same place, the shorter one is drawn over the other.
        const score = away / slack + (rows.end[bar] - rows.start[bar]) / this.recording.length
          + Math.abs(r + 0.5 - row) * frame.rowHeight * 0.2;
        if (score < distance) [best, distance] = [bar, score];
      }
    }
    return best;
  }

  toggleFold(process: number): void {
    const { tree } = this.view;
    if (!tree?.below[process]) return;
    tree.folded[process] = tree.folded[process] ? 0 : 1;
    announce(`${this.view.nameOf(process)} ${tree.folded[process] ? "folded" : "unfolded"}`);
    this.view.tell("rows");
  }

  // ---- input ----

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
      this.view.point(null);
    });
    canvas.addEventListener("dblclick", (event) => {
      const bar = this.barAt(event.offsetX, event.offsetY);
      if (bar >= 0) this.openProcess(this.rows.process[bar]);
    });
    canvas.addEventListener("keydown", (event) => {
      if (this.key(event)) event.preventDefault();
    });
  }

  private wheel(event: WheelEvent): void {
    const amount = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
    const sideways = event.deltaMode === 1 ? event.deltaX * 16 : event.deltaX;
    const perPixel = this.view.span / (this.frame.width - this.frame.gutter);
    if (event.ctrlKey || event.metaKey) {
      this.view.zoom(Math.exp(amount * 0.0025), this.timeAt(Math.max(this.frame.gutter, event.offsetX)));
    } else if (event.altKey) {
      this.zoomRows(Math.exp(-amount * 0.0025), event.offsetY);
    } else if (event.shiftKey) {
      this.view.pan((amount || sideways) * perPixel);
    } else {
      if (sideways) this.view.pan(sideways * perPixel);
      // At the end of the rows the document scrolls.
      if (!this.scrollRows(amount / this.frame.rowHeight) && !sideways) return;
    }
    event.preventDefault();
  }

  private press(down: PointerEvent): void {
    if (down.button !== 0) return;
    const { view, frame } = this;
    const bar = this.barAt(down.offsetX, down.offsetY);
    if (down.offsetX < frame.gutter) {
      if (bar < 0) return;
      const triangle = indentOf(view, this.rows, bar);
      if (Math.abs(down.offsetX - triangle - 5) < 9 && !isThread(this.recording, bar)) this.toggleFold(bar);
      else view.setFocus(bar);
      return;
    }
    const selects = down.shiftKey || down.offsetY < frame.top;
    const [from, row] = [view.from, frame.row];
    const start = this.timeAt(down.offsetX);
    let moved = false;
    const perPixel = view.span / (frame.width - frame.gutter);
    const move = (event: PointerEvent) => {
      const [dx, dy] = [event.clientX - down.clientX, event.clientY - down.clientY];
      if (Math.abs(dx) + Math.abs(dy) > 3) moved = true;
      if (!moved) return;
      this.tip.hidden = true;
      if (selects) view.select([start, start + dx * perPixel]);
      else {
        view.look(from - dx * perPixel, from - dx * perPixel + view.span);
        frame.row = row - dy / frame.rowHeight;
        this.limit();
        this.draw();
      }
    };
    const up = () => {
      this.canvas.removeEventListener("pointermove", move);
      this.canvas.removeEventListener("pointerup", up);
      this.canvas.removeEventListener("pointercancel", up);
      this.canvas.classList.remove("dragging");
      if (!moved) {
        if (bar >= 0) view.setFocus(bar);
        else view.select(null);
      }
    };
    this.canvas.setPointerCapture(down.pointerId);
    this.canvas.classList.add("dragging");
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", up);
    this.canvas.addEventListener("pointercancel", up);
  }

  private hover(event: PointerEvent): void {
    if (event.buttons) return;
    const { frame } = this;
    this.view.point(event.offsetX >= frame.gutter ? this.timeAt(event.offsetX) : null);
    const bar = this.barAt(event.offsetX, event.offsetY);
    if (bar < 0) {
      this.tip.hidden = true;
      return;
    }
    replace(this.tip, ...this.describe(bar));
    this.tip.hidden = false;
    const right = event.offsetX > frame.width / 2;
    this.tip.style.left = right ? "" : `${event.offsetX + 14}px`;
    this.tip.style.right = right ? `${frame.width - event.offsetX + 14}px` : "";
    this.tip.style.top = `${Math.min(event.offsetY + 14, frame.height - 90)}px`;
  }

  private describe(bar: number): HTMLElement[] {
    const { recording, rows } = this;
    const process = rows.process[bar];
    const { rest, processes } = recording;
    const thread = isThread(recording, bar);
    const lines = [h("strong", {}, `${recording.name(process)} ${recording.pid(process)}${thread ? ", a thread" : ""}`)];
    const life = thread || recording.ended(process) ? time(rows.end[bar] - rows.start[bar]) : "alive at the end";
    const facts = [`from ${time(rows.start[bar])}`, life];
    if (rest && !thread) {
      const cpu = processes.column("cpu_ns")[process];
      if (!Number.isNaN(cpu)) facts.push(`CPU ${time(cpu)}`);
      facts.push(outcome(processes.column("status")[process]));
      const command = rest.command(process);
      if (command) lines.push(h("code", {}, command.length > 240 ? `${command.slice(0, 240)}…` : command));
    }
    lines.splice(1, 0, h("span", {}, facts.join(" · ")));
    const step = recording.steps?.around(process);
    if (step) lines.splice(1, 0, h("span", {}, `step ${step}`));
    return lines;
  }

  private key(event: KeyboardEvent): boolean {
    const { view } = this;
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const step = view.span / 10;
    switch (event.key) {
      case "ArrowLeft": view.pan(-step); return true;
      case "ArrowRight": view.pan(step); return true;
      case "ArrowUp": this.move(-1); return true;
      case "ArrowDown": this.move(1); return true;
      case "PageUp": this.move(-20); return true;
      case "PageDown": this.move(20); return true;
      case "Home": this.move(-Infinity); return true;
      case "End": this.move(Infinity); return true;
      case "+": case "=": view.zoom(1 / 1.5, this.centre()); return true;
      case "-": view.zoom(1.5, this.centre()); return true;
      case "]": this.zoomRows(1.5); return true;
      case "[": this.zoomRows(1 / 1.5); return true;
      case "f": case "0":
        this.all();
        return true;
      case "z":
        if (view.selection) view.look(...view.selection);
        return true;
      case "s": this.selectFocus(); return true;
      case " ": if (view.focus >= 0) this.toggleFold(this.rows.process[view.focus]); return true;
      case "Enter": if (view.focus >= 0) this.openProcess(this.rows.process[view.focus]); return true;
      case "Escape": view.select(null); return true;
      default: return false;
    }
  }

  /** Where the keyboard zooms: at the focused bar if it is visible. */
  private centre(): number | undefined {
    const { view, rows } = this;
    if (view.focus < 0) return undefined;
    const middle = (Math.max(rows.start[view.focus], view.from) + Math.min(rows.end[view.focus], view.to)) / 2;
    return middle >= view.from && middle <= view.to ? middle : undefined;
  }

  private selectFocus(): void {
    const { view, rows } = this;
    if (view.focus >= 0) view.select([rows.start[view.focus], rows.end[view.focus]]);
  }

  private move(by: number): void {
    const { view, rows } = this;
    const now = view.focus >= 0 ? rows.rowOf[view.focus] : -1;
    const row = Math.max(0, Math.min(rows.count - 1, now < 0 && by === 1 ? 0 : now + by));
    const bar = rows.head[row];
    if (bar === undefined) return;
    view.setFocus(bar);
    this.reveal(rows.process[bar]);
    const process = rows.process[bar];
    const below = this.recording.births.below[process];
    announce(`${view.nameOf(process)}, pid ${this.recording.pid(process)}, from ${time(rows.start[bar])}, ` +
      `${time(rows.end[bar] - rows.start[bar])}${below ? `, ${below} descendants` : ""}`);
  }
}

/** Width of the column with the names. */
export function gutterFor(width: number): number {
  return width < 560 ? 96 : width < 900 ? 160 : 232;
}
