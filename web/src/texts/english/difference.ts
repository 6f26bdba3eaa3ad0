/** The texts of lines that differ. */

import { part } from '../language';

export const difference = part('difference', {
  label: 'Difference',
  none: 'There is no difference.',
  lines: '{came} {gone} lines',
  removed: 'removed: ',
  added: 'added: ',
});
