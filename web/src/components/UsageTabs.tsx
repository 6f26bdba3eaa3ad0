/** The pages about use: who used how much, and which devices are held and not used. */

import { Tabs } from './Tabs';

const WAYS = [
  ['/usage', 'Use and budgets'],
  ['/efficiency', 'Efficiency'],
  ['/fairness', 'Fairness'],
  ['/idle', 'Idle devices'],
] as const;

export const UsageTabs = () => <Tabs label="Usage" ways={WAYS} />;
