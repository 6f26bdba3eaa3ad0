/** What the map marks beside who holds what: whose cells devices are in, who is a guest, what leaves, what is closed. */

import type { CellState, Standing } from '../api/types';

export interface DeviceMark {
  owner: string;
  pinned: boolean;
  standing: Standing;
  leaving: boolean;
}
export interface NodeMark {
  /** The queue that all of it is bound to; where the answer ended above its devices, this is all that is known. */
  owner: string;
  state: CellState['state'];
  reason: string;
}
export interface Marks {
  /** By node and device index, as `marked` joins them. */
  devices: Map<string, DeviceMark>;
  nodes: Map<string, NodeMark>;
  /** The queues that own some cell now, in the order of names. */
  owners: string[];
  guests: boolean;
  leaving: boolean;
  pinned: boolean;
}

export const NO_MARKS: Marks = { devices: new Map(), nodes: new Map(), owners: [], guests: false, leaving: false, pinned: false };

export const marked = (node: string, index: number) => `${node}#${index}`;

export function marks(root: CellState | undefined): Marks {
  if (!root) return NO_MARKS;
  const found: Marks = { ...NO_MARKS, devices: new Map(), nodes: new Map() };
  const owners = new Set<string>();
  const walk = (cell: CellState, node: string): void => {
    const inside = cell.level === 'node' ? cell.id.slice(cell.id.indexOf(':') + 1) : node;
    if (cell.level === 'node' && (cell.state || cell.owner)) {
      found.nodes.set(inside, { state: cell.state, reason: cell.reason, owner: cell.owner });
      if (cell.owner) owners.add(cell.owner);
    }
    for (const device of cell.holds) {
      const standing = device.uses.find((use) => use.standing === 'guest')?.standing ?? device.uses[0]?.standing ?? '';
      const leaving = device.uses.some((use) => use.leaving);
      found.devices.set(marked(inside, device.index), { owner: device.owner, pinned: device.pinned, standing, leaving });
      if (device.owner) owners.add(device.owner);
      found.guests ||= standing === 'guest';
      found.leaving ||= leaving;
      found.pinned ||= device.pinned;
    }
    for (const each of cell.cells) walk(each, inside);
  };
  walk(root, '');
  found.owners = [...owners].sort();
  return found;
}
