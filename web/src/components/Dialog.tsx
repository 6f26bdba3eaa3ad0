/** The browser's own modal dialog: it keeps the focus inside, begins at what is marked `data-first`, closes by Escape. */

import { useEffect, useRef, type ReactNode } from 'react';

interface Props {
  title: string;
  onClose: () => void;
  children: ReactNode;
}

export function Dialog({ title, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    dialog.current?.querySelector<HTMLElement>('[data-first=true]')?.focus(); // autoFocus is spent before it is shown
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-label={title}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
      className="m-auto w-[min(34rem,calc(100vw-2rem))] rounded-[6px] border border-line-strong bg-raised p-0 text-text shadow-2xl"
    >
      <div className="p-5">
        <h2 className="pb-3 text-base font-semibold">{title}</h2>
        {children}
      </div>
    </dialog>
  );
}
