/** The profiles of a job: one is taken by a button, chosen from the list, read, and compared with another one. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import * as ask from '../api/profiles';
import { ENDED, type JobDetail, type ProfileView } from '../api/types';
import { bytes } from '../lib/bytes';
import { counts } from '../texts/english/counts';
import { profiles as texts } from '../texts/english/profiles';
import { counted, fill } from '../texts/fill';
import { Empty, Fault, Skeleton } from './Notices';
import { ProfileBeside } from './ProfileBeside';
import { ProfileProgress } from './ProfileProgress';
import { ProfileShown } from './ProfileShown';
import { TakeProfile } from './TakeProfile';
import { Ago } from './Time';

interface Choice {
  profile?: string;
  before?: string;
}

interface Props extends Choice {
  job: JobDetail;
  onChoice: (choice: Choice) => void;
}

export default function JobProfiles({ job, profile, before, onChoice }: Props) {
  const { data, error, refetch } = useQuery(ask.profiles(job.id));
  const choose = (id: string | undefined) => onChoice({ profile: id, before: undefined });
  if (error && !data) return <Fault error={error} retry={() => void refetch()} />;
  if (!data) return <Skeleton />;
  const chosen = data.items.find(({ id }) => id === profile) ?? data.items[0];
  return (
    <div className="space-y-6">
      {!ENDED.has(job.state) && <TakeProfile job={job} going={data.items.some(ask.isGoing)} onTaken={choose} />}
      {data.items.length === 0 ? (
        <Empty title={texts.thereProfileJob}>
          {texts.profileShowsWhich}
        </Empty>
      ) : (
        <section aria-label={texts.profilesKept}>
          <List items={data.items} chosen={chosen} onChoice={choose} />
          <p className="pt-1.5 text-2xs text-muted">
            {data.mostBytes > 0 && fill(data.bytes > 0 && data.bytes < 2 ** 20 ? texts.useLittle : texts.use, { bytes: bytes(data.bytes), mostBytes: bytes(data.mostBytes) })}{' '}
            {counted(texts.profilesGoAfter, data.days)}
          </p>
        </section>
      )}
      {chosen && <Chosen key={chosen.id} profile={chosen} others={data.items} before={before} onBefore={(id) => onChoice({ profile: chosen.id, before: id })} />}
    </div>
  );
}

function List({ items, chosen, onChoice }: { items: ProfileView[]; chosen?: ProfileView; onChoice: (id: string | undefined) => void }) {
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: ask.remove,
    onSuccess: () => {
      onChoice(undefined);
      return client.invalidateQueries({ queryKey: ['profiles', 'of'] });
    },
  });
  return (
    <div className="relative overflow-x-auto">
      {remove.error && <Fault error={remove.error} />}
      <table className="grid-table" aria-label={texts.profiles}>
        <thead>
          <tr>
            <th scope="col">{texts.taken}</th>
            <th scope="col">{texts.what}</th>
            <th scope="col">{texts.tasks}</th>
            <th scope="col">{texts.state}</th>
            <th scope="col" className="num">{texts.ranks}</th>
            <th scope="col">{texts.by}</th>
            <th scope="col">
              <span className="sr-only">{texts.remove}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((each) => (
            <tr key={each.id} className={each === chosen ? 'bg-accent-ground' : ''}>
              <td>
                <button type="button" className="link whitespace-nowrap" aria-pressed={each === chosen} onClick={() => onChoice(each.id)}>
                  <Ago at={each.takenAt} />
                </button>
              </td>
              <td className="whitespace-nowrap">
                {texts.kinds[each.what]}
                {each.seconds > 0 && <span className="text-muted"> {fill(texts.s, { seconds: each.seconds })}</span>}
              </td>
              <td className="max-w-40 truncate" title={each.tasks.join(', ')}>
                {each.tasks.length === 1 ? each.tasks[0] : counted(counts.tasks, each.tasks.length)}
              </td>
              <td>{each.state}</td>
              <td className="num">{each.ranks || ''}</td>
              <td>{each.takenBy}</td>
              <td className="text-right">
                <button type="button" className="btn-bare" aria-label={fill(texts.removeProfile, { takenAt: each.takenAt })} disabled={remove.isPending} onClick={() => remove.mutate(each.id)}>
                  {texts.remove}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface ChosenProps {
  profile: ProfileView;
  others: ProfileView[];
  before?: string;
  onBefore: (id: string | undefined) => void;
}

function Chosen({ profile, others, before, onBefore }: ChosenProps) {
  if (ask.isGoing(profile)) return <ProfileProgress profile={profile} />;
  return (
    <>
      {profile.problem && <Fault error={new Error(profile.problem)} />}
      {profile.problems.length > 0 && (
        <ul aria-label={texts.whatCouldRead} className="list-disc pl-5 text-sm text-muted">
          {profile.problems.map((each) => (
            <li key={`${each.rank} ${each.problem}`}>
              {each.rank}: {each.problem}
            </li>
          ))}
        </ul>
      )}
      {profile.state === 'done' && (
        <>
          <ProfileShown profile={profile} />
          <ProfileBeside profile={profile} others={others} before={before} onBefore={onBefore} />
        </>
      )}
    </>
  );
}
