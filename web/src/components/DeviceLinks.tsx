/** How the devices of a node are linked: a matrix, as `nvidia-smi topo -m` prints it, with its words explained. */

import type { Node } from '../api/types';
import { shortNode } from '../lib/format';
import { kinds, link } from '../lib/links';
import { wide } from '../lib/wide';
import { nodes as texts } from '../texts/english/nodes';
import { fill } from '../texts/fill';

export function DeviceLinks({ node }: { node: Node }) {
  const { links, devices } = node;
  const found = kinds(links);
  if (found.length === 0) return null;
  const number = (at: number) => devices[at]?.index ?? at;
  return (
    <section aria-label={fill(texts.linksOf, { name: shortNode(node.name) })} className="pt-3">
      <h2 className="label pb-1">{texts.linksBetweenDevices}</h2>
      <div {...wide} className="overflow-x-auto">
        <table className="border-collapse text-xs" aria-label={texts.linksBetweenDevices}>
          <thead>
            <tr>
              <th className="px-2 py-1 text-left font-medium text-muted">{texts.number}</th>
              {links.map((_, column) => (
                <th key={column} scope="col" className="num px-2 py-1 font-medium text-muted">
                  {number(column)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {links.map((row, at) => (
              <tr key={at}>
                <th scope="row" className="num px-2 py-1 font-medium text-muted">
                  {number(at)}
                </th>
                {row.map((quality, other) => (
                  <Cell key={other} self={at === other} quality={quality} names={fill(texts.between, { one: number(at), other: number(other) })} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <ul aria-label={texts.whatLinksMean} className="flex flex-wrap gap-x-4 gap-y-1 pt-1.5 text-2xs text-muted">
        {found.map(({ short, words }) => (
          <li key={short}>
            <span className="font-mono text-text">{short}</span> {words}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Cell({ self, quality, names }: { self: boolean; quality: number; names: string }) {
  const found = self ? null : link(quality);
  const words = self ? undefined : fill(texts.linkOf, { names, words: found ? found.words : texts.notKnown });
  const ground = found && found.strength === 1 ? 'var(--accent-ground)' : 'var(--ground)';
  return (
    <td title={words} className="border border-line px-2 py-1 text-center font-mono text-2xs" style={{ background: ground }}>
      {self ? <span className="text-muted">–</span> : (found?.short ?? <span className="text-muted">?</span>)}
    </td>
  );
}
