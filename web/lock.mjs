// Why: `npm ci` refuses a lock that lacks an optional package of another platform, and npm leaves those out that the
// registry at hand does not have. This writes package-lock.json anew, without addresses, and names what was left out.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const SYSTEMS = ["android", "darwin", "freebsd", "win32", "linux", "openharmony", "wasm32"];
const PROCESSORS = ["arm64", "x64", "arm", "ia32", "wasm32", "riscv64", "ppc64", "s390x", "loong64"];

execFileSync("npm", ["install", "--package-lock-only", "--no-audit", "--no-fund", "--loglevel=error"], { stdio: "inherit" });
const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
for (const [, entry] of Object.entries({ ...lock.packages })) {
  delete entry.resolved;
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const words = name.split(/[-/]/);
    const os = SYSTEMS.filter((system) => words.includes(system) && system !== "wasm32");
    const cpu = PROCESSORS.filter((processor) => words.includes(processor));
    if (lock.packages[`node_modules/${name}`] || (os.length === 0 && cpu.length === 0)) continue;
    if (!/^\d/.test(version)) continue;
    lock.packages[`node_modules/${name}`] = {
      version,
      ...(entry.dev && { dev: true }),
      optional: true,
      ...(os.length && { os }),
      ...(cpu.length && { cpu }),
    };
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
writeFileSync("package-lock.json", `${JSON.stringify(lock, null, 2)}\n`);
