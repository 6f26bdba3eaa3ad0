/** How far a profile is that is being taken. */

import type { ProfileView } from '../api/types';
import { progress } from '../lib/profiles';
import { profiles as texts } from '../texts/english/profiles';
import { fill } from '../texts/fill';
import { useNow } from './Time';

export function ProfileProgress({ profile }: { profile: ProfileView }) {
  const { share, words } = progress(profile, useNow());
  return (
    <section aria-label={texts.progressProfile} className="max-w-md text-sm">
      <span role="progressbar" aria-label={texts.profile} aria-valuenow={Math.round(share * 100)} aria-valuemin={0} aria-valuemax={100} aria-valuetext={words}>
        <svg width="100%" height={10} aria-hidden className="block">
          <rect width="100%" height={10} fill="var(--line)" />
          <rect width={`${share * 100}%`} height={10} fill="var(--accent)" />
        </svg>
      </span>
      <p className="pt-1.5 text-muted">{fill(texts.jobGoesMeanwhile, { words })}</p>
    </section>
  );
}
