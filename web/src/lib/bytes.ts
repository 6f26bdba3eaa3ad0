/** Bytes as people read them. */

import { language } from '../texts/language';

export function bytes(count: number): string {
  const [unit, factor] = count >= 2 ** 30 ? ['GiB', 2 ** 30] : ['MiB', 2 ** 20];
  return `${(count / factor).toLocaleString(language().code, { maximumFractionDigits: 1 })} ${unit}`;
}
