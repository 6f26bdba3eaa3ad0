/** Submitting a job, by form or by file: what is changed in one is seen in the other. */

import { useMutation } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { ApiError, call } from '../api/client';
import { copyOf, queryOf, type Given } from '../api/copy';
import { templateCopy } from '../api/templates';
import type { JobDetail, Problem, Trial } from '../api/types';
import { CodeFolder, type SentCode } from '../components/CodeFolder';
import { CommandLine } from '../components/Copy';
import { JobFields, RoleFields } from '../components/JobFields';
import { MoreFields } from '../components/MoreFields';
import { Fault } from '../components/Notices';
import { Problems } from '../components/Problems';
import { RoleChoice } from '../components/RoleChoice';
import { ShareTemplate } from '../components/ShareTemplate';
import { useOpenQueues } from '../components/useOpenQueues';
import { useTitle } from '../components/useTitle';
import { useValidation } from '../components/useValidation';
import { TrialNote } from '../components/TrialNote';
import { YamlEditor, type EditorHandle } from '../components/YamlEditor';
import { JOB_GROUPS, ROLE_GROUPS } from '../lib/jobfields';
import { NEW_JOB, requestKey, toYaml, type JobForm } from '../lib/jobform';
import { submitLine } from '../lib/cli';
import { rolesOf } from '../lib/jobmore';
import { codeOf, edited, formable } from '../lib/jobtext';
import { submit as texts } from '../texts/english/submit';
import { fill, filled } from '../texts/fill';

/** What a file that was kept has in the place of a secret. */
const MASK = '******';

const route = getRouteApi('/frame/submit');

interface Options {
  waitForCapacity?: boolean;
  noImage?: boolean;
}

