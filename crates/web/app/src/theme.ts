// Colours: those of the SVG figures, and for the dark theme the same hues where they can be seen.

export interface Colours {
  paper: string; ink: string; faint: string; grid: string; rest: string; path: string; halo: string;
  mark: string; shade: string; focus: string; dark: boolean; lanes: string[]; series: string[];
}

const SERIES = ["#0077bb", "#ee7733", "#33bbee", "#ee3377", "#009988", "#cc3311", "#bbbbbb"];

const channels = (hex: string) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

function luminance(rgb: number[]): number {
  const [r, g, b] = rgb.map((value) => {
    const x = value / 255;
    return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: number[], b: number[]): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

/** The colour, mixed with white or black until it stands out from the paper (WCAG 2.2, 1.4.11). */
function standsOut(hex: string, paper: string): string {
  const [from, back] = [channels(hex), channels(paper)];
  const towards = luminance(back) > 0.5 ? 0 : 255;
  for (let part = 0; part <= 1; part += 0.05) {
    const mixed = from.map((value) => Math.round(value + (towards - value) * part));
    if (contrast(mixed, back) >= 3.4) return `#${mixed.map((v) => v.toString(16).padStart(2, "0")).join("")}`;
  }
  return towards ? "#ffffff" : "#000000";
}

/** Black or white, whichever can be read on a colour. */
export function inkOn(hex: string): string {
  const rgb = channels(hex);
  return contrast(rgb, [255, 255, 255]) >= contrast(rgb, [17, 17, 17]) ? "#ffffff" : "#111111";
}

/** A colour as the bytes of a pixel. */
export function pixel(hex: string): number {
  const [r, g, b] = channels(hex);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

export function mix(hex: string, other: string, part: number): string {
  const [a, b] = [channels(hex), channels(other)];
  const mixed = a.map((value, at) => Math.round(value + (b[at] - value) * part));
  return `#${mixed.map((v) => v.toString(16).padStart(2, "0")).join("")}`;
}

const LIGHT = {
  paper: "#ffffff", ink: "#1d2129", faint: "#5b6270", grid: "#e6e8ec", rest: "#7d838e", path: "#111418",
  halo: "#ffffff", mark: "#4a505c", shade: "#8a93a3", focus: "#0b62d6",
};
const DARK = {
  paper: "#14171c", ink: "#e8eaee", faint: "#a2a9b5", grid: "#2a2f38", rest: "#7b828e", path: "#ffffff",
  halo: "#14171c", mark: "#b6bcc8", shade: "#05070a", focus: "#7fb2ff",
};

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

export function coloursOf(lanes: { colour: string | null }[], dark: boolean): Colours {
  const base = dark ? DARK : LIGHT;
  const own = (hex: string) => standsOut(hex, base.paper);
  return {
    ...base, dark,
    lanes: lanes.map((lane) => (lane.colour ? own(lane.colour) : base.rest)),
    series: SERIES.map(own),
  };
}
