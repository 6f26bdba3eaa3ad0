/** What would become of jobs and queues with other nodes, quotas or rules: the scheduler plays it, nothing is changed. */

import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { ApiError, call } from '../api/client';
import * as ask from '../api/queries';
import type { WhatIfAnswer as Answer } from '../api/types';
import { CommandLine } from '../components/Copy';
import { Fault } from '../components/Notices';
import { Problems } from '../components/Problems';
import { QueueTabs } from '../components/QueueTabs';
import { useTitle } from '../components/useTitle';
import { WhatIfAnswer } from '../components/WhatIfAnswer';
import { asked, NOTHING, type Question, whatIfLine } from '../lib/whatif';

const HORIZONS = [
  ['6', '6 hours'],
  ['24', '1 day'],
  ['72', '3 days'],
  ['168', '1 week'],
] as const;

export function WhatIf() {
  const [question, setQuestion] = useState<Question>(NOTHING);
  const answer = useMutation({ mutationFn: () => call<Answer>('/what-if', { method: 'POST', json: asked(question) }) });
  useTitle('What if');
  const set = (change: Partial<Question>) => setQuestion({ ...question, ...change });
  const problems = answer.error instanceof ApiError ? answer.error.problems : [];
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (!answer.isPending) answer.mutate();
  };
  return (
    <section className="pt-3">
      <h1 className="sr-only">What if</h1>
      <QueueTabs queue="" />
      <div className="grid grid-cols-[minmax(0,1fr)] gap-6 pt-4 lg:grid-cols-[18rem_minmax(0,1fr)]">
        <form onSubmit={send} className="min-w-0 space-y-4" aria-label="Question">
          <Changes question={question} set={set} />
          <div className="grid grid-cols-2 gap-2">
            <Choice label="Look ahead" value={question.hours} onChange={(hours) => set({ hours })}>
              {HORIZONS.map(([hours, word]) => (
                <option key={hours} value={hours}>
                  {word}
                </option>
              ))}
            </Choice>
            <Choice label="Courses" value={question.seeds} onChange={(seeds) => set({ seeds })}>
              {['1', '5', '10', '20'].map((seeds) => (
                <option key={seeds}>{seeds}</option>
              ))}
            </Choice>
          </div>
          <button type="submit" className="btn btn-main w-full justify-center" disabled={answer.isPending}>
            {answer.isPending ? 'Playing it' : 'Ask'}
          </button>
          <CommandLine line={whatIfLine(question)} className="-ml-1.5" />
        </form>
        <div className="min-w-0" aria-live="polite">
          {answer.error && <Fault error={answer.error} />}
          {problems.length > 0 && <Problems problems={problems} />}
          {answer.data && !answer.error && <WhatIfAnswer answer={answer.data} />}
          {!answer.data && !answer.error && (
            <p className="max-w-[60ch] text-sm text-muted">
              The scheduler plays the present state forward twice, as it is and with your changes, and compares waits and starts. Nothing is changed. Without a change the answer says what is to be expected.
            </p>
          )}
        </div>
      </div>
    </section>
  );
}

function Changes({ question, set }: { question: Question; set: (change: Partial<Question>) => void }) {
  const { data: me } = useQuery(ask.me);
  const { data: queues } = useQuery(ask.queues);
  const { data: pages } = useInfiniteQuery(ask.nodes);
  const nodes = pages?.pages.flatMap((page) => page.items.map((node) => node.name)) ?? [];
  const names = (
    <>
      <option value="">–</option>
      {nodes.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </>
  );
  return (
    <>
      <div className="grid grid-cols-[5rem_1fr] gap-2">
        <Amount label="Add nodes" value={question.add} onChange={(add) => set({ add, like: question.like || (nodes[0] ?? '') })} />
        <Choice label="like" value={question.like} onChange={(like) => set({ like })}>
          {names}
        </Choice>
      </div>
      <Choice label="Drain" value={question.drain} onChange={(drain) => set({ drain })}>
        {names}
      </Choice>
      <Choice label="Queue" value={question.queue} onChange={(queue) => set({ queue })}>
        <option value="">–</option>
        {queues?.items.map((each) => (
          <option key={each.name}>{each.name}</option>
        ))}
      </Choice>
      {question.queue && (
        <div className="grid grid-cols-2 gap-2">
          <Amount label="Deserves devices" value={question.deserved} onChange={(deserved) => set({ deserved })} />
          <Amount label="Limit of devices" value={question.limit} onChange={(limit) => set({ limit })} />
        </div>
      )}
      <label className="block space-y-1">
        <span className="label">Submit a job file</span>
        <textarea
          className="field !h-20 py-1.5 font-mono !text-xs"
          placeholder={'name: more\nframework: shell\nroles: …'}
          value={question.submit}
          onChange={(event) => set({ submit: event.target.value })}
          spellCheck={false}
        />
      </label>
      <div className="grid grid-cols-[5rem_1fr] gap-2">
        <Amount label="Times" least={1} most={1000} value={question.times} onChange={(times) => set({ times })} />
        <label className="block min-w-0 space-y-1">
          <span className="label">Stop a job</span>
          <input className="field" maxLength={200} placeholder="name" value={question.stop} onChange={(event) => set({ stop: event.target.value })} autoComplete="off" />
        </label>
      </div>
      {me?.role === 'admin' && (
        <>
          <label className="block space-y-1">
            <span className="label">Policy</span>
            <input className="field" maxLength={100} placeholder="fair, fifo, srtf …" value={question.policy} onChange={(event) => set({ policy: event.target.value })} autoComplete="off" />
          </label>
          <label className="block space-y-1">
            <span className="label">Documents</span>
            <textarea
              className="field !h-24 py-1.5 font-mono !text-xs"
              placeholder={'kind: Queue\nname: research\nlimit: {devices: 16}'}
              value={question.documents}
              onChange={(event) => set({ documents: event.target.value })}
            />
          </label>
        </>
      )}
    </>
  );
}

function Choice({ label, value, onChange, children }: { label: string; value: string; onChange: (value: string) => void; children: ReactNode }) {
  return (
    <label className="block min-w-0 space-y-1">
      <span className="label">{label}</span>
      <select className="field" value={value} onChange={(event) => onChange(event.target.value)}>
        {children}
      </select>
    </label>
  );
}

interface AmountProps {
  label: string;
  least?: number;
  most?: number;
  value: string;
  onChange: (value: string) => void;
}

function Amount({ label, least = 0, most = 100_000, value, onChange }: AmountProps) {
  return (
    <label className="block min-w-0 space-y-1">
      <span className="label">{label}</span>
      <input className="field" type="number" min={least} max={most} value={value} onChange={(event) => onChange(event.target.value)} />
    </label>
  );
}
