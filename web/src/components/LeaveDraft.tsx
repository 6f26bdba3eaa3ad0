/** Asks before a page is left whose draft was not applied. */

import { draft as texts } from '../texts/english/configuration';
import { Dialog } from './Dialog';

interface Props {
  title: string;
  /** The button that stays. */
  stay: string;
  onStay: () => void;
  onLeave: () => void;
}

export function LeaveDraft({ title, stay, onStay, onLeave }: Props) {
  return (
    <Dialog title={title} onClose={onStay}>
      <p className="text-sm text-muted">{texts.onlyHere}</p>
      <div className="flex justify-end gap-2 pt-5">
        <button type="button" data-first className="btn" onClick={onStay}>
          {stay}
        </button>
        <button type="button" className="btn btn-grave" onClick={onLeave}>
          {texts.discard}
        </button>
      </div>
    </Dialog>
  );
}
