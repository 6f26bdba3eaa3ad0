/** Starting a notebook by a short form; its own page opens it by one button once it runs. */

import { useMutation, useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useRef, useState, type ReactNode } from 'react';
import { call } from '../api/client';
import * as teams from '../api/teams';
import type { JobDetail } from '../api/types';
import { CommandLine } from '../components/Copy';
import { Fault } from '../components/Notices';
import { useOpenQueues } from '../components/useOpenQueues';
import { useTitle } from '../components/useTitle';
import { requestKey } from '../lib/jobform';
import { IDLE_TIMES, NEW_NOTEBOOK, notebookFile, notebookLine, type NotebookForm } from '../lib/notebookform';
import { notebook as texts } from '../texts/english/notebook';
import { filled } from '../texts/fill';

export function Notebook() {
  const navigate = useNavigate();
  const [form, setForm] = useState(NEW_NOTEBOOK);
  const key = useRef({ text: '', key: '' });
  useTitle(texts.startANotebook);
  const start = useMutation({
    mutationFn: () => {
      const text = notebookFile(form);
      if (key.current.text !== text) key.current = { text, key: requestKey() };
      return call<JobDetail>('/jobs', { method: 'POST', text, headers: { 'Idempotency-Key': key.current.key } });
    },
    onSuccess: (job) => void navigate({ to: '/jobs/$ref', params: { ref: job.id } }),
  });
  return (
    <section className="max-w-2xl pt-5">
      <h1 className="text-xl font-semibold tracking-tight">{texts.startANotebook}</h1>
      <p className="pt-1 text-sm text-muted">
        {filled(texts.jupyterlabJobPage, { link: <Link to="/submit" className="link">
          {texts.writeJobFile}
        </Link> })}
      </p>
      <form
        className="pt-4"
        onSubmit={(event) => {
          event.preventDefault();
          start.mutate();
        }}
      >
        <Fields form={form} onChange={setForm} />
        {start.error && <Fault error={start.error} />}
        <div className="flex flex-wrap items-center gap-2 pt-5">
          <button type="submit" className="btn btn-main !h-9 !px-5" disabled={start.isPending}>
            {start.isPending ? texts.starting : texts.start}
          </button>
          <span className="grow" />
          <CommandLine line={notebookLine(form)} />
        </div>
      </form>
    </section>
  );
}

const EXAMPLE = { none: '', image: 'quay.io/jupyter/base-notebook', environment: '/opt/envs/torch' } as const;

function Fields({ form, onChange }: { form: NotebookForm; onChange: (form: NotebookForm) => void }) {
  const { data: storages } = useQuery(teams.storages);
  const bind = (name: Exclude<keyof NotebookForm, 'kind'>) => ({
    value: form[name],
    onChange: (event: { target: { value: string } }) => onChange({ ...form, [name]: event.target.value }),
    className: 'field',
  });
  const named = useOpenQueues();
  return (
    <div className="grid grid-cols-1 gap-x-3 gap-y-4 sm:grid-cols-2">
      <Field label={texts.name}>
        <input {...bind('name')} required />
      </Field>
      <Field label={texts.queue}>
        <select {...bind('queue')}>
          {(named.includes(form.queue) ? named : [form.queue, ...named]).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </Field>
      <Field label={texts.jupyterIsIn}>
        <select
          className="field"
          value={form.kind}
          onChange={(event) => onChange({ ...form, kind: event.target.value as NotebookForm['kind'], programs: '' })}
        >
          <option value="none">{texts.nodesOwnEnvironment}</option>
          <option value="image">{texts.anImage}</option>
          <option value="environment">{texts.environmentNode}</option>
        </select>
      </Field>
      {form.kind !== 'none' && (
        <Field label={texts.programs[form.kind]}>
          <input {...bind('programs')} required placeholder={EXAMPLE[form.kind]} />
        </Field>
      )}
      <Field label={texts.devices} first>
        <input {...bind('devices')} type="number" min={0} step="any" />
      </Field>
      <Field label={texts.suspendWhenNobody}>
        <select {...bind('idle')}>
          {IDLE_TIMES.map((value) => (
            <option key={value} value={value}>
              {value ? texts.idleTimes[value] : texts.never}
            </option>
          ))}
        </select>
      </Field>
      <Field label={texts.processors}>
        <input {...bind('cpu')} />
      </Field>
      <Field label={texts.memory}>
        <input {...bind('memory')} placeholder={texts.limit8gi} />
      </Field>
      <label className="block min-w-0 space-y-1 sm:col-span-2">
        <span className="label">{texts.folder}</span>
        <input {...bind('folder')} list="notebook-folders" placeholder={texts.ownStoragePath} aria-describedby="notebook-folder" />
        <datalist id="notebook-folders">
          {storages?.items.map((each) => (
            <option key={each.name} value={each.name} />
          ))}
        </datalist>
        <span id="notebook-folder" className="block text-xs text-muted">
          {texts.folderNote}
        </span>
      </label>
    </div>
  );
}

function Field({ label, first, children }: { label: string; first?: boolean; children: ReactNode }) {
  return (
    <label className={`block min-w-0 space-y-1 ${first ? 'sm:col-start-1' : ''}`}>
      <span className="label">{label}</span>
      {children}
    </label>
  );
}
