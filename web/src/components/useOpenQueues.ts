/** The queues that take jobs of the reader; none until the server answers. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/queries';
import type { Page, Queue } from '../api/types';

const NONE: string[] = [];
const open = (page: Page<Queue>) => page.items.filter((queue) => queue.maySubmit).map((queue) => queue.name);

export function useOpenQueues(enabled = true): string[] {
  return useQuery({ ...ask.queues, enabled, select: open }).data ?? NONE;
}
