// The page: opens the data, builds the parts and connects them.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { openFirst, openRest, type Recording } from "./data";
import { announce, h, replace, swatch } from "./dom";
import { count } from "./format";
import { Gantt } from "./gantt";
import { advice, failure, figures, head, waited } from "./head";
import { help } from "./help";
import { ProcessPage } from "./process";
import { sections } from "./sections";
import { isKnown, Strips } from "./strips";
import { Tables } from "./tables";
import { type Colours, coloursOf, isDark } from "./theme";
import { type Order, View } from "./view";

/** Of an A4 or letter page across. */
const PAPER_WIDTH = "960px";
const CHART_MIN = 170;
const CHART_MAX = 760;
/** Strips in the order in which there is room for them: so many at first in windows of these heights. */
const STRIPS = ["CPU by category", "Tasks alive", "New processes", "Switches", "Storage per second", "Memory"];
const STRIPS_AT: [number, number][] = [[700, 1], [900, 2], [1100, 3]];

async function start(): Promise<void> {
  const app = document.getElementById("app")!;
  app.append(h("p", { class: "quiet loading" }, "Unpacking the recording…"));
  const recording = await openFirst();
  const page = new Page(recording);
  app.replaceChildren(...page.parts);
  page.layOut();
  performance.mark("first-picture");
  document.documentElement.dataset.state = "drawn";
  // After the first picture is on the screen.
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  await openRest(recording);
  page.complete();
  document.documentElement.dataset.state = "complete";
}

class Page {
  readonly parts: HTMLElement[];
  private colours: Colours;
  private readonly view: View;
  private readonly gantt: Gantt;
  private readonly strips: Strips;
  private readonly tables: Tables;
  private readonly process: ProcessPage;
  private readonly sections = h("div");
  private readonly found = h("span", { class: "status", role: "status" });
  private readonly search: HTMLInputElement;
  private readonly legend = h("ul", { class: "lanes", "aria-label": "Categories" });
  private readonly reset: HTMLButtonElement;
  private readonly wanted: Set<string>;
  private readonly help = help();
  /** The height of the chart that was set here; the user may have chosen another. */
  private height = "";
  private at = -1;

