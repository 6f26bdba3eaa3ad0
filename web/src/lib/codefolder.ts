/** A folder of code as an archive that `corral submit` could have made: the ignore file's rules, sorted, without times. */

import { IGNORE_FILES, leftOut, never, rulesOf, type Rules } from './ignore';
import { Sha256 } from './sha256';
import { end, entry, padding } from './tar';
import { submit as texts } from '../texts/english/submit';
import { fill, number } from '../texts/fill';

/** A folder that was chosen or dropped; its names are read when they are asked for. */
export interface Folder {
  children(): Promise<Node[]>;
}
export interface Node {
  name: string;
  /** The folder, or null for a file. */
  folder: Folder | null;
  file(): Promise<Blob>;
}

export interface Packed {
  blob: Blob;
  digest: string;
  files: number;
}

const MOST_FILES = 200_000;
const MOST_BYTES = 4 * 2 ** 30;
const PIECE = 2 ** 18;
const AHEAD = 32;
const PART = 2 ** 22;

/** A folder that cannot be packed, in a sentence for its owner. */
export class Unpackable extends Error {}

interface Kept {
  path: string;
  node: Node;
}

/** All that is packed of a folder, in the archive's order; folders come before what is in them. */
export async function* kept(root: Folder): AsyncGenerator<Kept> {
  const top = await root.children();
  const name = IGNORE_FILES.find((each) => top.some((node) => node.name === each && !node.folder));
  yield* below('', top, [], name);
}

async function* below(base: string, nodes: Node[], above: readonly { base: string; rules: Rules }[], ignoreFile: string | undefined): AsyncGenerator<Kept> {
  const own = ignoreFile && nodes.find((node) => node.name === ignoreFile && !node.folder);
  const rules = own ? [...above, { base, rules: rulesOf(await (await own.file()).text()) }] : above;
  for (const node of nodes.sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const path = base === '' ? node.name : `${base}/${node.name}`;
    if (never(node.name) || leftOut(path, node.folder !== null, rules)) continue;
    yield { path, node };
    if (node.folder) yield* below(path, await node.folder.children(), rules, ignoreFile);
  }
}

interface Opened {
  file: Blob;
  first: Uint8Array;
}

/** The files in their order, the first piece of the next ones being read: a browser takes a millisecond or more for each. */
async function* opened(root: Folder): AsyncGenerator<Kept & { begun: Promise<Opened> | null }> {
  const next: (Kept & { begun: Promise<Opened> | null })[] = [];
  for await (const each of kept(root)) {
    const begun = each.node.folder ? null : opening(each.node);
    begun?.catch(() => undefined); // it is told when its turn comes
    next.push({ ...each, begun });
    if (next.length > AHEAD) yield next.shift()!;
  }
  yield* next;
}

async function opening(node: Node): Promise<Opened> {
  const file = await node.file();
  return { file, first: new Uint8Array(await file.slice(0, PIECE).arrayBuffer()) };
}

/** Pack a folder; `tell` gets the number of files so far. Only pieces are in memory: the browser keeps the rest on its disk. */
export async function pack(root: Folder, tell: (files: number) => void, signal: AbortSignal, most = MOST_FILES): Promise<Packed> {
  const sink = new Sink();
  const gzip = new CompressionStream('gzip');
  const stored = gzip.readable.pipeTo(new WritableStream({ write: (piece) => sink.take(piece) }), { signal });
  stored.catch(() => undefined); // the writer below throws the same
  const writer = new Batches(gzip.writable.getWriter());
  let files = 0;
  let shown = performance.now();
  try {
    for await (const { path, begun } of opened(root)) {
      signal.throwIfAborted();
      if (performance.now() - shown > 30) {
        await new Promise((done) => setTimeout(done)); // the page is drawn, and takes clicks
        shown = performance.now();
      }
      if (++files > most) throw new Unpackable(fill(texts.folderHasOver, { most: number(most) }));
      if (begun === null) await writer.write(entry(path, 0, true));
      else await add(writer, path, begun, signal);
      tell(files);
    }
    await writer.write(end(writer.taken));
    await writer.close();
    await stored;
  } catch (error) {
    await writer.abort(error);
    throw error;
  }
  return { ...sink.finish(), files };
}

