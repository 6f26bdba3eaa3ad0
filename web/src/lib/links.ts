/** Links between the devices of a node in words; the numbers are those of `corral/spec/link_quality.py`. */

import { nodes as texts } from '../texts/english/nodes';
import { counted } from '../texts/fill';

/** Base of vendors' own links (NVLink, XGMI, HCCS); their number is added. */
const OWN = 100;
const PATHS = [
  [60, 'board'],
  [50, 'PIX'],
  [40, 'PXB'],
  [30, 'PHB'],
  [20, 'NODE'],
  [10, 'SYS'],
  [1, 'PCIe'],
] as const;

export interface Link {
  short: string;
  words: string;
  /** 0 to 1: how good it is among all. */
  strength: number;
}

/** One entry of a matrix; null where nothing is known. */
export function link(quality: number): Link | null {
  if (quality > OWN) return { short: `NV${quality - OWN}`, words: counted(texts.ownLinks, quality - OWN), strength: 1 };
  const found = PATHS.find(([least]) => quality >= least);
  return found ? { short: found[1], words: texts.paths[found[1]], strength: Math.min(0.6, found[0] / 100) } : null;
}

/** The kinds of links that a matrix has, the best first. */
export function kinds(matrix: readonly (readonly number[])[]): Link[] {
  const values = new Set(matrix.flatMap((row, a) => row.filter((value, b) => a !== b && value > 0)));
  return [...values].sort((a, b) => b - a).flatMap((value) => link(value) ?? []);
}
