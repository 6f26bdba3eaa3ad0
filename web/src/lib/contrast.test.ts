/** WCAG 2.2, success criteria 1.4.3 and 1.4.11, computed from the tokens of `styles.css` in both themes. */

import { describe, expect, it } from 'vitest';
import css from '../styles.css?raw';
import { HUES } from './cells';

function tokens(selector: string): Record<string, string> {
  const start = css.indexOf(`${selector} {`);
  const block = css.slice(start, css.indexOf('}', start));
  return Object.fromEntries([...block.matchAll(/--([\w-]+):\s*([^;]+);/g)].map((match) => [match[1]!, match[2]!]));
}

type Linear = [number, number, number];

function fromHex(hex: string): Linear {
  return [1, 3, 5].map((at) => {
    const part = parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as Linear;
}

/** OKLCH to linear sRGB, as Björn Ottosson gives it ("A perceptual color space for image processing", 2020). */
function fromOklch(lightness: number, chroma: number, hue: number): Linear {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const clamp = (part: number) => Math.min(1, Math.max(0, part));
  return [
    clamp(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    clamp(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    clamp(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

const luminance = ([r, g, b]: Linear) => 0.2126 * r + 0.7152 * g + 0.0722 * b;

function contrast(one: Linear, other: Linear): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

describe.each([
  ['light', ':root'],
  ['dark', ":root[data-theme='dark']"],
])('%s', (_theme, selector) => {
  const token = tokens(selector);
  const hex = (name: string) => fromHex(token[name]!);
  const pairs = [
    ...['text', 'muted', 'faint', 'accent', 'fail', 'wait'].flatMap((text) => ['ground', 'raised', 'sunken'].map((ground) => [text, ground] as const)),
    ...['accent', 'fail', 'wait'].flatMap((tone) => [tone, 'text', 'muted'].map((text) => [text, `${tone}-ground`] as const)),
    ['on-accent', 'accent'] as const,
  ];
  it.each(pairs)('reads %s on %s', (text, ground) => expect(contrast(hex(text), hex(ground))).toBeGreaterThanOrEqual(4.5));

  it.each(HUES)('reads a name on a tile of hue %d', (hue) => {
    const tile = fromOklch(Number(token['hue-light']), Number(token['hue-chroma']), hue);
    expect(contrast(hex('hue-text'), tile)).toBeGreaterThanOrEqual(4.5);
  });
});
