/** The pages about nodes: what they hold, and what benchmarks measured on them. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/queries';
import { Tabs } from './Tabs';

const WAYS = [
  ['/nodes', 'Nodes'],
  ['/benchmarks', 'Benchmarks'],
] as const;

export function NodeTabs() {
  const admin = useQuery(ask.me).data?.role === 'admin';
  return admin ? <Tabs label="Nodes" ways={WAYS} /> : null;
}
