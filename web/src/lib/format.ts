/** Amounts as people write them in job files. */

import { map as texts } from '../texts/english/map';
import { fill } from '../texts/fill';

const BYTES = ['B', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];

/** `17179869184` is `16Gi`; at most one decimal. */
export function bytes(count: number): string {
  if (count === 0) return '0';
  let unit = 0;
  let value = count;
  while (value >= 1024 && unit < BYTES.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${Number.isInteger(value) || value >= 100 ? Math.round(value) : value.toFixed(1)}${BYTES[unit]}`;
}

/** Thousandths of processors as processors: `1500` is `1.5`. */
export function cpus(millis: number): string {
  return String(Math.round(millis / 100) / 10);
}

/** How many devices a job holds where those are others than it asks for: an elastic one of 2 of its 12 tasks. */
export function heldOf(job: { state: string; devices: number; devicesHeld: number }): number | null {
  const holds = ['starting', 'running', 'stopping'].includes(job.state) && job.devicesHeld > 0;
  return holds && job.devicesHeld !== job.devices ? job.devicesHeld : null;
}

/** `[0, 1, 2, 5]` is `0–2, 5`. */
export function ranges(numbers: readonly number[]): string {
  const sorted = [...numbers].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let at = 0; at < sorted.length; ) {
    let end = at;
    while (sorted[end + 1] === (sorted[end] ?? 0) + 1) end += 1;
    parts.push(end > at ? `${sorted[at]}–${sorted[end]}` : `${sorted[at]}`);
    at = end + 1;
  }
  return parts.join(', ');
}

/** The last part of `engine/node`. */
export function shortNode(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

/** At most `letters` of a node's name, of a longer one its end: that is where the names of nodes differ. */
export function nodeEnd(name: string, letters = 8): string {
  const short = shortNode(name);
  return short.length <= letters ? short : `…${short.slice(1 - letters)}`;
}

/** At most `letters` of a name; the number that tells the jobs of an array apart stays: `sweep-rate-12` is `swee…-12`. */
export function cut(name: string, letters: number): string {
  if (name.length <= letters) return name;
  const end = /-\d{1,4}$/.exec(name)?.[0] ?? '';
  const kept = end.length + 3 <= letters ? end : '';
  return `${name.slice(0, Math.max(1, letters - 1 - kept.length))}…${kept}`;
}

/** What somebody has of a device, with a blank before it; '' for all of it. */
export function partOf(share: { computePercent: number; memoryPercent: number } | null | undefined): string {
  if (!share) return '';
  const [compute, memory] = [share.computePercent, share.memoryPercent].map((percent) => `${Number(percent.toPrecision(3))} %`);
  return compute === memory ? ` ${compute}` : fill(texts.parts, { compute: String(compute), memory: String(memory) });
}
