// Writes src/api/schema.ts: the types of the schemas in the OpenAPI document that the server serves.
import { readFileSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';

const DOCUMENT = new URL('../docs/schema/openapi.json', import.meta.url);
const TARGET = new URL('./src/api/schema.ts', import.meta.url);
const NOTE = '/** Generated from docs/schema/openapi.json; `make docs` writes it anew. */\n\n';

/** The text of the module; routes are left out, because the portal names them where it calls them. */
export async function generated() {
  const { openapi, info, components } = JSON.parse(readFileSync(DOCUMENT, 'utf8'));
  const schemas = { openapi, info, paths: {}, components: { schemas: components.schemas } };
  const tree = await openapiTS(schemas, { defaultNonNullable: false, rootTypes: true, rootTypesNoSchemaPrefix: true, silent: true });
  return NOTE + astToString(tree);
}

if (process.argv[1] === new URL(import.meta.url).pathname) writeFileSync(TARGET, await generated());