export function Submit() {
  const navigate = route.useNavigate();
  const { from, template } = route.useSearch();
  const [form, setForm] = useState(NEW_JOB);
  const [text, setText] = useState(() => toYaml(NEW_JOB));
  const [byHand, setByHand] = useState(false);
  const [follows, setFollows] = useState(!from && !template); // whether the form shows what the text says
  const [sharing, setSharing] = useState(false);
  const [chosen, setRole] = useState('');
  const [given, setGiven] = useState<Given>({});
  const [sendsCode, setSendsCode] = useState(false);
  const key = useRef({ text: '', key: '' });
  const editor = useRef<EditorHandle>(null);
  const latest = useRef(text); // also before the page is drawn again
  latest.current = text;
  const { checked, problems, error } = useValidation(text, given);
  useTitle(texts.submit);

  const [original, setOriginal] = useState<unknown>(null);
  useEffect(() => {
    if (!from && !template) return;
    (from ? copyOf(from) : templateCopy(template!)).then(
      (copy) => {
        setFollows(false);
        setByHand(true);
        setText(copy.text);
        setGiven(copy.given);
      },
      (error: unknown) => {
        setFollows(true);
        setOriginal(error);
      },
    );
  }, [from, template]);
  const current = checked?.text === text;
  useEffect(() => {
    if (!byHand || !current) return;
    const found = checked.form(chosen);
    if (found) setForm(found);
    if (found || checked.valid) setFollows(found !== null);
  }, [byHand, current, checked, chosen]);

  const queues = useOpenQueues();
  const untouched = text === toYaml(NEW_JOB);
  useEffect(() => {
    const [first] = queues;
    if (!untouched || first === undefined || queues.includes(NEW_JOB.queue)) return;
    const begun = { ...NEW_JOB, queue: first };
    setForm((now) => (now === NEW_JOB ? begun : now)); // either may have been changed since this was drawn
    setText((now) => (now === toYaml(NEW_JOB) ? toYaml(begun) : now));
  }, [queues, untouched]);

  const trial = useMutation({
    onMutate: (): void => submit.reset(), // one answer at a time
    mutationFn: () => call<Trial>('/jobs', { method: 'POST', text, query: { ...queryOf(given, text), dryRun: true } }),
  });
  const submit = useMutation({
    onMutate: (): void => trial.reset(),
    mutationFn: (options: Options) => {
      const sent = JSON.stringify([text, given.code]);
      if (key.current.text !== sent) key.current = { text: sent, key: requestKey() };
      const headers = { 'Idempotency-Key': key.current.key };
      return call<JobDetail>('/jobs', { method: 'POST', text, headers, query: { ...queryOf(given, text), ...options } });
    },
    onSuccess: (job) => void navigate({ to: '/jobs/$ref', params: { ref: job.id } }),
  });
  const send = () => {
    if (!sendsCode) submit.mutate({});
  };
  const edit = (next: string) => {
    if (next === latest.current) return;
    latest.current = next;
    setByHand(true);
    setText(next);
    trial.reset();
    submit.reset();
  };
  const takeCode = (code: SentCode | null) =>
    setGiven((before) => {
      const { code: _, codeSaid: __, folder: ___, ...rest } = before;
      return code ? { ...rest, code: code.digest, codeSaid: codeOf(latest.current), folder: code.folder } : rest;
    });
  const reads = useMemo(() => formable(text), [text]);
  const roles = useMemo(() => rolesOf(text), [text]);
  const role = roles.includes(chosen) ? chosen : (roles[0] ?? '');
  const shut = !follows || reads !== 'yes';
  const change = (next: JobForm) => {
    const changed = edited(text, form, next, role);
    if (changed === null) return; // a file with mistakes is corrected by hand
    setForm(next);
    setByHand(false);
    setText(changed);
    trial.reset();
    submit.reset();
  };
  const more = reads === 'more' || (current && checked.valid && !follows);
  return (
    <section className="pt-5">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="text-xl font-semibold tracking-tight">{texts.submitAJob}</h1>
        <Link to="/notebook" className="link text-sm">
          {texts.startANotebook}
        </Link>
        <Link to="/templates" className="link text-sm">
          {texts.beginTemplate}
        </Link>
      </div>
      {original !== null && <Fault error={original} />}
      <form
        className="grid grid-cols-[minmax(0,1fr)] gap-x-8 gap-y-6 pt-4 lg:grid-cols-2"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <div className="min-w-0">
          <Part title={texts.theWholeJob} told={texts.sameAllRoles}>
            <JobFields form={form} disabled={shut} onChange={change} />
          </Part>
          <Part title={role ? fill(texts.roleNamed, { role }) : texts.role} told={texts.chosenRoleAlone}>
            {reads === 'yes' && (
              <RoleChoice
                roles={roles}
                role={role}
                onChoose={(next) => {
                  setRole(next);
                  setByHand(true);
                }}
                onText={edit}
                text={text}
              />
            )}
            <RoleFields form={form} disabled={shut} onChange={change} />
            <MoreFields groups={ROLE_GROUPS} text={text} role={role} disabled={shut} onText={edit} />
          </Part>
          <Part title={texts.moreWholeJob} told={texts.sameAllRoles}>
            <MoreFields groups={JOB_GROUPS} text={text} role={role} disabled={shut} onText={edit} />
          </Part>
          <CodeFolder onCode={takeCode} onBusy={setSendsCode} unused={given.codeSaid !== codeOf(text)} />
          <WhyGreyed more={more} mistaken={reads === 'unread' || (!follows && problems.length > 0)} />
        </div>
        <div className="flex min-w-0 flex-col gap-3 lg:sticky lg:top-16 lg:h-[calc(100dvh-6rem)] lg:min-h-[28rem] lg:self-start lg:overflow-y-auto lg:p-0.5">
          <YamlEditor ref={editor} label={texts.jobFileYaml} value={text} onChange={edit} problems={problems} onSubmit={send} />
          <Beside given={given} secrets={text.includes(MASK)} onDrop={() => setGiven({ ...given, parameters: {} })} />
          <Verdict problems={problems} valid={checked?.valid ?? false} current={current} onPick={(problem) => editor.current?.show(problem)} />
          <LeftOut notes={current ? checked.notes : []} />
          {error && !checked ? <Fault error={error} /> : null}
        </div>
        <div className="col-span-full border-t border-line pt-4">
          {trial.data && <TrialNote trial={trial.data} />}
          {trial.error && <Refused error={trial.error} again={(options) => submit.mutate(options)} />}
          {submit.error && <Refused error={submit.error} again={(options) => submit.mutate(options)} />}
          <div className="flex flex-wrap items-center gap-2">
            <button type="submit" className="btn btn-main !h-9 !px-5" disabled={submit.isPending || sendsCode}>
              {submit.isPending ? texts.submitting : texts.submit}
            </button>
            <button type="button" className="btn !h-9" onClick={() => trial.mutate()} disabled={trial.isPending}>
              {texts.wouldItStart}
            </button>
            <button type="button" className="btn !h-9" onClick={() => setSharing(true)}>
              {texts.saveTemplate}
            </button>
            <span className="grow" />
            <CommandLine line={submitLine(given)} />
          </div>
        </div>
      </form>
      {sharing && <ShareTemplate file={text} name={form.name} onClose={() => setSharing(false)} />}
    </section>
  );
}

