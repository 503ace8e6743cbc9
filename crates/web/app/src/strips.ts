// Activity over time above the chart, on the same time axis: uPlot, with as many values as there are pixels.

import uPlot from "uplot";
import type { Strip } from "./data";
import { h, replace, swatch } from "./dom";
import { figure } from "./format";
import { gutterFor } from "./gantt";
import type { Colours } from "./theme";
import type { View } from "./view";

const HEIGHT = 48;
/** CSS pixels per value. */
const PIXELS = 2;

export class Strips {
  readonly element = h("div", { class: "strips" });
  private shown: One[] = [];
  private dirty = false;

  constructor(private readonly view: View) {}

  /** The strips that are wanted, by title. */
  build(titles: Set<string>, colours: Colours): void {
    for (const one of this.shown) one.plot.destroy();
    this.shown = [];
    this.element.replaceChildren();
    for (const strip of this.view.recording.strips) {
      if (!titles.has(strip.title)) continue;
      if (!isKnown(strip)) {
        const why = strip.unknown === null ? "none" : `not known: ${strip.unknown}`;
        this.element.append(h("p", { class: "strip unknown" }, h("strong", {}, strip.title), ` ${why}`));
        continue;
      }
      const one = new One(strip, this.view, colours);
      this.element.append(one.element);
      this.shown.push(one);
    }
    this.resize();
  }

  resize(): void {
    const width = Math.max(200, Math.floor(this.element.clientWidth));
    for (const one of this.shown) one.resize(width);
    this.update();
  }

  /** Every second frame: the strips cost as much as the chart, and people look at what they move. */
  update(): void {
    if (this.dirty) return;
    this.dirty = true;
    requestAnimationFrame(() => requestAnimationFrame(() => {
      this.dirty = false;
      this.paint();
    }));
  }

  paint(): void {
    for (const one of this.shown) one.update();
  }

  select(): void {
    for (const one of this.shown) one.showSelection();
  }

  hover(): void {
    for (const one of this.shown) one.legend();
  }
}

/** Whether there is anything to draw. */
export function isKnown(strip: Strip): boolean {
  return strip.unknown === null && strip.series.length > 0;
}

/** Sums of the values up to each bin, so that the mean over any bins costs nothing. */
interface Summed { name: string; colour: string; sums: Float64Array; known: Float64Array }

class One {
  readonly element: HTMLElement;
  readonly plot: uPlot;
  private readonly legendElement: HTMLElement;
  private readonly series: Summed[];
  private readonly maxima = new Map<number, number>();
  private width = 0;
  private lastHover: number | null | undefined;

  constructor(private readonly strip: Strip, private readonly view: View, private readonly colours: Colours) {
    const { edges } = view.recording;
    this.series = strip.series.map((one, at) => {
      const sums = new Float64Array(one.values.length + 1);
      const known = new Float64Array(one.values.length + 1);
      one.values.forEach((value, bin) => {
        const width = edges[bin + 1] - edges[bin];
        const absent = Number.isNaN(value);
        sums[bin + 1] = sums[bin] + (absent ? 0 : value * width);
        known[bin + 1] = known[bin] + (absent ? 0 : width);
      });
      const palette = strip.by_lane ? colours.lanes : colours.series;
      return { name: one.name, colour: palette[at % palette.length], sums, known };
    }).filter((one) => one.sums[one.sums.length - 1] > 0);
    this.legendElement = h("div", { class: "legend" });
    const place = h("div", { class: "plot", "aria-hidden": "true" });
    this.element = h("section", { class: "strip", "aria-label": this.summary() }, this.legendElement, place);
    this.plot = new uPlot(this.options(), [[], ...this.series.map(() => [])] as any, place);
    this.legend();
  }

  /** What a screen reader says. */
  private summary(): string {
    const { strip } = this;
    const peak = this.peak(1);
    return `${strip.title}: ${strip.series.map((one) => one.name).join(", ")}; at most ${figure(peak, strip.unit)}`;
  }

