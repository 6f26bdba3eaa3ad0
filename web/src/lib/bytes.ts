/** Bytes as people read them. */

import { number } from '../texts/fill';

export function bytes(count: number): string {
  const [unit, factor] = count >= 2 ** 30 ? ['GiB', 2 ** 30] : ['MiB', 2 ** 20];
  return `${number(count / factor, { maximumFractionDigits: 1 })} ${unit}`;
}
