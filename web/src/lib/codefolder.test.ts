import { describe, expect, it } from 'vitest';
import cases from '../../../tests/ignore_cases.json';
import { chosen, kept, pack, Unpackable, type Folder, type Node } from './codefolder';
import { rulesOf } from './ignore';
import { Sha256 } from './sha256';
import { entry } from './tar';

type Tree = { [name: string]: Tree | string };

function treeOf(files: Record<string, string>): Folder {
  const root: Tree = {};
  for (const [path, text] of Object.entries(files)) {
    const names = path.split('/');
    let here = root;
    for (const name of names.slice(0, -1)) here = (here[name] ??= {}) as Tree;
    here[names.at(-1)!] = text;
  }
  return folderOf(root);
}

function folderOf(tree: Tree, listed: (name: string) => void = () => undefined): Folder {
  return {
    children: async () =>
      Object.entries(tree).map(([name, each]): Node => {
        listed(name);
        return { name, folder: typeof each === 'string' ? null : folderOf(each, listed), file: async () => new Blob([each as string]) };
      }),
  };
}

async function paths(folder: Folder): Promise<string[]> {
  const found: string[] = [];
  for await (const { path } of kept(folder)) found.push(path);
  return found;
}

describe('ignore files', () => {
  it.each(Object.entries(cases))('%s', async (_, { files, kept: expected }) => {
    const found = await paths(treeOf(files as unknown as Record<string, string>));
    const leaves = found.filter((each) => !found.some((other) => other.startsWith(`${each}/`)));
    expect(leaves.sort()).toEqual([...expected].sort());
  });

  it('never reads a folder that is left out', async () => {
    const listed: string[] = [];
    await paths(folderOf({ '.gitignore': 'node_modules/\n', node_modules: { deep: { x: '' } } }, (name) => listed.push(name)));
    expect(listed).not.toContain('deep');
  });

  it('a line that no rule can be made of is told', () => {
    expect(() => rulesOf('ok\na\\')).toThrow(/ends with a backslash/);
  });
});

describe('archives', () => {
  const packed = (folder: Folder) => pack(folder, () => undefined, new AbortController().signal);
  const unzipped = async (blob: Blob) => new Uint8Array(await new Response(blob.stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer());

  it('are the same when later files are read before earlier ones', async () => {
    const files = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`f${String(at).padStart(3, '0')}`, `text ${at}`]));
    let opening = 0;
    let most = 0;
    const slow = (folder: Folder): Folder => ({
      children: async () =>
        (await folder.children()).map((node) => ({
          ...node,
          file: async () => {
            most = Math.max(most, ++opening);
            for (let turns = (200 - Number(node.name.slice(1))) % 7; turns >= 0; turns--) await new Promise((done) => setTimeout(done));
            opening--;
            return node.file();
          },
        })),
    });
    expect((await packed(slow(treeOf(files)))).digest).toBe((await packed(treeOf(files))).digest);
    expect(most).toBeGreaterThan(10);
    expect(most).toBeLessThan(50);
  });

  it('are the same for the same names and contents, in any order', async () => {
    const one = await packed(treeOf({ 'a.py': '1', 'b/c.py': '2' }));
    const two = await packed(treeOf({ 'b/c.py': '2', 'a.py': '1' }));
    expect(one.digest).toBe(two.digest);
    expect((await packed(treeOf({ 'a.py': '1', 'b/c.py': '3' }))).digest).not.toBe(one.digest);
    expect(one.digest).toBe(new Sha256().update(new Uint8Array(await one.blob.arrayBuffer())).digest());
  });

  it('have whole records, and scripts that can be executed', async () => {
    const tar = await unzipped((await packed(treeOf({ 'run.sh': '#!/bin/sh\n', 'x.py': 'x' }))).blob);
    expect(tar.length % 10240).toBe(0);
    const text = new TextDecoder('latin1').decode(tar);
    expect(text.slice(100, 107)).toBe('0000755');
    expect(text.slice(1024 + 100, 1024 + 107)).toBe('0000644');
  });

  it('give long and foreign names in pax records of their own length', () => {
    const text = new TextDecoder().decode(entry('ü', 1, false));
    expect(text.slice(512, 512 + 11)).toBe('11 path=ü\n\0');
    const long = 'x'.repeat(120);
    expect(new TextDecoder().decode(entry(long, 1, false)).slice(512, 512 + 130)).toBe(`130 path=${long}\n`);
  });

  it('stop at the first call to cancel, and refuse too many files in a sentence', async () => {
    const stop = new AbortController();
    const work = pack(treeOf({ a: 'x', b: 'y' }), () => stop.abort(), stop.signal);
    await expect(work).rejects.toThrow();
    const three = treeOf({ a: '', b: '', c: '' });
    await expect(pack(three, () => undefined, new AbortController().signal, 2)).rejects.toThrow(Unpackable);
    expect((await pack(three, () => undefined, new AbortController().signal, 3)).files).toBe(3);
  });

  it('a chosen folder is read by the paths of its files', async () => {
    const file = (path: string) => ({ webkitRelativePath: path }) as File;
    const found = chosen([file('top/a.py'), file('top/sub/b.py')]);
    expect(found?.name).toBe('top');
    expect(await paths(found!.folder)).toEqual(['a.py', 'sub', 'sub/b.py']);
    expect(chosen([])).toBeNull();
  });
});

describe('SHA-256', () => {
  it.each([0, 1, 55, 56, 63, 64, 65, 119, 128, 1000, 100_000])('of %i bytes, in any pieces, is what the platform says', async (length) => {
    const data = Uint8Array.from({ length }, (_, at) => (at * 7919) % 256);
    const said = [...new Uint8Array(await crypto.subtle.digest('SHA-256', data))].map((each) => each.toString(16).padStart(2, '0')).join('');
    const hash = new Sha256();
    for (let at = 0, step = 1; at < length; at += step, step = (step * 3) % 97) hash.update(data.subarray(at, at + step));
    expect(hash.digest()).toBe(said);
    expect(new Sha256().update(data).digest()).toBe(said);
  });
});