/** A part of the form, with what it is about. */
function Part({ title, told, children }: { title: string; told: string; children: ReactNode }) {
  return (
    <section aria-label={title} className="border-t border-line pt-3 pb-5 first:border-0 first:pt-0">
      <div className="flex flex-wrap items-baseline gap-x-3 pb-3">
        <h2 className="font-medium">{title}</h2>
        <p className="text-xs text-muted">{told}</p>
      </div>
      {children}
    </section>
  );
}

/** Why the form cannot be used. */
function WhyGreyed({ more, mistaken }: { more: boolean; mistaken: boolean }) {
  if (!more && !mistaken) return null;
  return (
    <p role="status" className="pt-3 text-sm text-muted">
      {more ? texts.fileSaysMore : texts.formShowsFile}
    </p>
  );
}

/** What is submitted beside the text of a copy. */
function Beside({ given, secrets, onDrop }: { given: Given; secrets: boolean; onDrop: () => void }) {
  const parameters = Object.entries(given.parameters ?? {});
  return (
    <>
      {parameters.length > 0 && (
        <p className="flex flex-wrap items-baseline gap-x-2 text-xs text-muted">
          <span>{texts.submittedWith}</span>
          <code className="font-mono break-all">{parameters.map(([name, value]) => `--set ${name}=${value}`).join(' ')}</code>
          <button type="button" className="link" onClick={onDrop}>
            {texts.takeFilesOwn}
          </button>
        </p>
      )}
      {secrets && given.from && (
        <p className="text-xs text-muted">
          {filled(texts.standsSecretFilled, { MASK: <code className="font-mono">{MASK}</code> })}
        </p>
      )}
    </>
  );
}

function Verdict({ problems, valid, current, onPick }: { problems: Problem[]; valid: boolean; current: boolean; onPick: (problem: Problem) => void }) {
  if (problems.length === 0)
    return (
      <p role="status" className="text-xs text-muted">
        {valid && current ? <span className="text-accent">{texts.fileValid}</span> : texts.checkingTheFile}
      </p>
    );
  return <Problems problems={problems} onPick={onPick} />;
}

/** What the file holds beside its job, which Corral leaves out. */
function LeftOut({ notes }: { notes: readonly string[] }) {
  if (notes.length === 0) return null;
  return (
    <ul aria-label={texts.leftOutFile} className="border-l-[3px] border-wait bg-wait-ground px-4 py-2 text-sm">
      {notes.map((note) => (
        <li key={note}>{note}</li>
      ))}
    </ul>
  );
}

/** A refusal without the flag of the command line that the button below it stands for. */
function asButton(error: Error): Error {
  if (!(error instanceof ApiError)) return error;
  return new ApiError(error.status, error.code, error.message.replace(/ \(--[a-z-]+\)/, ''), error.problems, error.findings);
}

/** A refusal that an option would lift offers that option. */
function Refused({ error, again }: { error: Error; again: (options: Options) => void }) {
  const code = error instanceof ApiError ? error.code : '';
  return (
    <>
      <Fault error={asButton(error)} />
      {code === 'impossible-request' && (
        <button type="button" className="btn mb-3" onClick={() => again({ waitForCapacity: true })}>
          {texts.submitAllSame}
        </button>
      )}
      {code === 'no-container-runtime' && (
        <button type="button" className="btn mb-3" onClick={() => again({ noImage: true })}>
          {texts.submitWithoutImage}
        </button>
      )}
    </>
  );
}