async function add(writer: Batches, path: string, begun: Promise<Opened>, signal: AbortSignal): Promise<void> {
  let size = 0;
  try {
    const { file, first } = await begun;
    const script = first[0] === 0x23 && first[1] === 0x21; // "#!": a browser does not tell what is executable
    await writer.write(entry(path, file.size, false, script));
    await writer.write(first);
    for (size = first.length; size < file.size; size += PIECE) {
      signal.throwIfAborted();
      await writer.write(new Uint8Array(await file.slice(size, size + PIECE).arrayBuffer()));
    }
    await writer.write(padding(file.size));
  } catch (error) {
    if (error instanceof DOMException && error.name !== 'AbortError') throw new Unpackable(fill(texts.fileCannotRead, { path }));
    throw error;
  }
}

/** Gathers small pieces: a write for each of 100,000 small files would take longer than their bytes. */
class Batches {
  private readonly buffer = new Uint8Array(PIECE);
  private used = 0;
  /** The bytes that were written so far. */
  taken = 0;

  constructor(private readonly writer: WritableStreamDefaultWriter<BufferSource>) {}

  async write(piece: Uint8Array<ArrayBufferLike>): Promise<void> {
    this.taken += piece.length;
    for (let at = 0; at < piece.length; ) {
      const part = piece.subarray(at, at + PIECE - this.used);
      this.buffer.set(part, this.used);
      this.used += part.length;
      at += part.length;
      if (this.used === PIECE) await this.flush();
    }
  }

  async close(): Promise<void> {
    await this.flush();
    await this.writer.close();
  }

  async abort(reason: unknown): Promise<void> {
    await this.writer.abort(reason).catch(() => undefined);
  }

  private async flush(): Promise<void> {
    const full = this.buffer.slice(0, this.used);
    this.used = 0;
    await this.writer.ready;
    await this.writer.write(full);
  }
}

/** Takes the archive's bytes: hashed as they come, and handed to the browser as parts of a Blob, which it keeps on disk. */
class Sink {
  private readonly digest = new Sha256();
  private parts: Blob[] = [];
  private waiting: Uint8Array<ArrayBuffer>[] = [];
  private held = 0;
  private size = 0;

  take(piece: Uint8Array<ArrayBuffer>): void {
    this.digest.update(piece);
    this.waiting.push(piece);
    this.held += piece.length;
    this.size += piece.length;
    if (this.size > MOST_BYTES) throw new Unpackable(texts.archiveFolderOver);
    if (this.held >= PART) this.store();
  }

  finish(): { blob: Blob; digest: string } {
    this.store();
    return { blob: new Blob(this.parts), digest: this.digest.digest() };
  }

  private store(): void {
    this.parts.push(new Blob(this.waiting));
    this.waiting = [];
    this.held = 0;
  }
}

/** The folder of an `<input webkitdirectory>`, whose files have their path below the folder that was chosen. */
export function chosen(files: Iterable<File>): { name: string; folder: Folder } | null {
  type Tree = Map<string, Tree | File>;
  const root: Tree = new Map();
  let name = '';
  for (const file of files) {
    const [top, ...path] = file.webkitRelativePath.split('/');
    if (!top || path.length === 0) continue;
    name = top;
    let here = root;
    for (const each of path.slice(0, -1)) {
      const next = here.get(each);
      if (next instanceof Map) here = next;
      else here.set(each, (here = new Map()));
    }
    here.set(path.at(-1)!, file);
  }
  const folderOf = (tree: Tree): Folder => ({
    children: async () =>
      [...tree].map(([own, each]) => ({
        name: own,
        folder: each instanceof Map ? folderOf(each) : null,
        file: async () => each as File,
      })),
  });
  return name === '' ? null : { name, folder: folderOf(root) };
}

/** The folder that was dropped; null when what was dropped is none. Its entries are taken before the event ends. */
export function dropped(items: DataTransferItemList): { name: string; folder: Folder } | null {
  for (const item of items) {
    const found = item.webkitGetAsEntry();
    if (found?.isDirectory) return { name: found.name, folder: onDisk(found as FileSystemDirectoryEntry) };
  }
  return null;
}

function onDisk(directory: FileSystemDirectoryEntry): Folder {
  return {
    children: async () => {
      const reader = directory.createReader();
      const found: FileSystemEntry[] = [];
      for (;;) {
        const more = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
        if (more.length === 0) break;
        found.push(...more);
      }
      return found.map((each) => ({
        name: each.name,
        folder: each.isDirectory ? onDisk(each as FileSystemDirectoryEntry) : null,
        file: () => new Promise<File>((done, failed) => (each as FileSystemFileEntry).file(done, failed)),
      }));
    },
  };
}
