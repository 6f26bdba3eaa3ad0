/** Every call to the server goes through `call`: one place for the session's header, the error shape and sign-out. */

import { learn } from '../lib/clock';
import { faults } from '../texts/english/shared';
import { fill } from '../texts/fill';
import type { Finding, Problem } from './types';

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly problems: Problem[] = [],
    readonly findings: Finding[] = [],
  ) {
    super(message);
  }
}

export const BASE = '/api/v3';

/** Called when the server no longer knows the session; the router sets it, and a page that is shown takes its place. */
export const session: { onLost: () => void } = { onLost: () => undefined };
const signIns = new EventTarget();

/** Says that the page has a session again. */
export const signedInAgain = (): boolean => signIns.dispatchEvent(new Event('again'));

/** Waits until the page has a session again, or is left. */
export function nextSignIn(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signIns.addEventListener('again', () => resolve(), { once: true, signal });
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

export interface CallOptions {
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  json?: unknown;
  text?: string;
  query?: Record<string, string | number | boolean | readonly string[] | undefined>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Whether it is sent even while the page is left. */
  keepalive?: boolean;
}

/** The address of a call: empty parameters are left out, lists are repeated. */
export function address(path: string, query: CallOptions['query'] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === '') continue;
    if (typeof value === 'object') for (const each of value) parameters.append(name, each);
    else parameters.append(name, String(value));
  }
  const text = parameters.toString();
  return BASE + path + (text && `?${text}`);
}

/** Like `fetch` of an API path; refusals are thrown as `ApiError` with the server's own sentence. */
export async function request(path: string, options: CallOptions = {}): Promise<Response> {
  const { method = 'GET', json, text, query, headers = {}, signal, keepalive } = options;
  const sent = new Headers(headers);
  if (method !== 'GET') sent.set('X-Corral-CSRF', '1');
  if (json !== undefined) sent.set('Content-Type', 'application/json');
  if (text !== undefined && !sent.has('Content-Type')) sent.set('Content-Type', 'application/yaml');
  const asked = Date.now();
  let response: Response;
  try {
    response = await fetch(address(path, query), {
      method,
      headers: sent,
      body: json !== undefined ? JSON.stringify(json) : text,
      signal,
      keepalive,
      credentials: 'same-origin',
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'unreachable', fill(faults.unreachable, { command: 'corral up' }));
  }
  learn(response.headers.get('Date'), asked);
  if (response.ok) return response;
  const refusal = await readRefusal(response);
  if (response.status !== 401 || path === '/login') throw refusal;
  session.onLost();
  throw new ApiError(401, refusal.code, faults.ended); // the server's words are for the command line
}

/** The JSON answer of an API path; `undefined` for an empty one. */
export async function call<Answer>(path: string, options: CallOptions = {}): Promise<Answer> {
  const response = await request(path, options);
  if (response.status === 204) return undefined as Answer;
  return (await response.json()) as Answer;
}

export async function readRefusal(response: Response): Promise<ApiError> {
  const said = fill(faults.noReason, { status: response.status });
  try {
    const body = await response.json();
    return new ApiError(response.status, body.code ?? 'unknown', body.message ?? said, body.problems ?? [], body.findings ?? []);
  } catch {
    return new ApiError(response.status, 'unknown', said);
  }
}

/** `ref` as a part of a path. */
export const part = encodeURIComponent;
