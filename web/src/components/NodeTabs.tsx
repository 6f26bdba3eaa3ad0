/** The pages about nodes: what they hold, what benchmarks measured on them, and the server's own parts. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/queries';
import { Tabs } from './Tabs';

const WAYS = [
  ['/nodes', 'Nodes'],
  ['/benchmarks', 'Benchmarks'],
  ['/server', 'Server'],
] as const;

export function NodeTabs() {
  const admin = useQuery(ask.me).data?.role === 'admin';
  return admin ? <Tabs label="Nodes" ways={WAYS} /> : null;
}
