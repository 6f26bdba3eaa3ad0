/** Alerts as a table: how grave each is, what it says and is about, its value, and since when. */

import type { Alert } from '../api/types';
import { labelWords, said, shapeOf, toneOf, valueWords } from '../lib/alerts';
import { absolute } from '../lib/time';
import { alerts as texts } from '../texts/english/alerts';
import { fill } from '../texts/fill';
import { Ago } from './Time';

const COLOURS = { fail: 'text-fail', wait: 'text-wait', muted: 'text-muted' };

interface Props {
  label: string;
  alerts: readonly Alert[];
  /** The word and the time of the column: when it began to hold, or ended. */
  when?: 'since' | 'over';
  /** Given to those who may silence. */
  onSilence?: (alert: Alert) => void;
}

export function AlertTable({ label, alerts, when = 'since', onSilence }: Props) {
  const valued = alerts.some(({ value }) => value !== null);
  return (
    <table className="grid-table [&_td]:!align-top" aria-label={label}>
      <thead>
        <tr>
          <th className="w-24 max-sm:w-8">
            <span className="max-sm:sr-only">{texts.severity}</span>
          </th>
          <th>{texts.alert}</th>
          {valued && <th className="num max-sm:hidden">{texts.value}</th>}
          <th>{when === 'over' ? texts.over : texts.since}</th>
          {onSilence && (
            <th>
              <span className="sr-only">{texts.actions}</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {alerts.map((alert) => (
          <Row key={`${alert.source} ${alert.fingerprint}`} alert={alert} valued={valued} when={when} onSilence={onSilence} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  alert: Alert;
  /** Whether there is a column of values. */
  valued: boolean;
  when: 'since' | 'over';
  onSilence: Props['onSilence'];
}

function Row({ alert, valued, when, onSilence }: RowProps) {
  const labels = labelWords(alert.labels).join(' · ');
  return (
    <tr data-alert={alert.name}>
      <td>
        <Severity severity={alert.severity} />
      </td>
      <td className="min-w-0">
        <p className="font-medium [overflow-wrap:anywhere]">{alert.name}</p>
        {said(alert) && <p className="max-w-[75ch] [overflow-wrap:anywhere]">{said(alert)}</p>}
        <p className="text-xs text-muted [overflow-wrap:anywhere]">
          {alert.source === 'alertmanager' ? fill(texts.byAlertmanager, { labels }) : labels}
        </p>
        {alert.value !== null && <p className="text-xs text-muted sm:hidden">{fill(texts.valueOf, { valueWords: valueWords(alert.value) })}</p>}
      </td>
      {valued && <td className="num whitespace-nowrap max-sm:hidden">{valueWords(alert.value)}</td>}
      <td className="w-36 whitespace-nowrap text-muted max-sm:w-auto" title={alert.firedAt ? fill(texts.firesSince, { time: absolute(alert.firedAt) }) : undefined}>
        <Ago at={when === 'over' ? alert.resolvedAt : alert.since} />
      </td>
      {onSilence && (
        <td className="w-20 text-right max-sm:w-auto">
          <button type="button" className="link" onClick={() => onSilence(alert)} aria-label={fill(texts.silenceNamed, { name: alert.name })}>
            {texts.silenceRow}
          </button>
        </td>
      )}
    </tr>
  );
}

/** The severity as shape, word and colour; on a narrow screen the word is read out alone. */
export function Severity({ severity }: { severity: string }) {
  return (
    <span className={`whitespace-nowrap ${COLOURS[toneOf(severity)]}`}>
      <span aria-hidden>{shapeOf(severity)}</span> <span className="max-sm:sr-only">{severity || texts.none}</span>
    </span>
  );
}
