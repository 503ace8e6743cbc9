// Bundles the application into dist/ and records of which sources it was made.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const licence = (name) => readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim();

await build({
  entryPoints: { app: "src/main.ts" },
  outdir: "dist",
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome111", "firefox115", "safari16.4"],
  charset: "ascii",
  legalComments: "none",
  banner: { js: `/* uPlot:\n${licence("uplot")}\n*/` },
  logLevel: "warning",
});

// As crates/web/tests/asset.rs computes it.
const files = readdirSync("src").sort().map((name) => `src/${name}`);
const hash = createHash("sha256");
for (const file of [...files, "build.mjs", "package.json", "package-lock.json", "tsconfig.json"]) {
  const bytes = readFileSync(file);
  hash.update(`${file} ${bytes.length}\n`);
  hash.update(bytes);
}
writeFileSync("dist/sources.sha256", `${hash.digest("hex")}\n`);
