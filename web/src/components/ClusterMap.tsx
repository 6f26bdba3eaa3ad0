/** The face of the portal: every device in its cell, with the job that holds it. */

import type { Rack } from '../lib/cells';
import { holders, hues, joiningLevels } from '../lib/cells';
import { NO_MARKS, type Marks } from '../lib/marks';
import { map as texts } from '../texts/english/map';
import { fill } from '../texts/fill';
import { MarkLegend } from './NodeMarks';
import { NodeRow, tileSize } from './NodeRow';

interface Props {
  racks: Rack[];
  /** The job that stands out; all others step back. */
  lit?: string;
  onLight?: (job: string) => void;
  /** Beside other things: smaller tiles. */
  compact?: boolean;
  /** Whose cells they are, who is a guest, what leaves or is closed. */
  marks?: Marks;
}

export function ClusterMap({ racks, lit = '', onLight, compact = false, marks = NO_MARKS }: Props) {
  const colours = hues(holders(racks).keys());
  const devices = racks.reduce((sum, rack) => sum + rack.devices, 0);
  const engines = new Set(racks.map((rack) => rack.engine)).size;
  const joined = joiningLevels(racks);
  return (
    <div className="min-w-0" data-testid="cluster-map">
      <div className="flex flex-wrap gap-x-10 gap-y-5">
        {racks.map((rack) => (
          <section key={`${rack.engine}/${rack.name}`} aria-label={rack.name} className="min-w-0">
            <h3 className="flex items-baseline gap-2 pb-2 text-xs">
              <span className="font-semibold">
                {engines > 1 && rack.engine !== rack.name ? `${rack.engine} / ` : ''}
                {rack.name}
              </span>
              <span className="text-muted">{rack.level === 'rack' ? '' : rack.level}</span>
              <span className="text-muted">
                {fill(texts.free, { free: rack.free, devices: rack.devices })}
              </span>
            </h3>
            <div className="space-y-1.5">
              {rack.nodes.map((node) => (
                <NodeRow key={node.name} node={node} colours={colours} lit={lit} onLight={onLight} size={tileSize(devices, compact)} marks={marks} />
              ))}
            </div>
          </section>
        ))}
      </div>
      <div className="flex flex-wrap items-center gap-x-5 gap-y-1 pt-4 text-2xs text-muted">
        {joined.length > 0 && (
          <p className="flex items-center gap-2">
            <svg width="22" height="6" aria-hidden>
              <path d="M1.5 1v4h19V1" fill="none" stroke="var(--line-strong)" />
            </svg>
            {fill(texts.joined, { joined: joined.join(texts.or) })}
          </p>
        )}
        <MarkLegend marks={marks} />
      </div>
    </div>
  );
}
