/** Rules on labels and taints of nodes as lines of text, in the words of kubectl: `zone in (a, b)` and `key=value:NoSchedule`. */

import { scalar } from './jobform';

/** YAML by key of one item of a list. */
export type Sources = Record<string, string>;
type Json = Record<string, unknown>;

const WORD = /^[^\s,()=!<>:]+$/;
const COMPARED: Record<string, string> = { Gt: '>', Lt: '<' };
const EFFECTS = ['NoSchedule', 'NoExecute', 'PreferNoSchedule'];

const worded = (value: unknown): value is string | number | boolean => ['string', 'number', 'boolean'].includes(typeof value) && WORD.test(String(value));
const only = (item: Json, keys: readonly string[]) => Object.keys(item).every((key) => keys.includes(key));

/** A rule on a label as a line; null where a line cannot say it. */
export function labelLine(item: Json): string | null {
  const { key, operator = 'In', values = [] } = item;
  if (!only(item, ['key', 'operator', 'values']) || !worded(key) || !Array.isArray(values) || !values.every(worded)) return null;
  const sign = COMPARED[String(operator)];
  if (operator === 'Exists' && values.length === 0) return String(key);
  if (operator === 'DoesNotExist' && values.length === 0) return `!${key}`;
  if (sign) return values.length === 1 ? `${key} ${sign} ${values[0]}` : null;
  if (values.length === 0) return null;
  if (operator === 'In') return `${key} in (${values.join(', ')})`;
  return operator === 'NotIn' ? `${key} notin (${values.join(', ')})` : null;
}

export function labelSources(line: string): Sources | null {
  const rule = (key: string, operator: string, values?: string[]): Sources | null => {
    if (!WORD.test(key) || !(values ?? []).every((each) => WORD.test(each))) return null;
    return { key: scalar(key), operator, ...(values && { values: `[${values.map(scalar).join(', ')}]` }) };
  };
  const [, key, not, list] = /^(\S+)\s+(not)?in\s*\(([^()]*)\)$/.exec(line) ?? [];
  if (key !== undefined) return rule(key, not ? 'NotIn' : 'In', list!.split(',').map((each) => each.trim()));
  const [, than, sign, bound] = /^(\S+?)\s*([<>])\s*(-?\d+)$/.exec(line) ?? [];
  if (than !== undefined) return rule(than, sign === '>' ? 'Gt' : 'Lt', [bound!]);
  return line.startsWith('!') ? rule(line.slice(1).trim(), 'DoesNotExist') : rule(line, 'Exists');
}

/** A tolerated taint as a line; null where a line cannot say it. `*` is any key. */
export function taintLine(item: Json): string | null {
  const { key = '', operator = 'Equal', value = '', effect = '', tolerationSeconds = -1 } = item;
  if (!only(item, ['key', 'operator', 'value', 'effect', 'tolerationSeconds'])) return null;
  if (!(key === '' || worded(key)) || !(value === '' || worded(value)) || (effect !== '' && !EFFECTS.includes(String(effect)))) return null;
  if (operator === 'Equal' ? key === '' : operator !== 'Exists' || value !== '') return null;
  const what = operator === 'Exists' ? String(key) || '*' : `${String(key)}=${String(value)}`;
  const seconds = tolerationSeconds === -1 ? '' : ` ${String(tolerationSeconds)}`;
  return `${what}${effect ? `:${String(effect)}` : ''}${seconds}`;
}

export function taintSources(line: string): Sources | null {
  const [, key, , value, effect, seconds] = /^(\*|[^\s,()=!<>:]+)(=([^\s,()=!<>:]*))?(?::(\w+))?(?:\s+(\d+))?$/.exec(line) ?? [];
  if (key === undefined || (effect !== undefined && !EFFECTS.includes(effect)) || (key === '*' && value !== undefined)) return null;
  const said: Sources = key === '*' ? {} : { key: scalar(key) };
  if (value === undefined) said.operator = 'Exists';
  else said.value = scalar(value);
  if (effect !== undefined) said.effect = effect;
  if (seconds !== undefined) said.tolerationSeconds = seconds;
  return said;
}
