/** A shell inside a running task, over the API's WebSocket. */

import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { useEffect, useRef, useState } from 'react';
import { BASE, part } from '../api/client';
import { ENDED, type JobDetail } from '../api/types';
import { jobLine } from '../lib/cli';
import { job as texts } from '../texts/english/job';
import { shared } from '../texts/english/shared';
import { fill, filled, textOf } from '../texts/fill';
import { taskNames } from './JobLog';
import { Empty } from './Notices';

interface Props {
  job: JobDetail;
  task: string | undefined;
  onTask: (task: string) => void;
}

export default function TaskTerminal({ job, task, onTask }: Props) {
  const names = taskNames(job);
  const chosen = task && names.includes(task) ? task : (names[0] ?? '');
  const [round, setRound] = useState(0);
  if (job.state !== 'running')
    return (
      <Empty title={texts.thereTaskEnter} line={jobLine(ENDED.has(job.state) ? 'restart' : 'explain', job.id)}>
        {fill(texts.terminalOpensRunning, { state: textOf(shared.states, job.state) })}
      </Empty>
    );
  return (
    <section aria-label={texts.terminal} className="space-y-2">
      <div className="flex flex-wrap items-center gap-2">
        <select aria-label={texts.task} className="field !w-auto" value={chosen} onChange={(event) => onTask(event.target.value)}>
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <button type="button" className="btn" onClick={() => setRound(round + 1)}>
          {texts.newShell}
        </button>
        <p className="min-w-0 text-xs text-muted">
          {filled(texts.bySsh, { code: <code className="font-mono break-all">{`corral ssh ${job.name} ${chosen}`}</code> })}
        </p>
      </div>
      <Screen key={`${chosen} ${round}`} jobId={job.id} task={chosen} />
    </section>
  );
}

/** Bytes of input in one message; the server takes up to 256 KiB. */
const PIECE = 65_536;

const SAID = (text: string) => `\r\n\x1b[2m${text}\x1b[0m\r\n`;

function Screen({ jobId, task }: { jobId: string; task: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const terminal = new Terminal({
      fontSize: 13,
      fontFamily: 'ui-monospace, "DejaVu Sans Mono", monospace',
      screenReaderMode: true,
      theme: { background: colour('--sunken'), foreground: colour('--text'), cursor: colour('--accent'), selectionBackground: colour('--line-strong') },
    });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    terminal.open(place.current!);
    fit.fit();
    const cut = task.lastIndexOf('-');
    const url = new URL(`${BASE}/jobs/${part(jobId)}/tasks/${part(task.slice(0, cut))}/${task.slice(cut + 1)}/exec`, location.href);
    url.protocol = url.protocol.replace('http', 'ws');
    url.search = new URLSearchParams({ tty: 'true' }).toString();
    const socket = new WebSocket(url);
    socket.binaryType = 'arraybuffer';
    const resize = () => {
      fit.fit();
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ resize: [terminal.rows, terminal.cols] }));
    };
    const watcher = new ResizeObserver(resize);
    const encoder = new TextEncoder();
    let ended = false;
    socket.onopen = () => {
      resize();
      watcher.observe(place.current!);
      terminal.focus();
    };
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
      if (typeof data !== 'string') return terminal.write(new Uint8Array(data));
      const said = JSON.parse(data) as { exit?: number; error?: { message: string } };
      ended = true;
      terminal.write(SAID(said.error?.message ?? fill(texts.shellEndedCode, { exit: String(said.exit) })));
    };
    socket.onclose = () => {
      if (!ended) terminal.write(SAID(texts.connectionClosedNew));
    };
    const typed = terminal.onData((text) => {
      const bytes = encoder.encode(text);
      for (let at = 0; at < bytes.length && socket.readyState === WebSocket.OPEN; at += PIECE) socket.send(bytes.subarray(at, at + PIECE));
    });
    return () => {
      ended = true;
      watcher.disconnect();
      typed.dispose();
      socket.close();
      terminal.dispose();
    };
  }, [jobId, task]);
  return <div ref={place} className="h-[max(20rem,calc(100dvh-22rem))] bg-sunken p-2" data-testid="terminal" />;
}
