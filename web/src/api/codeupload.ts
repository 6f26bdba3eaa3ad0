/** Sends an archive of code, and goes on where it was after a broken connection, a restart of the server or a sign-in. */

import { ApiError, BASE, nextSignIn, readRefusal, request, session } from './client';
import { submit as texts } from '../texts/english/submit';

/** Milliseconds that an upload may go without a new byte. */
const STALLED = 120_000;
const PASSING = new Set(['unreachable', 'upload-busy', 'wrong-offset', 'upload-broken', 'request-too-slow']);

/** Send `blob` unless the server has it; `tell` gets the bytes that the server has. */
export async function sendCode(blob: Blob, digest: string, tell: (done: number) => void, signal: AbortSignal): Promise<void> {
  let furthest = -1;
  let since = Date.now();
  let pauses = 0;
  for (;;) {
    try {
      const { offset, complete } = await progress(digest, signal);
      if (offset > furthest) [furthest, since, pauses] = [offset, Date.now(), 0];
      tell(complete ? blob.size : offset);
      if (!complete) await append(blob, digest, offset, tell, signal);
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 401) {
        await nextSignIn(signal);
        since = Date.now();
      } else if ((!PASSING.has(error.code) && error.status !== 503) || Date.now() - since > STALLED) throw error;
    }
    await pause(Math.min(3000, 200 * 2 ** Math.min(pauses++, 5)), signal);
  }
}

/** Delete what the server has of an upload that was given up. */
export async function dropCode(digest: string): Promise<void> {
  await request(`/blobs/uploads/${digest}`, { method: 'DELETE' }).catch((error: unknown) => {
    if (!(error instanceof ApiError)) throw error; // it goes after a day by itself
  });
}

async function progress(digest: string, signal: AbortSignal): Promise<{ offset: number; complete: boolean }> {
  try {
    const { headers } = await request(`/blobs/uploads/${digest}`, { method: 'HEAD', signal });
    return { offset: Number(headers.get('Upload-Offset')), complete: headers.get('Upload-Complete') === '?1' };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return { offset: 0, complete: false };
    throw error;
  }
}

/** `fetch` does not tell how much of a body was sent, so this is the older call. */
function append(blob: Blob, digest: string, offset: number, tell: (done: number) => void, signal: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    const sending = new XMLHttpRequest();
    const stop = () => sending.abort();
    sending.open('PATCH', `${BASE}/blobs/uploads/${digest}`);
    const headers = { 'Content-Type': 'application/partial-upload', 'Upload-Offset': String(offset), 'Upload-Complete': '?1', 'X-Corral-CSRF': '1' };
    for (const [name, value] of Object.entries(headers)) sending.setRequestHeader(name, value);
    sending.upload.onprogress = ({ loaded }) => tell(offset + loaded);
    sending.onerror = sending.onabort = () => failed(new ApiError(0, 'unreachable', texts.connectionServerBroke));
    sending.onload = () => {
      if (sending.status < 300) return done();
      if (sending.status === 401) session.onLost();
      void readRefusal(new Response(sending.responseText, { status: sending.status })).then(failed);
    };
    sending.onloadend = () => signal.removeEventListener('abort', stop);
    signal.addEventListener('abort', stop);
    sending.send(blob.slice(offset));
  });
}

const pause = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((done, failed) => {
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', () => { clearTimeout(timer); failed(signal.reason); }, { once: true });
  });
