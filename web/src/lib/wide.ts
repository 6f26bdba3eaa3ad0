/** What a box has whose content may be wider than it: the arrow keys scroll it once it has the focus. */

export const wide = { role: 'group', 'aria-label': 'Scrolls sideways', tabIndex: 0 } as const;
