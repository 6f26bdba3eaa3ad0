/** Whether a queue is closed to others, who manages it, and the limits that its managers set below the queue's own. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { call, part } from '../api/client';
import * as ask from '../api/queries';
import * as teams from '../api/teams';
import type { Limits, Queue, QueueLimits } from '../api/types';
import { limited, limitLine, limitsOf, manages, ownLimit, WHO, type Who } from '../lib/managing';
import { wide } from '../lib/wide';
import { queues as texts } from '../texts/english/queues';
import { fill } from '../texts/fill';
import { FormDialog } from './FormDialog';

export function QueueManaging({ queue }: { queue: Queue }) {
  const { data: me } = useQuery(ask.me);
  const { data } = useQuery(ask.queue(queue.name));
  const { data: limits } = useQuery(teams.queueLimits(queue.name));
  const [setting, setSetting] = useState(false);
  const may = manages(me, queue.name);
  const rows = limits ? limited(limits.limit, limits.userLimit, limits.groupLimit).filter((resource) => WHO.some((who) => limits[who][resource])) : [];
  return (
    <div className="space-y-2 pt-2 pl-2.5 text-sm" role="group" aria-label={texts.whoMayDo}>
      <p>
        {queue.membersOnly ? texts.membersOthersRefused : texts.openToEverybody} {queue.doc.closed === true && texts.takesNewJobs}
        {queue.doc.closed === true && ' '}
        {data && <span className="text-muted">{data.managers.length > 0 ? fill(texts.managedBy, { managers: data.managers.join(', ') }) : texts.administratorsManage}</span>}
      </p>
      {rows.length > 0 && limits && <SetLimits rows={rows} limits={limits} />}
      {may && (
        <div className="flex flex-wrap items-center gap-3">
          <button type="button" className="btn !h-7" disabled={!limits} onClick={() => setSetting(true)}>
            {texts.setLimits}
          </button>
          <Link to="/line" search={{ queue: queue.name }} className="link text-xs">
            {texts.reorderWhatWaits}
          </Link>
        </div>
      )}
      {setting && limits && <LimitsDialog queue={queue} limits={limits} onClose={() => setSetting(false)} />}
    </div>
  );
}

function SetLimits({ rows, limits }: { rows: string[]; limits: QueueLimits }) {
  return (
    <table className="grid-table !w-auto" aria-label={texts.limitsManagersSet}>
      <thead>
        <tr>
          <th>{texts.managersAllowMost}</th>
          {WHO.map((who) => (
            <th key={who} className="num">
              {texts.who[who]}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((resource) => (
          <tr key={resource}>
            <td>{resource}</td>
            {WHO.map((who) => (
              <td key={who} className="num">
                {limits[who][resource] ?? <span className="text-faint">–</span>}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function LimitsDialog({ queue, limits, onClose }: { queue: Queue; limits: QueueLimits; onClose: () => void }) {
  const client = useQueryClient();
  const [cells, setCells] = useState<Record<Who, Limits>>(limits);
  const said = limitsOf(cells);
  const own = { limit: ownLimit(queue.doc, 'limit'), userLimit: ownLimit(queue.doc, 'userLimit'), groupLimit: ownLimit(queue.doc, 'groupLimit') };
  const save = useMutation({
    mutationFn: () => call(`/queues/${part(queue.name)}/limits`, { method: 'PUT', json: said }),
    onSuccess: async () => {
      onClose();
      await client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => kind === 'cluster' || kind === 'configuration' });
    },
  });
  const resources = limited(own.limit, own.userLimit, own.groupLimit, limits.limit, limits.userLimit, limits.groupLimit);
  return (
    <FormDialog title={fill(texts.limitsIn, { name: queue.name })} word={texts.setThem} pending={save.isPending} error={save.error} line={limitLine(queue.name, said)} onSubmit={() => save.mutate()} onClose={onClose}>
      <p className="pb-2 text-sm text-muted">{texts.whatMembersMay}</p>
      <div {...wide} className="overflow-x-auto">
        <table className="w-full text-sm">
          <thead>
            <tr>
              <th className="label text-left">{texts.resource}</th>
              {WHO.map((who) => (
                <th key={who} className="label px-1 text-left">
                  {texts.who[who]}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {resources.map((resource, row) => (
              <tr key={resource}>
                <td className="pr-2 whitespace-nowrap">{resource}</td>
                {WHO.map((who, column) => (
                  <td key={who} className="p-1">
                    <input
                      className="field !min-w-16 !px-2"
                      aria-label={`${resource}, ${texts.who[who].toLowerCase()}`}
                      data-first={row === 0 && column === 0}
                      maxLength={40}
                      placeholder={own[who][resource] ? `≤ ${own[who][resource]}` : ''}
                      value={cells[who][resource] ?? ''}
                      onChange={(event) => setCells({ ...cells, [who]: { ...cells[who], [resource]: event.target.value } })}
                    />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </FormDialog>
  );
}
