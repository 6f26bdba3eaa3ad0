/** Narrows a page to one user, for administrators: their own jobs, or those of the user that the address names. */

import { useQuery } from '@tanstack/react-query';
import { me as askMe } from '../api/queries';
import { usage as texts } from '../texts/english/usage';

export function UserChoice({ user, onChange }: { user: string; onChange: (user: string | undefined) => void }) {
  const { data: me } = useQuery(askMe);
  if (me?.role !== 'admin') return null;
  return (
    <button type="button" className="btn aria-pressed:border-accent aria-pressed:text-accent" aria-pressed={!!user} onClick={() => onChange(user ? undefined : me.user)}>
      {user && user !== me.user ? `${user} ✕` : texts.mine}
    </button>
  );
}
