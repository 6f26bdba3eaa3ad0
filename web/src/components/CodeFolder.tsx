/** A folder of code for the job: chosen or dropped, packed without what its ignore file leaves out, and sent. */

import { useEffect, useRef, useState, type DragEvent } from 'react';
import { dropCode, sendCode } from '../api/codeupload';
import { chosen, dropped, pack, Unpackable, type Folder, type Packed } from '../lib/codefolder';
import { BadIgnoreFile } from '../lib/ignore';
import { ApiError } from '../api/client';
import { submit as texts } from '../texts/english/submit';
import { counted } from '../texts/fill';

export interface SentCode {
  digest: string;
  folder: string;
}

type State =
  | { at: 'none' }
  | { at: 'packing'; name: string; files: number }
  | { at: 'sending'; name: string; packed: Packed; done: number }
  | { at: 'sent'; name: string; packed: Packed }
  | { at: 'failed'; name: string; why: string; packed?: Packed };

interface Props {
  /** Gets the code when the server has it, and null when it is taken away. */
  onCode: (code: SentCode | null) => void;
  onBusy: (busy: boolean) => void;
  /** Whether the job file names other code, which then counts. */
  unused: boolean;
}

export function CodeFolder({ onCode, onBusy, unused }: Props) {
  const [state, setState] = useState<State>({ at: 'none' });
  const [over, setOver] = useState(false);
  const work = useRef(new AbortController());
  const input = useRef<HTMLInputElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const cleared = useRef(false);
  useEffect(() => () => work.current.abort(), []);
  useEffect(() => {
    if (state.at === 'none' && cleared.current) button.current?.focus(); // it was disabled until now
    cleared.current = false;
  }, [state.at]);

  const run = async (name: string, job: (signal: AbortSignal) => Promise<void>) => {
    work.current.abort();
    const { signal } = (work.current = new AbortController());
    onBusy(true);
    onCode(null);
    try {
      await job(signal);
    } catch (error) {
      if (signal.aborted) return;
      setState((before) => ({ at: 'failed', name, why: said(error), packed: before.at === 'sending' ? before.packed : undefined }));
    }
    if (!signal.aborted) onBusy(false);
  };
  const send = async (name: string, packed: Packed, signal: AbortSignal) => {
    setState({ at: 'sending', name, packed, done: 0 });
    await sendCode(packed.blob, packed.digest, (done) => !signal.aborted && setState({ at: 'sending', name, packed, done }), signal);
    setState({ at: 'sent', name, packed });
    onCode({ digest: packed.digest, folder: name });
  };
  const take = (found: { name: string; folder: Folder } | null) => {
    if (!found) {
      work.current.abort();
      onBusy(false);
      onCode(null);
      setState({ at: 'failed', name: '', why: texts.folderFilesChoose });
      return;
    }
    const { name, folder } = found;
    void run(name, async (signal) => {
      setState({ at: 'packing', name, files: 0 });
      const packed = await pack(folder, (files) => files % 100 === 0 && setState({ at: 'packing', name, files }), signal);
      await send(name, packed, signal);
    });
  };
  const clear = () => {
    work.current.abort();
    if (state.at === 'sending') void dropCode(state.packed.digest);
    setState({ at: 'none' });
    onCode(null);
    onBusy(false);
    cleared.current = true;
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    take(dropped(event.dataTransfer.items));
  };
  const busy = state.at === 'packing' || state.at === 'sending';
  return (
    <div
      role="group"
      aria-label={texts.code}
      className={`mt-4 border border-dashed p-3 text-sm ${over ? 'border-accent' : 'border-line-strong'}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <input
        ref={(element) => {
          input.current = element;
          element?.setAttribute('webkitdirectory', '');
        }}
        type="file"
        multiple
        hidden
        aria-label={texts.folderOfCode}
        onChange={(event) => {
          const { files } = event.target;
          if (files) take(chosen(files));
          event.target.value = '';
        }}
      />
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <button ref={button} type="button" className="btn" disabled={busy} onClick={() => input.current?.click()}>
          {state.at === 'none' ? texts.chooseFolderCode : texts.chooseAnotherFolder}
        </button>
        {state.at === 'none' && <span className="text-muted">{texts.dropHereWhat}</span>}
        {state.at === 'failed' && state.packed && (
          <button type="button" className="btn" onClick={() => void run(state.name, (signal) => send(state.name, state.packed!, signal))}>
            {texts.goOnSending}
          </button>
        )}
        {state.at !== 'none' && (
          <button type="button" className="btn" onClick={clear}>
            {busy ? texts.cancel : texts.submitWithoutIt}
          </button>
        )}
      </div>
      {state.at === 'sending' && <Bar done={state.done} size={state.packed.blob.size} />}
      <p role="status" className={state.at === 'none' ? 'sr-only' : 'pt-2 break-words'}>
        {told(state)}
        {state.at === 'sent' && unused && ' '}
        {state.at === 'sent' && unused && texts.fileNamesOther}
      </p>
    </div>
  );
}

/** How much of the archive the server has. The sentence below it says so in words when that is done. */
function Bar({ done, size }: { done: number; size: number }) {
  const percent = size === 0 ? 100 : Math.floor((done / size) * 100);
  return (
    <div role="progressbar" aria-label={texts.codeSent} aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100} className="mt-2 h-2 border border-line-strong">
      <div className="h-full bg-accent" style={{ width: `${percent}%` }} />
    </div>
  );
}

function told(state: State): string {
  if (state.at === 'none') return '';
  if (state.at === 'failed') return state.why;
  if (state.at === 'packing') return counted(texts.packingFilesSo, state.files, { name: state.name });
  return counted(state.at === 'sending' ? texts.sendingFiles : texts.hasFiles, state.packed.files, { name: state.name, size: size(state.packed.blob.size) });
}

const size = (count: number): string => (count < 2 ** 20 ? `${Math.ceil(count / 1024)} KiB` : `${(count / 2 ** 20).toFixed(1)} MiB`);

function said(error: unknown): string {
  if (error instanceof ApiError || error instanceof Unpackable || error instanceof BadIgnoreFile) return error.message;
  return texts.folderCouldPacked;
}
