/** A change of one group; what is granted changes what everybody may, so all of that is asked for again. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { call, part } from '../api/client';
import type { GroupView } from '../api/types';

export interface GroupChange {
  grant?: { queues?: string[]; manages?: string[]; storages?: string[] };
  revoke?: { queues?: string[]; manages?: string[]; storages?: string[] };
  add?: string[];
  remove?: string[];
  description?: string;
  externalName?: string;
  admin?: boolean;
  /** "" takes it away. */
  maxPriority?: number | '';
}

export function useGroupChange() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ group, change }: { group: string; change: GroupChange }) => call<GroupView>(`/groups/${part(group)}`, { method: 'POST', json: change }),
    onSuccess: () => client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => ['groups', 'users', 'me', 'configuration', 'cluster'].includes(String(kind)) }),
  });
}
