/** A Markdown text that somebody else wrote. Pictures are those that came with it: the page asks no other host. */

import { Fragment, useMemo, type ReactNode } from 'react';
import { blocks, type Block, type Inline } from '../lib/markdown';
import { pictureAt } from '../lib/templates';
import { templates as texts } from '../texts/english/templates';
import { fill } from '../texts/fill';

interface Props {
  text: string;
  pictures?: Record<string, string>;
}

export function Markdown({ text, pictures }: Props) {
  const read = useMemo(() => blocks(text), [text]);
  return (
    <div className="space-y-3 text-base break-words">
      {read.map((each, at) => (
        <Drawn key={at} block={each} pictures={pictures} />
      ))}
    </div>
  );
}

function Drawn({ block, pictures }: { block: Block; pictures: Props['pictures'] }) {
  const line = (parts: Inline[]) => <Parts parts={parts} pictures={pictures} />;
  if (block.kind === 'code')
    return (
      <pre tabIndex={0} className="overflow-x-auto rounded-[4px] border border-line bg-sunken p-3 font-mono text-xs">
        {block.text}
      </pre>
    );
  if (block.kind === 'rule') return <hr className="border-line" />;
  if (block.kind === 'heading') return block.level === 1 ? <h2 className="pt-2 text-lg font-semibold">{line(block.parts)}</h2> : <h3 className="pt-1 font-semibold">{line(block.parts)}</h3>;
  if (block.kind === 'quote') return <blockquote className="border-l-[3px] border-line-strong pl-3 text-muted">{line(block.parts)}</blockquote>;
  if (block.kind === 'paragraph') return <p className="max-w-[75ch]">{line(block.parts)}</p>;
  if (block.kind === 'table') return <Table block={block} line={line} />;
  const List = block.ordered ? 'ol' : 'ul';
  return (
    <List start={block.ordered ? block.start : undefined} className={`max-w-[75ch] space-y-1 pl-5 ${block.ordered ? 'list-decimal' : 'list-disc'}`}>
      {block.items.map((each, at) => (
        <li key={at}>{line(each)}</li>
      ))}
    </List>
  );
}

function Table({ block, line }: { block: Extract<Block, { kind: 'table' }>; line: (parts: Inline[]) => ReactNode }) {
  return (
    <div tabIndex={0} role="group" aria-label={texts.table} className="overflow-x-auto">
      <table className="grid-table !w-auto">
        <thead>
          <tr>
            {block.head.map((each, at) => (
              <th key={at}>{line(each)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {block.rows.map((row, at) => (
            <tr key={at}>
              {row.map((each, cell) => (
                <td key={cell}>{line(each)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Parts({ parts, pictures }: { parts: Inline[]; pictures: Props['pictures'] }): ReactNode {
  return parts.map((each, at) => <Fragment key={at}>{drawn(each, pictures)}</Fragment>);
}

function drawn(part: Inline, pictures: Props['pictures']): ReactNode {
  if (part.kind === 'text') return part.text;
  if (part.kind === 'break') return <br />;
  if (part.kind === 'code') return <code className="rounded-[3px] bg-sunken px-1 font-mono text-xs">{part.text}</code>;
  if (part.kind === 'picture') {
    const source = pictureAt(part.address, pictures);
    return source ? <img src={source} alt={part.text} className="inline max-w-full rounded-[4px] border border-line" /> : <span className="text-muted">{fill(texts.picture, { text: part.text || part.address })}</span>;
  }
  const inner = <Parts parts={part.parts} pictures={pictures} />;
  if (part.kind === 'strong') return <strong>{inner}</strong>;
  if (part.kind === 'em') return <em>{inner}</em>;
  return (
    <a href={part.address} target="_blank" rel="noopener noreferrer" className="link">
      {inner}
    </a>
  );
}
