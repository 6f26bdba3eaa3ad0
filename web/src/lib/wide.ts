/** What a box has whose content may be wider than it: the arrow keys scroll it once it has the focus. */

import { shared } from '../texts/english/shared';

export const wide = {
  role: 'group',
  get 'aria-label'() {
    return shared.scrollsSideways;
  },
  tabIndex: 0,
} as const;
