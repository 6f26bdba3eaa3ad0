/** Submitting a job, by form or by file: what is changed in one is seen in the other. */

import { useMutation } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { ApiError, call } from '../api/client';
import { copyOf, queryOf, type Given } from '../api/copy';
import type { JobDetail, Problem, Trial } from '../api/types';
import { CommandLine } from '../components/Copy';
import { JobFields } from '../components/JobFields';
import { Fault } from '../components/Notices';
import { Problems } from '../components/Problems';
import { useTitle } from '../components/useTitle';
import { useValidation } from '../components/useValidation';
import { TrialNote } from '../components/TrialNote';
import { YamlEditor, type EditorHandle } from '../components/YamlEditor';
import { NEW_JOB, requestKey, toYaml } from '../lib/jobform';
import { edited } from '../lib/jobtext';

const route = getRouteApi('/frame/submit');

interface Options {
  waitForCapacity?: boolean;
  noImage?: boolean;
}

export function Submit() {
  const navigate = route.useNavigate();
  const { from } = route.useSearch();
  const [form, setForm] = useState(NEW_JOB);
  const [text, setText] = useState(() => toYaml(NEW_JOB));
  const [byHand, setByHand] = useState(false);
  const [given, setGiven] = useState<Given>({});
  const key = useRef({ text: '', key: '' });
  const editor = useRef<EditorHandle>(null);
  const { checked, problems, error } = useValidation(text, given);
  useTitle('Submit');

  const [original, setOriginal] = useState<unknown>(null);
  useEffect(() => {
    if (!from) return;
    copyOf(from).then((copy) => {
      setByHand(true);
      setText(copy.text);
      setGiven(copy.given);
    }, setOriginal);
  }, [from]);
  const current = checked?.text === text;
  useEffect(() => {
    if (byHand && current && checked.form) setForm(checked.form);
  }, [byHand, current, checked]);

  const trial = useMutation({
    mutationFn: () => call<Trial>('/jobs', { method: 'POST', text, query: { ...queryOf(given, text), dryRun: true } }),
  });
  const submit = useMutation({
    mutationFn: (options: Options) => {
      if (key.current.text !== text) key.current = { text, key: requestKey() };
      const headers = { 'Idempotency-Key': key.current.key };
      return call<JobDetail>('/jobs', { method: 'POST', text, headers, query: { ...queryOf(given, text), ...options } });
    },
    onSuccess: (job) => void navigate({ to: '/jobs/$ref', params: { ref: job.id } }),
  });
  const edit = (next: string) => {
    if (next === text) return;
    setByHand(true);
    setText(next);
    trial.reset();
    submit.reset();
  };
  const unformable = byHand && current && checked.valid && !checked.form;
  return (
    <section className="pt-5">
      <h1 className="text-xl font-semibold tracking-tight">Submit a job</h1>
      {original !== null && <Fault error={original} />}
      <form
        className="grid grid-cols-[minmax(0,1fr)] gap-x-8 gap-y-6 pt-4 lg:grid-cols-2"
        onSubmit={(event) => {
          event.preventDefault();
          submit.mutate({});
        }}
      >
        <div className="min-w-0">
          <JobFields
            form={form}
            disabled={unformable}
            onChange={(next) => {
              const changed = edited(text, form, next);
              if (changed === null) return; // a file with mistakes is corrected by hand
              setForm(next);
              setByHand(false);
              setText(changed);
              trial.reset();
              submit.reset();
            }}
          />
          {unformable && (
            <p role="status" className="pt-3 text-sm text-muted">
              The file says more than this form can show. It is submitted as it is written.
            </p>
          )}
        </div>
        <div className="flex min-w-0 flex-col gap-3">
          <YamlEditor ref={editor} label="Job file, YAML" value={text} onChange={edit} problems={problems} onSubmit={() => submit.mutate({})} />
          <Beside given={given} onDrop={() => setGiven({ ...given, parameters: {} })} />
          <Verdict problems={problems} valid={checked?.valid ?? false} current={current} onPick={(problem) => editor.current?.show(problem)} />
          <LeftOut notes={current ? checked.notes : []} />
          {error && !checked ? <Fault error={error} /> : null}
        </div>
        <div className="col-span-full border-t border-line pt-4">
          {trial.data && <TrialNote trial={trial.data} />}
          {trial.error && <Fault error={trial.error} />}
          {submit.error && <Refused error={submit.error} again={(options) => submit.mutate(options)} />}
          <div className="flex flex-wrap items-center gap-2">
            <button type="submit" className="btn btn-main !h-9 !px-5" disabled={submit.isPending}>
              {submit.isPending ? 'Submitting' : 'Submit'}
            </button>
            <button type="button" className="btn !h-9" onClick={() => trial.mutate()} disabled={trial.isPending}>
              Would it start now?
            </button>
            <span className="grow" />
            <CommandLine line="corral submit -f job.yaml" />
          </div>
        </div>
      </form>
    </section>
  );
}

/** What is submitted beside the text of a copy. */
function Beside({ given, onDrop }: { given: Given; onDrop: () => void }) {
  const parameters = Object.entries(given.parameters ?? {});
  if (parameters.length === 0) return null;
  return (
    <p className="flex flex-wrap items-baseline gap-x-2 text-xs text-muted">
      <span>Submitted with</span>
      <code className="font-mono break-all">{parameters.map(([name, value]) => `--set ${name}=${value}`).join(' ')}</code>
      <button type="button" className="link" onClick={onDrop}>
        Take the file&apos;s own
      </button>
    </p>
  );
}

function Verdict({ problems, valid, current, onPick }: { problems: Problem[]; valid: boolean; current: boolean; onPick: (problem: Problem) => void }) {
  if (problems.length === 0)
    return (
      <p role="status" className="text-xs text-muted">
        {valid && current ? <span className="text-accent">✓ The file is valid.</span> : 'Checking the file'}
      </p>
    );
  return <Problems problems={problems} onPick={onPick} />;
}

/** What the file holds beside its job, which Corral leaves out. */
function LeftOut({ notes }: { notes: readonly string[] }) {
  if (notes.length === 0) return null;
  return (
    <ul aria-label="Left out of the file" className="border-l-[3px] border-wait bg-wait-ground px-4 py-2 text-sm">
      {notes.map((note) => (
        <li key={note}>{note}</li>
      ))}
    </ul>
  );
}

/** A refusal that an option would lift offers that option. */
function Refused({ error, again }: { error: Error; again: (options: Options) => void }) {
  const code = error instanceof ApiError ? error.code : '';
  return (
    <>
      <Fault error={error} />
      {code === 'impossible-request' && (
        <button type="button" className="btn mb-3" onClick={() => again({ waitForCapacity: true })}>
          Submit it and wait for more machines
        </button>
      )}
      {code === 'no-container-runtime' && (
        <button type="button" className="btn mb-3" onClick={() => again({ noImage: true })}>
          Submit it without the image
        </button>
      )}
    </>
  );
}
