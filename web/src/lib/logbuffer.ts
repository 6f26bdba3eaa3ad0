/** A log of any length in bounded memory: the newest lines are kept, the oldest are let go. */

import { plain } from './ansi';

export interface Line {
  text: string;
  /** As it came, where it had terminal escapes. */
  raw?: string;
}

export const MAX_LINES = 20_000;
export const MAX_LETTERS = 8_000_000;
const MAX_LINE = 16_000;

export class LogBuffer {
  lines: Line[] = [];
  /** How many lines were let go. */
  dropped = 0;
  /** Whether the last line has not ended yet. */
  private open = false;
  private letters = 0;

  constructor(
    private maxLines = MAX_LINES,
    private maxLetters = MAX_LETTERS,
  ) {}

  append(text: string): void {
    if (!text) return;
    const pieces = text.split('\n');
    pieces.forEach((piece, at) => {
      const last = at === pieces.length - 1;
      if (last && piece === '') return;
      if (this.open) this.extend(piece);
      else this.push(piece);
      this.open = true;
      if (!last) this.finish();
    });
    this.trim();
  }

  clear(): void {
    this.lines = [];
    this.dropped = 0;
    this.letters = 0;
    this.open = false;
  }

  private push(piece: string): void {
    const line = dressed(piece);
    this.lines.push(line);
    this.letters += size(line);
  }

  private extend(piece: string): void {
    const before = this.lines.pop();
    if (before) this.letters -= size(before);
    this.push((before?.raw ?? before?.text ?? '') + piece);
  }

  private finish(): void {
    this.open = false;
    const last = this.lines.pop();
    if (!last) return;
    this.letters -= size(last);
    this.push(overwritten(last.raw ?? last.text));
  }

  private trim(): void {
    let first = 0;
    while (this.lines.length - first > this.maxLines || (this.letters > this.maxLetters && first < this.lines.length - 1)) {
      this.letters -= size(this.lines[first] as Line);
      first += 1;
    }
    if (first > 0) {
      this.lines = this.lines.slice(first);
      this.dropped += first;
    }
  }
}

function dressed(raw: string): Line {
  const cut = raw.length > MAX_LINE ? `${raw.slice(0, MAX_LINE)} … (${raw.length - MAX_LINE} more letters)` : raw;
  const text = plain(cut);
  return text === cut ? { text } : { text, raw: cut };
}

function size(line: Line): number {
  return line.text.length + (line.raw?.length ?? 0);
}

/** What a terminal would show of a line that returns to its beginning: progress bars keep their last state. */
export function overwritten(line: string): string {
  const whole = line.endsWith('\r') ? line.slice(0, -1) : line;
  return whole.slice(whole.lastIndexOf('\r') + 1);
}
