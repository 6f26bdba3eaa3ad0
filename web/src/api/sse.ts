/** Server-sent events over `fetch`: unlike `EventSource` it hears every kind of event without knowing their names. */

import { nextSignIn, session } from './client';

export interface Frame {
  id: string;
  event: string;
  data: string;
}

/** Cuts a stream of text into frames (WHATWG HTML, section 9.2.6); keeps an unfinished one for the next piece. */
export class FrameParser {
  private rest = '';
  private lastId = '';

  feed(text: string): Frame[] {
    const frames: Frame[] = [];
    const blocks = (this.rest + text).replaceAll('\r\n', '\n').split('\n\n');
    this.rest = blocks.pop() ?? '';
    for (const block of blocks) {
      let event = 'message';
      const data: string[] = [];
      for (const line of block.split('\n')) {
        if (line.startsWith(':')) continue;
        const cut = line.indexOf(':');
        const name = cut < 0 ? line : line.slice(0, cut);
        const value = cut < 0 ? '' : line.slice(cut + 1).replace(/^ /, '');
        if (name === 'data') data.push(value);
        else if (name === 'event') event = value;
        else if (name === 'id' && !value.includes('\0')) this.lastId = value;
      }
      if (data.length > 0) frames.push({ id: this.lastId, event, data: data.join('\n') });
    }
    return frames;
  }
}

export interface StreamOptions {
  url: string;
  signal: AbortSignal;
  onFrame: (frame: Frame) => void;
  onState: (connected: boolean) => void;
  /** Waits before another try; tests pass their own. */
  pause?: (milliseconds: number) => Promise<void>;
}

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;

/** Reads until aborted; goes on after the last event that was received when a connection broke, or a session ended. */
export async function stream({ url, signal, onFrame, onState, pause = sleep }: StreamOptions): Promise<void> {
  let last = '';
  let wait = FIRST_PAUSE;
  while (!signal.aborted) {
    try {
      const headers: HeadersInit = last ? { 'Last-Event-ID': last } : {};
      const response = await fetch(url, { headers, signal, credentials: 'same-origin' });
      if (response.status === 401) {
        session.onLost();
        await nextSignIn(signal);
        continue;
      }
      if (!response.ok || !response.body) throw new Error(`events: ${response.status}`);
      onState(true);
      wait = FIRST_PAUSE;
      const parser = new FrameParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        for (const frame of parser.feed(value)) {
          last = frame.id;
          onFrame(frame);
        }
      }
    } catch {
      if (signal.aborted) return;
    }
    onState(false);
    await pause(wait);
    wait = Math.min(LONGEST_PAUSE, wait * 2);
  }
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
