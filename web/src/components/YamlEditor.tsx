/** An editor of YAML in colours, with the server's problems at their lines. Tab leaves it; Ctrl-] indents. */

import { yaml } from '@codemirror/lang-yaml';
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { lintGutter, setDiagnostics, type Diagnostic } from '@codemirror/lint';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import CodeMirror, { ExternalChange, type ReactCodeMirrorRef } from '@uiw/react-codemirror';
import { useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, type Ref } from 'react';
import type { Problem } from '../api/types';
import { changeBetween } from '../lib/diff';

const theme = EditorView.theme({
  '&': { backgroundColor: 'var(--sunken)', color: 'var(--text)', fontSize: '13px', height: '100%' },
  '.cm-content': { fontFamily: 'var(--font-mono, ui-monospace, monospace)', caretColor: 'var(--accent)' },
  '.cm-cursor': { borderLeftColor: 'var(--accent)' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--faint)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in oklab, var(--line) 45%, transparent)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-selectionBackground, &.cm-focused .cm-selectionBackground': { background: 'color-mix(in oklab, var(--accent) 28%, transparent) !important' },
  '.cm-tooltip': { backgroundColor: 'var(--raised)', color: 'var(--text)', border: '1px solid var(--line-strong)' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--fail)' },
});

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.comment, tags.lineComment], color: 'var(--faint)', fontStyle: 'italic' },
  { tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: 'var(--muted)' },
]);

const extensions = [
  yaml(),
  theme,
  syntaxHighlighting(colours),
  lintGutter(),
  EditorView.lineWrapping,
];

export interface EditorHandle {
  /** Put the cursor where a problem is. */
  show: (problem: Problem) => void;
}

interface Props {
  value: string;
  /** What is edited, for those who hear the page. */
  label: string;
  ref?: Ref<EditorHandle>;
  className?: string;
  onChange: (text: string) => void;
  problems: readonly Problem[];
  onSubmit: () => void;
}

export function YamlEditor({ value, label, ref, className = '', onChange, problems, onSubmit }: Props) {
  const editor = useRef<ReactCodeMirrorRef>(null);
  const named = useMemo(() => [...extensions, EditorView.contentAttributes.of({ 'aria-label': label })], [label]);
  useImperativeHandle(ref, () => ({
    show: (problem) => {
      const view = editor.current?.view;
      view?.dispatch({ selection: { anchor: place(view, problem).from }, scrollIntoView: true });
      view?.focus();
    },
  }));
  const lines = useMemo(() => value.replace(/\r\n?/g, '\n'), [value]); // as the editor ends them
  // CodeMirror's component would write the whole text anew, after the next pause of who types: the selection and what is typed meanwhile would be lost.
  useLayoutEffect(() => {
    const view = editor.current?.view;
    const changes = view && changeBetween(view.state.doc.toString(), lines);
    if (!changes) return;
    const selection = selected(view);
    if (selection) view.dispatch({ selection });
    view.dispatch({ changes, annotations: ExternalChange.of(true) });
  }, [lines]);
  useEffect(() => {
    const view = editor.current?.view;
    if (view) view.dispatch(setDiagnostics(view.state, problems.map((problem) => place(view, problem))));
  }, [problems]);
  return (
    <div
      className={`min-h-[22rem] grow border border-line-strong outline-accent focus-within:outline-2 ${className}`}
      onKeyDownCapture={(event) => {
        if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault(); // or the editor would begin a new line
        event.stopPropagation();
        onSubmit();
      }}
    >
      <CodeMirror
        ref={editor}
        value={lines}
        onChange={onChange}
        theme="none"
        height="100%"
        className="h-full"
        extensions={named}
        indentWithTab={false}
        basicSetup={{ foldGutter: false, highlightActiveLine: true, autocompletion: false, syntaxHighlighting: false }}
      />
    </div>
  );
}

/** What the browser has selected in the editor, of which it tells the editor a moment later; null without the focus. */
function selected(view: EditorView): { anchor: number; head: number } | null {
  const { anchorNode, anchorOffset, focusNode, focusOffset } = document.getSelection() ?? {};
  if (!view.hasFocus || !anchorNode || !focusNode || !view.contentDOM.contains(anchorNode) || !view.contentDOM.contains(focusNode)) return null;
  return { anchor: view.posAtDOM(anchorNode, anchorOffset), head: view.posAtDOM(focusNode, focusOffset) };
}

/** Where a problem (lines and columns from 1, 0 unknown) stands in the text: from its column to the line's end. */
function place(view: EditorView, { line, column, message }: Problem): Diagnostic {
  const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
  const from = Math.min(at.from + Math.max(column - 1, 0), at.to);
  return { from, to: at.to, severity: 'error', message };
}
