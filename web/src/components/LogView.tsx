/** The live log: follows the end until the reader scrolls away, and finds words in it. */

import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { BASE } from '../api/client';
import { logPath } from '../api/logs';
import { useKeys } from '../lib/keys';
import { job as texts } from '../texts/english/job';
import { counted } from '../texts/fill';
import { LogLine } from './LogLine';
import { useLog } from './useLog';

const LINE = 18;
const NEAR_END = 30;

interface Props {
  jobId: string;
  jobName: string;
  task: string;
  /** One attempt of the task, "" for all. */
  attempt: string;
  generation: number;
  find: string;
  onFind: (text: string) => void;
  /** The selectors of task and attempt, which the page owns. */
  selector?: ReactNode;
  height: string;
}

export function LogView({ jobId, jobName, task, attempt, generation, find, onFind, selector, height }: Props) {
  const { buffer, version, state, problem } = useLog(jobId, task, attempt, generation);
  const frame = useRef<HTMLDivElement>(null);
  const [following, setFollowing] = useState(true);
  const [wrap, setWrap] = useState(() => matchMedia('(max-width: 640px)').matches);
  const lines = buffer.lines;
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => frame.current,
    estimateSize: () => LINE,
    overscan: 30,
  });
  const dropped = useRef(0);
  useEffect(() => {
    if (following && lines.length > 0) rows.scrollToIndex(lines.length - 1, { align: 'end' });
    else if (buffer.dropped > dropped.current) rows.scrollBy((dropped.current - buffer.dropped) * LINE);
    dropped.current = buffer.dropped;
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [version, following, wrap]);
  const top = useRef(0);
  // Rows that turn out smaller than estimated move the view up as well: only the reader's own hand ends the following.
  const byHand = useRef(false);
  const touched = () => {
    byHand.current = true;
  };
  const watch = () => {
    const { scrollTop, scrollHeight, clientHeight } = frame.current!;
    if (scrollHeight - scrollTop - clientHeight < NEAR_END) {
      setFollowing(true);
      byHand.current = false;
    } else if (byHand.current && scrollTop < top.current) setFollowing(false);
    top.current = scrollTop;
  };
  const matches = useMemo(() => {
    const word = find.toLowerCase();
    return word ? lines.flatMap((line, at) => (line.text.toLowerCase().includes(word) ? [at] : [])) : [];
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [find, version]);
  const [current, setCurrent] = useState(-1);
  const go = (step: number) => {
    if (matches.length === 0) return;
    const after = matches.findIndex((at) => at > current);
    const before = matches.findLastIndex((at) => at < current);
    const next = matches[step > 0 ? (after < 0 ? 0 : after) : before < 0 ? matches.length - 1 : before]!;
    setCurrent(next);
    setFollowing(false);
    rows.scrollToIndex(next, { align: 'center' });
  };
  const file = `${jobName}${task && `-${task}`}${attempt && `-${attempt}`}.log`;
  const whole = `${BASE}${logPath({ ref: jobId, task })}${attempt && `?attempt=${attempt}`}`;
  return (
    <section aria-label={texts.log} className="flex min-w-0 flex-col border border-line" style={{ height }}>
      <div className="flex flex-wrap items-center gap-x-2 gap-y-1 border-b border-line px-2 py-1.5">
        {selector}
        <Find value={find} onChange={onFind} onStep={go} found={matches.length} />
        <span className="grow" />
        <span role="status" className="text-xs text-muted" title={problem}>
          {state === 'live' && <span className="text-accent">{texts.live}</span>}
          {state === 'ended' && texts.ended}
          {state === 'opening' && texts.opening}
          {state === 'broken' && <span className="text-wait">{texts.waiting}</span>}
        </span>
        <button type="button" className="btn-bare max-sm:hidden aria-pressed:text-accent" aria-pressed={wrap} onClick={() => setWrap(!wrap)}>
          {texts.wrap}
        </button>
        <a className="btn-bare" href={whole} download={file}>
          {texts.download}
        </a>
      </div>
      <div className="relative min-h-0 grow">
        <div
          ref={frame}
          onScroll={watch}
          onWheel={touched}
          onTouchMove={touched}
          onPointerDown={touched}
          onKeyDown={touched}
          tabIndex={0}
          role="log"
          aria-label={texts.logLines}
          aria-live="off"
          className="h-full overflow-auto bg-sunken py-1 font-mono text-xs leading-[18px]"
          data-testid="log"
        >
          {lines.length === 0 && <NoLines state={state} problem={problem} />}
          {buffer.dropped > 0 && (
            <p className="px-3 text-faint">{counted(texts.olderLinesDownload, buffer.dropped)}</p>
          )}
          <div className={`relative ${wrap ? '' : 'w-max min-w-full'}`} style={{ height: rows.getTotalSize() }}>
            {rows.getVirtualItems().map((item) => (
              <div
                key={item.key}
                ref={wrap ? rows.measureElement : undefined}
                data-index={item.index}
                className={`absolute left-0 px-3 ${wrap ? 'w-full break-all whitespace-pre-wrap' : 'w-max min-w-full whitespace-pre'} ${item.index === current ? 'bg-accent-ground' : ''}`}
                style={{ transform: `translateY(${item.start}px)`, minHeight: LINE }}
              >
                <LogLine line={lines[item.index]!} find={find} prefixed={!task} />
              </div>
            ))}
          </div>
        </div>
        {!following && (
          <button type="button" className="btn absolute right-4 bottom-3 shadow" onClick={() => setFollowing(true)}>
            {texts.follow}
          </button>
        )}
      </div>
    </section>
  );
}

function NoLines({ state, problem }: { state: string; problem: string }) {
  const said = { opening: texts.nothingHasBeen, live: texts.nothingHasBeen, ended: texts.nothingWasPrinted }[state];
  return <p className="px-3 py-2 font-sans text-sm text-muted">{said ?? problem}</p>;
}

interface FindProps {
  value: string;
  onChange: (text: string) => void;
  onStep: (step: number) => void;
  found: number;
}

function Find({ value, onChange, onStep, found }: FindProps) {
  const field = useRef<HTMLInputElement>(null);
  useKeys({
    '/': (event) => {
      event.preventDefault();
      field.current?.focus();
    },
    n: () => onStep(1),
    N: () => onStep(-1),
  });
  return (
    <label className="flex items-center gap-2 text-xs text-muted">
      <input
        ref={field}
        type="search"
        aria-label={texts.findLog}
        placeholder={texts.find}
        className="field !h-7 !w-40 max-sm:!w-28"
        value={value}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') onStep(event.shiftKey ? -1 : 1);
          if (event.key === 'Escape') field.current?.blur();
        }}
      />
      {value && <span role="status">{counted(texts.countFound, found)}</span>}
    </label>
  );
}
