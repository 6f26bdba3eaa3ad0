/** What would become of jobs and queues with other nodes, quotas or rules: the scheduler plays it, nothing is changed. */

import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { ApiError } from '../api/client';
import * as ask from '../api/queries';
import { CommandLine } from '../components/Copy';
import { Fault } from '../components/Notices';
import { Problems } from '../components/Problems';
import { QuestionProgress } from '../components/QuestionProgress';
import { QueueTabs } from '../components/QueueTabs';
import { useQuestion } from '../components/useQuestion';
import { useTitle } from '../components/useTitle';
import { WhatIfAnswer } from '../components/WhatIfAnswer';
import { Amount, Choice, FileText, Options } from '../components/WhatIfFields';
import { WhatIfGoal } from '../components/WhatIfGoal';
import { NOTHING, type Question, whatIfLine } from '../lib/whatif';
import { whatif as texts } from '../texts/english/whatif';
import { counted } from '../texts/fill';

/** Hours, each with the unit that it is told in and how many of it. */
const HORIZONS = [
  ['6', 'hours', 6],
  ['24', 'days', 1],
  ['72', 'days', 3],
  ['168', 'weeks', 1],
] as const;

export function WhatIf() {
  const [question, setQuestion] = useState<Question>(NOTHING);
  const asking = useQuestion();
  const place = useRef<HTMLDivElement>(null);
  useTitle(texts.title);
  useEffect(() => {
    if ((asking.answer || asking.error) && place.current) show(place.current);
  }, [asking.answer, asking.error]);
  const set = (change: Partial<Question>) => setQuestion({ ...question, ...change });
  const problems = asking.error instanceof ApiError ? asking.error.problems : [];
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (!asking.isPending) asking.ask(question);
  };
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.title}</h1>
      <QueueTabs queue="" />
      <div className="grid grid-cols-[minmax(0,1fr)] gap-6 pt-4 lg:grid-cols-[18rem_minmax(0,1fr)]">
        <form onSubmit={send} className="min-w-0 space-y-4" aria-label={texts.question}>
          <Changes question={question} set={set} />
          <div className="grid grid-cols-[1fr_1fr_4.5rem] gap-2">
            <Choice label={texts.lookAhead} value={question.hours} onChange={(hours) => set({ hours })}>
              <Options words={HORIZONS.map(([hours, unit, count]) => [hours, counted(texts[unit], count)] as const)} />
            </Choice>
            <Choice label={texts.courses} value={question.seeds} onChange={(seeds) => set({ seeds })}>
              <Options words={['1', '5', '10', '20']} />
            </Choice>
            <Amount label={texts.firstSeed} most={2 ** 31 - 1} value={question.seed} onChange={(seed) => set({ seed })} />
          </div>
          <label className="flex items-center gap-2 text-sm">
            <input type="checkbox" checked={question.arrivals} onChange={(event) => set({ arrivals: event.target.checked })} />
            {texts.othersArrive}
          </label>
          <button type="submit" className="btn btn-main w-full justify-center" aria-disabled={asking.isPending}>
            {asking.isPending ? texts.playing : texts.ask}
          </button>
          <QuestionProgress asking={asking} />
          <CommandLine line={whatIfLine(question)} className="-ml-1.5" />
        </form>
        <div ref={place} className="min-w-0 scroll-mt-16" aria-live="polite">
          {asking.error !== undefined && <Fault error={asking.error} />}
          {problems.length > 0 && <Problems problems={problems} />}
          {asking.answer && <WhatIfAnswer answer={asking.answer} />}
          {!asking.question && (
            <p className="max-w-[60ch] text-sm text-muted">{texts.note}</p>
          )}
        </div>
      </div>
    </section>
  );
}

/** The button that asks stands below a long form: its answer may begin above the screen, or on a narrow one below it. */
function show(answer: HTMLElement) {
  const top = answer.getBoundingClientRect().top;
  if (top < 0 || top > innerHeight / 2) answer.scrollIntoView({ block: 'start' });
}

function Changes({ question, set }: { question: Question; set: (change: Partial<Question>) => void }) {
  const { data: me } = useQuery(ask.me);
  const { data: queues } = useQuery(ask.queues);
  const { data: pages } = useInfiniteQuery(ask.nodes);
  const nodes = pages?.pages.flatMap((page) => page.items.map((node) => node.name)) ?? [];
  const names = <Options none="–" words={nodes} />;
  const queueNames = queues?.items.map((each) => each.name) ?? [];
  return (
    <>
      <div className="grid grid-cols-[5rem_1fr] gap-2">
        <Amount label={texts.addNodes} value={question.add} onChange={(add) => set({ add, like: question.like || (nodes[0] ?? '') })} />
        <Choice label={texts.like} value={question.like} onChange={(like) => set({ like })}>
          {names}
        </Choice>
      </div>
      <Choice label={texts.drain} value={question.drain} onChange={(drain) => set({ drain })}>
        {names}
      </Choice>
      <Choice label={texts.queue} value={question.queue} onChange={(queue) => set({ queue })}>
        <Options none="–" words={queueNames} />
      </Choice>
      {question.queue && (
        <div className="grid grid-cols-2 gap-2">
          <Amount label={texts.deserves} value={question.deserved} onChange={(deserved) => set({ deserved })} />
          <Amount label={texts.limit} value={question.limit} onChange={(limit) => set({ limit })} />
        </div>
      )}
      <FileText
        label={texts.submitFile}
        placeholder={'name: more\nframework: shell\nroles: …'}
        height="!h-20"
        value={question.submit}
        onChange={(submit) => set({ submit })}
      />
      <div className="grid grid-cols-[5rem_1fr] gap-2">
        <Amount label={texts.times} least={1} most={1000} value={question.times} onChange={(times) => set({ times })} />
        <label className="block min-w-0 space-y-1">
          <span className="label">{texts.stopJob}</span>
          <input className="field" maxLength={200} placeholder={texts.stopExample} value={question.stop} onChange={(event) => set({ stop: event.target.value })} autoComplete="off" />
        </label>
      </div>
      {me?.role === 'admin' && (
        <>
          <label className="block space-y-1">
            <span className="label">{texts.policy}</span>
            <input className="field" maxLength={100} placeholder="fair, fifo, srtf …" value={question.policy} onChange={(event) => set({ policy: event.target.value })} autoComplete="off" />
          </label>
          <FileText
            label={texts.documents}
            placeholder={'kind: Queue\nname: research\nlimit: {devices: 16}'}
            height="!h-24"
            value={question.documents}
            onChange={(documents) => set({ documents })}
          />
        </>
      )}
      <WhatIfGoal goal={question.goal} set={(goal) => set({ goal })} nodes={nodes} queues={queueNames} ofAll={me?.role === 'admin'} />
    </>
  );
}
