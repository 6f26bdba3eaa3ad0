/** Questions about one account: disable it, enable it, delete it, or make a sign-in link, which is shown once. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { call, part } from '../api/client';
import type { LoginLink } from '../api/types';
import { quote } from '../lib/cli';
import { linkAddress } from '../lib/people';
import { people as texts } from '../texts/english/people';
import { fill, filled } from '../texts/fill';
import { CopyWord } from './Copy';
import { Dialog } from './Dialog';
import { FormDialog } from './FormDialog';
import { Until } from './Time';

export type UserAction = 'disable' | 'enable' | 'delete' | 'link';

const TITLES: Record<UserAction, (name: string) => string> = {
  disable: (name) => fill(texts.disableNamed, { name }),
  enable: (name) => fill(texts.enableNamed, { name }),
  delete: (name) => fill(texts.deleteNamed, { name }),
  link: (name) => fill(texts.makeLinkFor, { name }),
};

const lineOf = (action: UserAction, name: string) =>
  ({ disable: `corral users change ${quote(name)} --lock`, enable: `corral users change ${quote(name)} --unlock`, delete: `corral users rm ${quote(name)}`, link: `corral users link ${quote(name)}` })[action];

export function UserQuestion({ name, action, onClose }: { name: string; action: UserAction; onClose: () => void }) {
  const client = useQueryClient();
  const act = useMutation({
    mutationFn: async () => {
      const path = `/users/${part(name)}`;
      if (action === 'link') return call<LoginLink>(`${path}/login-link`, { method: 'POST' });
      if (action === 'delete') await call(path, { method: 'DELETE' });
      else await call(path, { method: 'POST', json: { disabled: action === 'disable' } });
      return null;
    },
    onSuccess: async (link) => {
      if (link === null) onClose();
      await client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => kind === 'users' || kind === 'groups' });
    },
  });
  if (act.data) return <MadeLink name={name} link={act.data} onClose={onClose} />;
  return (
    <FormDialog title={TITLES[action](name)} word={texts.actionWords[action]} grave={action === 'disable' || action === 'delete'} pending={act.isPending} error={act.error} line={lineOf(action, name)} onSubmit={() => act.mutate()} onClose={onClose}>
      <p className="text-sm text-muted">{texts.consequences[action]}</p>
    </FormDialog>
  );
}

function MadeLink({ name, link, onClose }: { name: string; link: LoginLink; onClose: () => void }) {
  return (
    <Dialog title={fill(texts.signLink, { name })} onClose={onClose}>
      <p role="status" className="border-l-[3px] border-accent bg-accent-ground px-4 py-3 text-sm break-all">
        {texts.timeShown} <CopyWord text={linkAddress(link.link, location.origin)} />
      </p>
      <p className="pt-2 text-sm text-muted">
        {filled(texts.signsOnceEnds, { until: <Until at={link.expiresAt} /> })}
      </p>
      <div className="flex justify-end pt-5">
        <button type="button" data-first className="btn" onClick={onClose}>
          {texts.done}
        </button>
      </div>
    </Dialog>
  );
}
