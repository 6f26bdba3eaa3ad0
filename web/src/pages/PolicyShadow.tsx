/** A candidate policy beside the one in force, on the inputs of the server's journal: what it would have decided otherwise. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { type FormEvent, useCallback, useState } from 'react';
import { ApiError } from '../api/client';
import * as overview from '../api/overview';
import * as ask from '../api/queries';
import { CommandLine } from '../components/Copy';
import { Empty, Fault } from '../components/Notices';
import { Problems } from '../components/Problems';
import { QuestionProgress } from '../components/QuestionProgress';
import { QueueTabs } from '../components/QueueTabs';
import { RunningShadow, useBeginShadow } from '../components/RunningShadow';
import { ShadowAnswer } from '../components/ShadowAnswer';
import { type Comparing, useComparison } from '../components/useComparison';
import { useTitle } from '../components/useTitle';
import { serverNow } from '../lib/clock';
import { Choice, FileText, Options } from '../components/WhatIfFields';
import { type Candidate, HOURS, PRESETS, runningRequest, shadowLine, shadowRequest, USUAL_HOURS } from '../lib/shadow';
import { clock } from '../lib/time';
import { shadow as texts } from '../texts/english/shadow';
import { counted, fill } from '../texts/fill';

const route = getRouteApi('/frame/policy-shadow');

export function PolicyShadow() {
  const { data: me } = useQuery(ask.me);
  useTitle(texts.title);
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.title}</h1>
      <QueueTabs queue="" />
      {me && (me.role === 'admin' ? <Shadow /> : <Empty title={texts.administratorsCompare}>{texts.namesJobs}</Empty>)}
    </section>
  );
}

function Shadow() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { comparison = '' } = search;
  const show = useCallback((id: string) => void navigate({ search: (now) => ({ ...now, comparison: id || undefined }) }), [navigate]);
  const comparing = useComparison(comparison, show);
  const [candidate, setCandidate] = useState<Candidate>({ policy: search.policy ?? '', documents: search.documents ?? '', hours: search.hours ?? USUAL_HOURS, anew: search.anew === 'yes' });
  const set = (change: Partial<Candidate>) => {
    const next = { ...candidate, ...change };
    setCandidate(next);
    void navigate({ search: (now) => ({ ...now, policy: next.policy || undefined, documents: next.documents || undefined, hours: next.hours === USUAL_HOURS ? undefined : next.hours, anew: next.anew ? 'yes' : undefined }), replace: true });
  };
  const begin = useBeginShadow(() => show(''));
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const { submitter } = event.nativeEvent as SubmitEvent;
    if (submitter?.getAttribute('name') === 'begin') {
      if (!begin.isPending) begin.mutate(runningRequest(candidate, serverNow()));
    } else if (!comparing.isPending) {
      begin.reset();
      comparing.ask(shadowRequest(candidate, serverNow()));
    }
  };
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-6 pt-4 lg:grid-cols-[18rem_minmax(0,1fr)]">
      <form onSubmit={send} className="min-w-0 space-y-4" aria-label={texts.candidate}>
        <Fields candidate={candidate} set={set} />
        <button type="submit" className="btn btn-main w-full justify-center" aria-disabled={comparing.isPending}>
          {comparing.isPending ? texts.comparing : texts.compare}
        </button>
        <button type="submit" name="begin" className="btn w-full justify-center" aria-disabled={begin.isPending}>
          {texts.goOn}
        </button>
        <QuestionProgress asking={comparing} noun="comparison" />
        <CommandLine line={shadowLine(candidate, serverNow())} className="-ml-1.5" />
      </form>
      <Outcome comparing={comparing} comparison={comparison} refusal={begin.error ?? undefined} />
    </div>
  );
}

function Outcome({ comparing, comparison, refusal }: { comparing: Comparing; comparison: string; refusal?: Error }) {
  const { report } = comparing;
  const error = refusal ?? comparing.error;
  const problems = error instanceof ApiError ? error.problems : [];
  return (
    <div className="min-w-0 scroll-mt-16" aria-live="polite">
      {error !== undefined && <Fault error={error} />}
      {problems.length > 0 && <Problems problems={problems} />}
      {report && <ShadowAnswer report={report} />}
      {!comparison && (
        <>
          <p className="max-w-[60ch] text-sm text-muted">{texts.note}</p>
          <RunningShadow />
          <Kept />
        </>
      )}
    </div>
  );
}

/** The comparisons that the server still has. */
function Kept() {
  const { data } = useQuery(overview.comparisons);
  const kept = [...(data?.items ?? [])].reverse();
  if (kept.length === 0) return null;
  return (
    <div className="pt-4">
      <h2 className="label pb-1">{texts.kept}</h2>
      <ul className="space-y-0.5 text-sm">
        {kept.map((each) => (
          <li key={each.id}>
            <Link from="/policy-shadow" to="." search={(now) => ({ ...now, comparison: each.id })} className="link">
              {fill(texts.askedAt, { time: clock(each.askedAt) })}
            </Link>
            <span className="text-muted">{fill(texts.keptState, { state: texts.states[each.state] })}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Fields({ candidate, set }: { candidate: Candidate; set: (change: Partial<Candidate>) => void }) {
  const others = candidate.policy && !PRESETS.some((each) => each === candidate.policy) ? [candidate.policy] : [];
  return (
    <>
      <Choice label={texts.policy} value={candidate.policy} required={!candidate.documents.trim()} onChange={(policy) => set({ policy })}>
        <Options none={candidate.documents.trim() ? texts.policyOfDocuments : texts.chooseOne} words={[...PRESETS, ...others]} />
      </Choice>
      <FileText
        label={texts.documents}
        placeholder={'kind: Policy\nname: default\npreset: fair\norder: srtf'}
        height="!h-32"
        value={candidate.documents}
        onChange={(documents) => set({ documents })}
      />
      <Choice label={texts.hoursToCompare} value={candidate.hours} onChange={(hours) => set({ hours })}>
        <Options words={HOURS.map(([hours, unit, count]) => [hours, counted(texts[unit], count)] as const)} />
      </Choice>
      <label className="flex items-center gap-2 text-sm">
        <input type="checkbox" checked={candidate.anew} onChange={(event) => set({ anew: event.target.checked })} />
        {texts.beginAnew}
      </label>
    </>
  );
}
