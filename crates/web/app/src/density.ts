// Many bars in few pixels as a density: how much of each cell of rows and time they cover, in their mean colour. Lines
// of a hair's breadth, or gaps between them, would say nothing.

/** Cells of rows and columns of time, with the sums of what covers them. */
export class Cells {
  /** How much of a row is covered: 1 for one bar through all of the column. */
  private readonly cover: Float32Array;
  private readonly red: Float32Array;
  private readonly green: Float32Array;
  private readonly blue: Float32Array;
  private readonly weight: Float32Array;

  constructor(readonly rows: number, readonly columns: number) {
    const size = rows * columns;
    this.cover = new Float32Array(size);
    this.red = new Float32Array(size);
    this.green = new Float32Array(size);
    this.blue = new Float32Array(size);
    this.weight = new Float32Array(size);
  }

  /** Adds a bar in a row of cells, from one column to another; they may be fractions. `share` is how much its colour counts. */
  add(row: number, from: number, to: number, colour: number, share: number): void {
    if (to <= 0 || from >= this.columns || row < 0 || row >= this.rows) return;
    const left = Math.max(0, from);
    const right = Math.min(this.columns, to);
    const first = Math.floor(left);
    const last = Math.min(this.columns - 1, Math.floor(right));
    if (first === last) {
      this.cell(row, first, Math.max(right - left, 1e-6), colour, share);
      return;
    }
    this.cell(row, first, first + 1 - left, colour, share);
    for (let at = first + 1; at < last; at++) this.cell(row, at, 1, colour, share);
    if (right > last) this.cell(row, last, right - last, colour, share);
  }

  private cell(row: number, column: number, amount: number, colour: number, share: number): void {
    const at = row * this.columns + column;
    const weight = amount * share;
    this.cover[at] += amount;
    this.weight[at] += weight;
    this.red[at] += weight * (colour & 255);
    this.green[at] += weight * ((colour >> 8) & 255);
    this.blue[at] += weight * ((colour >> 16) & 255);
  }

  /** Adds a cell of others that lies between these columns, in each as much as its part of it. */
  spread(row: number, from: number, to: number, other: Cells, at: number): void {
    if (row < 0 || row >= this.rows || to <= 0 || from >= this.columns || other.cover[at] === 0) return;
    const left = Math.max(0, from);
    const right = Math.min(this.columns, to);
    for (let column = Math.floor(left); column < right; column++) {
      const part = Math.min(right, column + 1) - Math.max(left, column);
      const here = row * this.columns + column;
      this.cover[here] += part * other.cover[at];
      this.weight[here] += part * other.weight[at];
      this.red[here] += part * other.red[at];
      this.green[here] += part * other.green[at];
      this.blue[here] += part * other.blue[at];
    }
  }

  /** The colour of a cell of so many rows over a paper, as the bytes of a pixel; 0 for an empty one. */
  colour(row: number, column: number, rows: number, paper: number): number {
    const at = row * this.columns + column;
    if (this.cover[at] === 0) return 0;
    // What is there is visible, however little it is; in a few steps, so that neighbours can be drawn together.
    const part = LEAST + (1 - LEAST) * (Math.ceil(Math.min(1, this.cover[at] / rows) * STEPS) / STEPS);
    const mixed = (sum: number, back: number) => Math.round(back + (sum / this.weight[at] - back) * part);
    const red = mixed(this.red[at], paper & 255);
    const green = mixed(this.green[at], (paper >> 8) & 255);
    const blue = mixed(this.blue[at], (paper >> 16) & 255);
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  }
}

const LEAST = 0.45;
const STEPS = 12;

/** A pixel as a colour for a canvas. */
export function css(pixel: number): string {
  return `rgb(${pixel & 255} ${(pixel >> 8) & 255} ${(pixel >> 16) & 255})`;
}
