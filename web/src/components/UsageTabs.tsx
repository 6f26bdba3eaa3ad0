/** The pages about use: who used how much, and which devices are held and not used. */

import { pages } from '../texts/english/palette';
import { tabs as texts } from '../texts/english/shared';
import { Tabs } from './Tabs';

const ways = () =>
  [
    ['/usage', texts.use],
    ['/efficiency', pages['/efficiency'].name],
    ['/fairness', pages['/fairness'].name],
    ['/idle', pages['/idle'].name],
  ] as const;

export const UsageTabs = () => <Tabs label={texts.usage} ways={ways()} />;
