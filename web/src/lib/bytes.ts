/** Bytes as people read them. */

export function bytes(count: number): string {
  const [unit, factor] = count >= 2 ** 30 ? ['GiB', 2 ** 30] : ['MiB', 2 ** 20];
  return `${(count / factor).toLocaleString('en', { maximumFractionDigits: 1 })} ${unit}`;
}
