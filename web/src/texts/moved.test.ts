/** All texts of the portal are in the catalogue: no file may show a text of its own. */

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const SOURCES = fileURLToPath(new URL('..', import.meta.url));

/** Every module but the catalogue, the tests, what is generated, and the columns of FOCUS files, which are English; a new file is covered at once. */
const FILES = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => /\.tsx?$/.test(path) && !/\.test\.tsx?$|^texts\/|^api\/schema\.ts$|^lib\/focus\.ts$/.test(path))
  .sort();

/** Names, keys and commands are the same in each language. */
const NAMES: readonly RegExp[] = [
  /^\s*(Corral|· Corral)\s*$/,
  /^Ctrl[ -]K$/,
  /^tgram:\/\//,
  /^corral[ .]/,
  /^(kind|name): /, // the beginning of a document or a job file
  /^fair, fifo, srtf …$/,
  /^1h, 80%, 0\.9 \* base$/,
];

/** Attributes and properties of components that a reader sees or hears; `said`, `word` and `what` are components' own. */
const SPOKEN = /^(aria-label|aria-description|aria-roledescription|title|placeholder|alt|label|hint|heading|said|word|what|name|line)$/;
/** Of these the values are names of fields and commands. */
const SILENT = /^(name|line)$/;

const isText = (text: string) => /\p{L}/u.test(text) && !NAMES.some((name) => name.test(text));
/** A capital and a second word, or a full stop: what is read, unlike a class, a path or a key. */
const isSentence = (text: string) => isText(text) && (/^\P{L}*\p{Lu}\p{L}*[ ,:…]/u.test(text) || /\p{L}[.?!…]$/u.test(text));

/** The texts of a source that a reader would see, each with its line. */
function texts(path: string, source: string): string[] {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true, path.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS);
  const found: string[] = [];
  const tell = (node: ts.Node, text: string) => {
    found.push(`${path}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1} ${text.trim()}`);
  };
  /** `shown`: whether each literal below is on the page; `quiet`: whether none is. */
  const visit = (node: ts.Node, shown: boolean, quiet: boolean): void => {
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node)) return;
    if (ts.isJsxText(node) && isText(node.text)) tell(node, node.text);
    if (ts.isJsxAttribute(node)) {
      const name = node.name.getText();
      const spoken = SPOKEN.test(name) && !SILENT.test(name);
      if (node.initializer) visit(node.initializer, spoken, !spoken && name !== 'children' && !/^on[A-Z]/.test(name));
      return;
    }
    if (ts.isBinaryExpression(node) && /^[!=]==?$/.test(node.operatorToken.getText())) return;
    if (ts.isJsxExpression(node) && !ts.isJsxAttribute(node.parent)) shown = true;
    if (ts.isArrowFunction(node) || ts.isElementAccessExpression(node)) shown = false;
    if (ts.isCallExpression(node)) shown = node.expression.getText() === 'useTitle';
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
      if (!quiet && (shown ? isText(node.text) : isSentence(node.text))) tell(node, node.text);
    }
    ts.forEachChild(node, (child) => visit(child, shown, quiet));
  };
  visit(file, false, false);
  return found;
}

describe('a module of the portal', () => {
  it.each(FILES)('%s shows no text of its own', (path) => {
    expect(texts(path, readFileSync(new URL(`../${path}`, import.meta.url), 'utf8'))).toEqual([]);
  });
});

it('finds a text wherever a reader would see it', () => {
  const page = `
    import { a } from 'A module.';
    const REASON = { wrong: 'It went wrong.', 'not-read': 'a b c' };
    function Page() {
      useTitle('Jobs');
      return <p className="One two" aria-label="Spoken" title={x === 'Equal' ? 'Chosen' : undefined} role={'Some role'}>
        Written {busy ? 'busy' : '…'} {\`\${n} left\`} {fill(texts.known, { key: 'value' })} {list.map((each) => <b key="a">{each}</b>)}
        <Field label={named ? \`Field \${n}\` : ''} onPick={() => pick('Key Of')} /> <kbd>Ctrl K</kbd>
      </p>;
    }`;
  const words = texts('x.tsx', page).map((each) => each.replace(/^\S+ /, ''));
  expect(words).toEqual(['It went wrong.', 'Jobs', 'Spoken', 'Chosen', 'Written', 'busy', 'left', 'Field', 'Key Of']);
});
