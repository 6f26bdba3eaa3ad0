/** How many alerts fire and are not silenced, beside the way to their page. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/monitoring';
import { parts, toneOf } from '../lib/alerts';
import { frame } from '../texts/english/frame';
import { counted } from '../texts/fill';

const MOST = 99;

/** The number of alerts that fire unsilenced, and whether one of them is grave. */
export function useFiring(): { firing: number; grave: boolean } {
  const { data } = useQuery(ask.alerts);
  const { firing } = parts(data?.items ?? []);
  return { firing: firing.length, grave: firing.some(({ severity }) => toneOf(severity) === 'fail') };
}

export function AlertCount({ firing, grave }: { firing: number; grave: boolean }) {
  if (firing === 0) return null;
  return (
    <span
      data-firing={firing}
      className={`inline-block lg:ml-1.5 min-w-5 rounded-full border px-1 text-center text-2xs font-medium ${grave ? 'border-fail bg-fail-ground text-fail' : 'border-wait bg-wait-ground text-wait'}`}
    >
      <span aria-hidden>{firing > MOST ? `${MOST}+` : firing}</span>
      <span className="sr-only">{counted(frame.alertsFire, firing)}</span>
    </span>
  );
}