  constructor(private readonly recording: Recording) {
    this.colours = coloursOf(recording.lanes, isDark());
    this.view = new View(recording);
    const fitting = STRIPS_AT.find(([height]) => innerHeight < height)?.[1] ?? STRIPS.length;
    const known = STRIPS.filter((title) => recording.strips.some((strip) => strip.title === title && isKnown(strip)));
    this.wanted = new Set(known.slice(0, fitting));
    const open = (process: number) => this.go(process);
    this.gantt = new Gantt(this.view, this.colours, open);
    this.strips = new Strips(this.view);
    this.tables = new Tables(recording, this.view, this.colours, open);
    this.process = new ProcessPage(recording, this.colours, (process) => this.go(process), (process) => this.reveal(process));
    let typing = 0;
    this.search = h("input", {
      type: "search", id: "search", placeholder: "pid, program, text", "aria-label": "Search processes", spellcheck: "false",
      autocomplete: "off",
      keydown: (event: KeyboardEvent) => {
        // What is still to be found would take the place of the match that is shown now.
        if (event.key === "Enter") {
          clearTimeout(typing);
          this.next(event.shiftKey ? -1 : 1);
        }
      },
    });
    this.search.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.find(this.search.value), 150);
    });
    this.reset = button("Clear selection", () => this.view.select(null));
    this.reset.hidden = true;
    this.parts = [
      h("a", { class: "skip", href: "#tables" }, "Skip to the tables"),
      head(recording, this.themes()),
      h("main", {},
        failure(recording, open) ?? "", figures(recording),
        advice(recording, (command) => { this.search.value = command; this.next(1); }),
        this.timeline(), this.tables.element, this.sections),
      h("footer", {}, `proctrace ${recording.head.version}. This file is complete: it loads nothing and sends nothing.`),
      this.process.element, this.help,
    ];
    this.listen();
  }

  // ---- the parts ----

  private timeline(): HTMLElement {
    const { view } = this;
    const order = h("select", {
      "aria-label": "Order of rows",
      change: (event: Event) => {
        view.order = (event.target as HTMLSelectElement).value as Order;
        folds();
        view.tell("rows");
      },
    }, this.recording.steps ? h("option", { value: "step" }, "By step") : null,
    h("option", { value: "tree" }, "Tree"), h("option", { value: "time" }, "By start"), h("option", { value: "category" }, "By category"));
    order.value = view.order;
    const fold = h("select", {
      "aria-label": "Fold the tree",
      change: (event: Event) => this.fold((event.target as HTMLSelectElement).value),
    }, h("option", { value: "none" }, "Unfolded"), h("option", { value: "steps" }, "Fold steps"), ...[1, 2, 3, 4].map((depth) => h("option", { value: String(depth) }, `Fold below level ${depth}`)));
    const folds = () => {
      fold.value = view.tree?.choice ?? "none";
      fold.disabled = !view.tree;
      fold.options[1].hidden = view.order !== "step";
    };
    folds();
    const threads = this.recording.lanes.reduce((sum, lane) => sum + lane.threads, 0);
    const menu = h("details", { class: "menu" }, h("summary", {}, "Show"), h("div", {},
      fold,
      check("only matches of the search", false, (on) => { view.onlyFound = on; view.tell("rows"); }),
      check(`Threads (${count(threads)})`, false, (on) => { view.threads = on; view.setFocus(-1); view.tell("rows"); }),
      check("Critical path", true, (on) => { view.path = on; this.gantt.draw(); }),
      check("Colour by end", false, (on) => { view.byOutcome = on; this.lanes(); this.gantt.recolour(this.colours); }),
      h("strong", {}, "Strips"),
      ...this.recording.strips.map((strip) => check(strip.title, this.wanted.has(strip.title), (on) => {
        if (on) this.wanted.add(strip.title);
        else this.wanted.delete(strip.title);
        this.strips.build(this.wanted, this.colours);
      }))));
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      menu.open = false;
      menu.querySelector("summary")!.focus();
      event.stopPropagation();
    });
    addEventListener("pointerdown", (event) => { if (!menu.contains(event.target as Node)) menu.open = false; });
    const group = (...children: HTMLElement[]) => h("div", { class: "group", role: "group" }, ...children);
    return h("section", { id: "timeline", "aria-labelledby": "timeline-title" },
      h("div", { class: "toolbar" },
        h("h2", { id: "timeline-title" }, "Timeline"),
        group(this.search, button("‹", () => this.next(-1), "Previous match"), button("›", () => this.next(1), "Next match"), this.found),
        group(order, menu),
        group(button("+", () => view.zoom(1 / 1.7), "Zoom in"), button("−", () => view.zoom(1.7), "Zoom out"),
          h("span", { class: "group heights" },
            button("↕ +", () => this.gantt.zoomRows(1.7), "Higher rows"), button("↕ −", () => this.gantt.zoomRows(1 / 1.7), "Lower rows")),
          button("All", () => this.gantt.all(), "Show everything"),
          button("?", () => this.help.showModal(), "Keys and mouse"), this.reset)),
      h("div", { class: "legends" }, this.legend, this.afterEnd()),
      this.strips.element, this.gantt.element);
  }

  /** What went on after the end of the command is not on the axis at first. */
  private afterEnd(): HTMLElement | null {
    const { recording, view } = this;
    if (!recording.after) return null;
    const show = h("button", { type: "button", class: "link", click: () => { view.look(0, recording.length); } }, "Show that too");
    return h("p", { class: "quiet after" }, ...waited(recording.after), " ", view.home < recording.length && show);
  }

  private themes(): HTMLElement {
    const select = h("select", {
      "aria-label": "Colours of the page",
      change: (event: Event) => {
        const { value } = event.target as HTMLSelectElement;
        if (value === "auto") delete document.documentElement.dataset.theme;
        else document.documentElement.dataset.theme = value;
        this.recolour();
      },
    }, h("option", { value: "auto" }, "Auto"), h("option", { value: "light" }, "Light"), h("option", { value: "dark" }, "Dark"));
    return h("label", { class: "theme" }, "Theme ", select);
  }

  /** The meaning of the colours. */
  private lanes(): void {
    const { recording, colours, view } = this;
    const entries: [string, string, string][] = view.byOutcome
      ? [["exit 0", colours.rest, ""], ["exit with another status", colours.series[1], ""], ["killed by a signal", colours.series[5], ""], ["end not recorded", colours.grid, ""]]
      : recording.lanes.map((lane, at): [string, string, string] => [lane.name, colours.lanes[at], count(lane.processes)])
        .filter((_, at) => recording.lanes[at].processes + recording.lanes[at].threads > 0);
    replace(this.legend, ...entries.map(([name, colour, number]) => h("li", {}, swatch(colour),
      view.byOutcome ? name : h("button", { type: "button", title: "Search for it", click: () => { this.search.value = name; this.find(name); } }, name),
      h("span", { class: "quiet" }, ` ${number}`))));
  }

  /** Dark ink on a page of paper, or back to the screen. */
  private print(on: boolean): void {
    for (const part of [this.strips.element, this.gantt.element]) part.style.width = on ? PAPER_WIDTH : "";
    this.recolour(on ? false : isDark());
    this.layOut();
    this.strips.paint();
    if (on) this.tables.grid?.print();
    else this.tables.grid?.unprint();
  }

  // ---- what happens ----

  private listen(): void {
    const { view, gantt, strips } = this;
    view.on((change) => {
      switch (change) {
        case "window": gantt.draw(); strips.update(); break;
        case "hover": gantt.draw(); strips.hover(); break;
        case "selection":
          gantt.draw();
          strips.select();
          this.reset.hidden = !view.selection;
          this.later();
          break;
        case "search":
          this.found.textContent = view.query ? `${count(view.foundCount)} found` : "";
          if (view.onlyFound) gantt.rebuild(this.colours);
          else gantt.recolour(this.colours);
          this.later();
          break;
        case "rows": gantt.rebuild(this.colours); break;
        default: gantt.draw();
      }
    });
    addEventListener("hashchange", () => this.route());
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(input|select|textarea)$/i.test((event.target as Element).tagName)) return;
      if (event.key === "/") {
        event.preventDefault();
        this.search.focus();
      } else if (event.key === "?" && !this.help.open) this.help.showModal();
    });
    new ResizeObserver(() => this.layOut()).observe(this.gantt.element);
    addEventListener("resize", () => this.fill());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
  }

  private pending = 0;

  /** The tables, when a selection is not changing any more. */
  private later(): void {
    clearTimeout(this.pending);
    this.pending = setTimeout(() => this.tables.refresh(), 120);
  }

  /** The chart fills what the window has below it, if the rows need that. */
  private fill(): void {
    const { element } = this.gantt;
    if (element.style.height !== this.height) return;
    const top = element.getBoundingClientRect().top + scrollY;
    this.height = `${Math.round(this.gantt.wanted(Math.max(CHART_MIN, Math.min(innerHeight - top - 10, CHART_MAX))))}px`;
    element.style.height = this.height;
  }

  private built = false;

  layOut(): void {
    if (!this.gantt.element.isConnected) return;
    if (!this.built) {
      this.built = true;
      this.lanes();
      this.strips.build(this.wanted, this.colours);
      this.gantt.resize();
      // The strips have their height from the next frame on.
      requestAnimationFrame(() => this.fill());
    } else this.strips.resize();
    this.gantt.resize();
    this.gantt.paint();
  }

  private recolour(dark = isDark()): void {
    this.colours = coloursOf(this.recording.lanes, dark);
    this.lanes();
    this.gantt.recolour(this.colours);
    this.strips.build(this.wanted, this.colours);
    this.tables.recolour(this.colours);
    this.process.recolour(this.colours);
  }

  /** When everything is unpacked. */
  complete(): void {
    const rest = this.recording.rest!;
    this.tables.refresh();
    replace(this.sections, sections(rest));
    if (rest.leftOut.length) {
      this.sections.prepend(h("p", { class: "note" }, "Left out of this page for its size: "
        + rest.leftOut.map((one) => `of ${count(one.of)} ${one.what} all but ${count(one.shown)}`).join("; ") + "."));
    }
    this.gantt.draw();
    if (this.search.value) this.find(this.search.value);
    this.route();
  }

  private find(query: string): void {
    this.at = -1;
    this.view.search(query);
  }

  /** Goes to the next process that was found. */
  private next(by: number): void {
    const { view, recording } = this;
    if (this.search.value.trim() !== view.query) this.find(this.search.value);
    if (!view.found || view.foundCount === 0) return;
    let at = this.at;
    do at = (at + by + recording.n) % recording.n; while (!view.found[at]);
    this.at = at;
    let number = 0;
    for (let process = 0; process <= at; process++) number += view.found[process];
    this.found.textContent = `${count(number)} of ${count(view.foundCount)}`;
    announce(`${recording.name(at)}, pid ${recording.pid(at)}, ${this.found.textContent}`);
    this.reveal(at);
  }

  private fold(value: string): void {
    const { tree } = this.view;
    if (!tree) return;
    tree.choice = value;
    if (value === "steps") this.recording.steps?.fold();
    else tree.foldBelow(Number(value) || 0);
    this.view.tell("rows");
  }

  private go(process: number | null): void {
    if (process === null) {
      history.pushState(null, "", location.pathname + location.search);
      this.route();
    } else location.hash = `process-${process}`;
  }

  private route(): void {
    const process = /^#process-(\d+)$/.exec(location.hash)?.[1];
    if (process !== undefined && Number(process) < this.recording.n) {
      this.process.show(Number(process));
      this.view.setFocus(Number(process));
    } else this.process.hide();
  }

  private reveal(process: number): void {
    this.gantt.reveal(process);
    this.view.setFocus(process);
    const { element } = this.gantt;
    const { top, bottom } = element.getBoundingClientRect();
    if (top < 0 || bottom > innerHeight) element.scrollIntoView({ block: bottom - top > innerHeight ? "start" : "nearest" });
  }
}

function button(text: string, action: () => void, name: string | null = null): HTMLButtonElement {
  return h("button", { type: "button", "aria-label": name, title: name, click: action }, text);
}

function check(text: string, on: boolean, change: (on: boolean) => void): HTMLElement {
  const input = h("input", { type: "checkbox", checked: on, change: (event: Event) => change((event.target as HTMLInputElement).checked) });
  return h("label", { class: "check" }, input, text);
}

start().catch((error) => {
  document.documentElement.dataset.state = "failed";
  replace(document.getElementById("app")!, h("p", { class: "alarm" }, `The page cannot be shown: ${error}`));
  console.error(error);
});
