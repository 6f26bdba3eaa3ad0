import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { generated } from './types.mjs';

it('has the types of the OpenAPI document as it is (`make docs` writes them anew)', async () => {
  const written = readFileSync(new URL('./src/api/schema.ts', import.meta.url), 'utf8');
  expect(written === (await generated())).toBe(true);
});
