/** A profile beside an earlier one of its kind: the shares that differ most, first. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/profiles';
import type { ProfileView } from '../api/types';
import { change, percent } from '../lib/profiles';
import { absolute } from '../lib/time';
import { wide } from '../lib/wide';
import { counts } from '../texts/english/counts';
import { profiles as texts } from '../texts/english/profiles';
import { counted } from '../texts/fill';
import { Fault, Skeleton } from './Notices';

const MOST = 20;

interface Props {
  profile: ProfileView;
  others: ProfileView[];
  before?: string;
  onBefore: (id: string | undefined) => void;
}

export function ProfileBeside({ profile, others, before, onBefore }: Props) {
  const alike = others.filter((each) => each.id !== profile.id && each.what === profile.what && each.state === 'done');
  if (profile.what === 'stacks' || profile.what === 'system' || alike.length === 0) return null;
  const chosen = alike.find(({ id }) => id === before);
  return (
    <section aria-label={texts.comparison}>
      <h2 className="heading">{texts.besideAnotherProfile}</h2>
      <label className="mt-2 flex flex-wrap items-center gap-2 text-xs text-muted">
        {texts.compareWith}
        <select className="field !w-auto max-w-full" value={chosen?.id ?? ''} onChange={(event) => onBefore(event.target.value || undefined)}>
          <option value="">{texts.none}</option>
          {alike.map((each) => (
            <option key={each.id} value={each.id}>
              {absolute(each.takenAt).replace(/\.\d+ UTC.*/, ' UTC')}, {each.tasks.length === 1 ? each.tasks[0] : counted(counts.tasks, each.tasks.length)}
            </option>
          ))}
        </select>
      </label>
      {chosen && <Differences before={chosen.id} after={profile.id} />}
    </section>
  );
}

function Differences({ before, after }: { before: string; after: string }) {
  const { data, error, refetch } = useQuery(ask.comparison(before, after));
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!data) return <Skeleton rows={3} />;
  return (
    <div {...wide} className="overflow-x-auto pt-2">
      <table className="grid-table" aria-label={texts.differences}>
        <thead>
          <tr>
            <th scope="col" className="num w-24">{texts.other}</th>
            <th scope="col" className="num w-24">{texts.thisOne}</th>
            <th scope="col" className="num w-24">{texts.change}</th>
            <th scope="col">{texts.ofTheTime}</th>
          </tr>
        </thead>
        <tbody>
          {data.differences.slice(0, MOST).map((each) => (
            <tr key={each.name}>
              <td className="num">{percent(each.before)}</td>
              <td className="num">{percent(each.after)}</td>
              <td className="num">{change(each.after - each.before)}</td>
              <td className="font-mono text-xs [overflow-wrap:anywhere]">{each.name}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
