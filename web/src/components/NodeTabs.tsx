/** The pages about nodes: what they hold, what benchmarks measured on them, and the server's own parts. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/queries';
import { pages } from '../texts/english/palette';
import { Tabs } from './Tabs';

const WAYS = ['/nodes', '/benchmarks', '/server'] as const;

export function NodeTabs() {
  const admin = useQuery(ask.me).data?.role === 'admin';
  return admin ? <Tabs label={pages['/nodes'].name} ways={WAYS.map((to) => [to, pages[to].name] as const)} /> : null;
}
