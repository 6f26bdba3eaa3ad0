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
import { FormDialog } from './FormDialog';

export function QueueManaging({ queue }: { queue: Queue }) {
  const { data: me } = useQuery(ask.me);
  const { data } = useQuery(ask.queue(queue.name));
  const { data: limits } = useQuery(teams.queueLimits(queue.name));
  const [setting, setSetting] = useState(false);
  const may = manages(me, queue.name);
  const rows = limits ? limited(limits.limit, limits.userLimit, limits.groupLimit).filter((resource) => WHO.some(([who]) => limits[who][resource])) : [];
  return (
    <div className="space-y-2 pt-2 pl-2.5 text-sm" role="group" aria-label="Who may do what">
      <p>
        {queue.membersOnly ? 'For members only: others are refused. ' : 'Open to everybody. '}
        {queue.doc.closed === true && 'It takes no new jobs. '}
        {data && <span className="text-muted">{data.managers.length > 0 ? `Managed by ${data.managers.join(', ')}.` : 'Only administrators manage it.'}</span>}
      </p>
      {rows.length > 0 && limits && <SetLimits rows={rows} limits={limits} />}
      {may && (
        <div className="flex flex-wrap items-center gap-3">
          <button type="button" className="btn !h-7" disabled={!limits} onClick={() => setSetting(true)}>
            Set limits
          </button>
          <Link to="/line" search={{ queue: queue.name }} className="link text-xs">
            reorder what waits
          </Link>
        </div>
      )}
      {setting && limits && <LimitsDialog queue={queue} limits={limits} onClose={() => setSetting(false)} />}
    </div>
  );
}

function SetLimits({ rows, limits }: { rows: string[]; limits: QueueLimits }) {
  return (
    <table className="grid-table !w-auto" aria-label="Limits that its managers set">
      <thead>
        <tr>
          <th>Its managers allow at most</th>
          {WHO.map(([who, word]) => (
            <th key={who} className="num">
              {word}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((resource) => (
          <tr key={resource}>
            <td>{resource}</td>
            {WHO.map(([who]) => (
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
    <FormDialog title={`Limits in ${queue.name}`} word="Set them" pending={save.isPending} error={save.error} line={limitLine(queue.name, said)} onSubmit={() => save.mutate()} onClose={onClose}>
      <p className="pb-2 text-sm text-muted">What its members may hold at most, not above the queue's own limits. An empty field is no limit.</p>
      <div {...wide} className="overflow-x-auto">
        <table className="w-full text-sm">
          <thead>
            <tr>
              <th className="label text-left">Resource</th>
              {WHO.map(([who, word]) => (
                <th key={who} className="label px-1 text-left">
                  {word}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {resources.map((resource, row) => (
              <tr key={resource}>
                <td className="pr-2 whitespace-nowrap">{resource}</td>
                {WHO.map(([who, word], column) => (
                  <td key={who} className="p-1">
                    <input
                      className="field !min-w-16 !px-2"
                      aria-label={`${resource}, ${word.toLowerCase()}`}
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