  private options(): uPlot.Options {
    const { colours, strip, view } = this;
    const limit = strip.limit;
    const stepped = uPlot.paths.stepped!({ align: 1 });
    return {
      width: 600, height: HEIGHT, pxAlign: 1, legend: { show: false }, padding: [9, 0, 3, 0],
      cursor: {
        y: false, points: { show: false }, drag: { x: true, y: false, setScale: false, dist: 4 },
        bind: { dblclick: () => () => { view.look(0, view.home); return null; } },
      },
      scales: { x: { time: false, auto: false, range: () => [view.from, view.to] }, y: { auto: false, range: [0, 1] } },
      axes: [
        { show: false },
        {
          size: () => gutterFor(this.width), side: 3, stroke: colours.faint, font: "11px system-ui, sans-serif",
          gap: 4, grid: { stroke: colours.grid, width: 1 }, ticks: { show: false },
          // None at the lower edge, where the next strip has its own.
          values: (_, splits) => splits.map((value) => (value > 0 ? figure(value, strip.unit) : "")),
          splits: (_u, _axis, _min, max) => [0, max / 2, max],
        },
      ],
      series: [
        {},
        // The sum of all first, so that each next one is drawn over it.
        ...this.series.map((one) => (
          { fill: one.colour, stroke: one.colour, width: 0, paths: stepped, points: { show: false } } as uPlot.Series
        )),
      ],
      hooks: {
        setSelect: [(u: uPlot) => {
          if (u.select.width > 2) {
            view.select([u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")]);
          } else view.select(null);
        }],
        setCursor: [(u: uPlot) => {
          const left = u.cursor.left ?? -1;
          view.point(left >= 0 ? u.posToVal(left, "x") : null);
        }],
        draw: [(u: uPlot) => {
          const context = u.ctx;
          if (limit && limit.at <= (u.scales.y.max ?? 0)) {
            const y = Math.round(u.valToPos(limit.at, "y", true)) + 0.5;
            context.save();
            context.strokeStyle = colours.mark;
            context.setLineDash([5, 4]);
            context.beginPath();
            context.moveTo(u.bbox.left, y);
            context.lineTo(u.bbox.left + u.bbox.width, y);
            context.stroke();
            context.restore();
          }
          context.fillStyle = colours.mark;
          context.globalAlpha = 0.6;
          for (const [time] of view.recording.marks) {
            if (time < view.from || time > view.to) continue;
            context.fillRect(Math.round(u.valToPos(time, "x", true)), u.bbox.top, 1, u.bbox.height);
          }
          context.globalAlpha = 1;
          if (view.hover !== null) {
            context.fillStyle = colours.faint;
            context.fillRect(Math.round(u.valToPos(view.hover, "x", true)), u.bbox.top, 1, u.bbox.height);
          }
        }],
      },
    };
  }

  resize(width: number): void {
    this.width = width;
    this.legendElement.style.width = `${gutterFor(width) - 8}px`;
    this.plot.setSize({ width, height: HEIGHT });
  }

  /** The bins of the visible time, several together if they are narrower than a few pixels. */
  update(): void {
    const { view, series } = this;
    const { edges } = view.recording;
    const bins = edges.length - 1;
    const perBin = edges[bins] / bins;
    const room = Math.max(50, (this.width - gutterFor(this.width)) / PIXELS);
    // Powers of two, at multiples of themselves: bins do not change while the window is moved.
    const group = 2 ** Math.max(0, Math.ceil(Math.log2(view.span / perBin / room)));
    const first = Math.max(0, Math.floor(at(edges, view.from) / group) * group);
    const last = Math.min(bins, at(edges, view.to) + group);
    const xs: number[] = [];
    const values: (number | null)[][] = series.map(() => []);
    for (let bin = first; bin < last; bin += group) {
      const end = Math.min(bins, bin + group);
      xs.push(edges[bin]);
      let below = 0;
      for (let s = series.length - 1; s >= 0; s--) {
        const known = series[s].known[end] - series[s].known[bin];
        const mean = known > 0 ? (series[s].sums[end] - series[s].sums[bin]) / known : null;
        if (mean !== null) below += mean;
        values[s].push(mean === null && below === 0 ? null : below);
      }
    }
    if (xs.length) {
      xs.push(edges[Math.min(bins, Math.ceil(last / group) * group)]);
      for (const list of values) list.push(list[list.length - 1]);
    }
    // So that the cores that were asked for can be seen.
    const peak = Math.max(this.peak(group), this.strip.limit?.at ?? 0);
    this.plot.batch(() => {
      this.plot.setData([xs, ...values] as any, false);
      this.plot.setScale("x", { min: view.from, max: view.to });
      this.plot.setScale("y", { min: 0, max: peak });
    });
    this.showSelection();
  }

  /** The largest sum of all series over the whole recording, for bins of this size. */
  private peak(group: number): number {
    let peak = this.maxima.get(group);
    if (peak === undefined) {
      peak = 0;
      const bins = this.view.recording.edges.length - 1;
      for (let bin = 0; bin < bins; bin += group) {
        const end = Math.min(bins, bin + group);
        let sum = 0;
        for (const one of this.series ?? []) {
          const known = one.known[end] - one.known[bin];
          if (known > 0) sum += (one.sums[end] - one.sums[bin]) / known;
        }
        peak = Math.max(peak, sum);
      }
      peak = rounded(peak);
      this.maxima.set(group, peak);
    }
    return peak;
  }

  showSelection(): void {
    const { view, plot } = this;
    const box = plot.over.getBoundingClientRect();
    const x = (time: number) => ((time - view.from) / view.span) * box.width;
    const [from, to] = view.selection
      ? view.selection.map((time) => Math.min(box.width, Math.max(0, x(time)))) : [0, 0];
    plot.root.classList.toggle("selected", to > from);
    plot.setSelect({ left: from, top: 0, width: to - from, height: box.height }, false);
  }

  /** Names and colours, with the values at the pointer. */
  legend(): void {
    const { strip, view, series } = this;
    if (view.hover === this.lastHover) return;
    this.lastHover = view.hover;
    const { edges } = view.recording;
    const bin = view.hover === null ? -1 : Math.min(edges.length - 2, at(edges, view.hover));
    const value = (one: Summed) => {
      const known = one.known[bin + 1] - one.known[bin];
      return known > 0 ? figure((one.sums[bin + 1] - one.sums[bin]) / known, strip.unit) : "-";
    };
    const entries = series.slice(0, 10).map((one) => h("span", { class: "entry" }, swatch(one.colour),
      bin >= 0 ? `${one.name} ${value(one)}` : one.name));
    replace(this.legendElement, h("strong", {}, strip.title), h("span", { class: "entries" }, ...entries));
  }
}

/** The bin of a time. */
function at(edges: Float64Array, time: number): number {
  let [low, high] = [0, edges.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (edges[middle] <= time) low = middle;
    else high = middle - 1;
  }
  return Math.min(low, edges.length - 2);
}

/** The next larger 1, 2 or 5 times a power of ten. */
function rounded(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const factor of [1, 1.5, 2, 3, 4, 5, 6, 8, 10]) if (value <= factor * power) return factor * power;
  return 10 * power;
}

