/** What a job asked for, beside what it used: a table of its roles, and the same in sentences. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/overview';
import { ENDED, type JobDetail, type JobEfficiency as Efficiency, type RoleEfficiency } from '../api/types';
import { number, size } from '../lib/efficiency';
import { job as texts } from '../texts/english/job';
import { fill } from '../texts/fill';

/** Jobs that have not run have nothing to say. */
export function JobEfficiency({ job }: { job: JobDetail }) {
  const { data } = useQuery({ ...ask.efficiency(job.id, !ENDED.has(job.state)), enabled: job.startedAt !== null });
  return data ? <EfficiencyCard said={data} /> : null;
}

export function EfficiencyCard({ said }: { said: Efficiency }) {
  const measured = said.roles.some((role) => role.measuredTasks > 0);
  return (
    <section aria-label={texts.askedAndUsed}>
      <h2 className="heading">{texts.askedAndUsed}</h2>
      {measured && (
        <table className="mt-2 w-full text-xs">
          <thead>
            <tr className="text-left text-muted">
              <th scope="col">{texts.ofEachTask}</th>
              <th scope="col" className="text-right">{texts.devices}</th>
              <th scope="col" className="text-right">{texts.processors}</th>
              <th scope="col" className="text-right">{texts.memory}</th>
            </tr>
          </thead>
          {said.roles.map((role) => (
            <Role key={role.role} role={role} named={said.roles.length > 1} />
          ))}
        </table>
      )}
      <ul className="space-y-1 pt-2 text-sm">
        {said.words.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </section>
  );
}

const LINES = ['asked', 'mean', 'most', 'wouldDo'] as const satisfies readonly (keyof RoleEfficiency)[];

function Role({ role, named }: { role: RoleEfficiency; named: boolean }) {
  return (
    <tbody>
      {LINES.map((field) => {
        const amounts = role[field];
        const cells = [number(amounts.devices), number(amounts.cpus), size(amounts.memoryBytes)];
        if (field === 'wouldDo' && cells.every((cell) => cell === '')) return null;
        return (
          <tr key={field}>
            <th scope="row" className="text-left font-normal">{named ? fill(texts.amountOf, { role: role.role, amount: texts.amounts[field] }) : texts.amounts[field]}</th>
            {cells.map((cell, at) => (
              <td key={LABELS[at]} className="text-right">{cell}</td>
            ))}
          </tr>
        );
      })}
    </tbody>
  );
}

const LABELS = ['devices', 'cpus', 'memory'];
