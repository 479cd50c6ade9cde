import type { Attempt } from '../../api/types.ts';
import { milliseconds } from '../../components/format.ts';

type Phases = NonNullable<Attempt['phases']>;
type Part = { name: string; className: string; ms: number };

const MIN_MS = 0.01;

/** Durations of an attempt's phases. `first_byte_ms` and `total_ms` count from its start, the others are durations. */
function parts(phases: Phases): Part[] {
  const before = (phases.dns_ms ?? 0) + (phases.connect_ms ?? 0) + (phases.tls_ms ?? 0);
  const answered = phases.first_byte_ms ?? phases.total_ms;
  // A phase below the resolution still fills the bar if it is the only one.
  const waited = Math.max(MIN_MS, answered - before);
  const all: Part[] = [
    { name: 'DNS', className: 'phase-dns', ms: phases.dns_ms ?? 0 },
    { name: 'TCP', className: 'phase-tcp', ms: phases.connect_ms ?? 0 },
    { name: 'TLS', className: 'phase-tls', ms: phases.tls_ms ?? 0 },
    { name: 'First byte', className: 'phase-wait', ms: waited },
    { name: 'Rest', className: 'phase-rest', ms: Math.max(0, phases.total_ms - answered) },
  ];
  return all.filter(({ ms }) => ms > 0);
}

export function PhaseBar({ phases }: { phases: Phases }) {
  const shown = parts(phases);
  const total = shown.reduce((sum, { ms }) => sum + ms, 0);
  let left = 0;
  return (
    <figure className="phases">
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        {shown.map(({ name, className, ms }) => {
          const x = (left / total) * 100;
          left += ms;
          return <rect key={name} className={className} x={x} y={0} width={(ms / total) * 100} height={6} />;
        })}
      </svg>
      <figcaption>
        <ul aria-label="Phase times">
          {shown.map(({ name, className, ms }) => (
            <li key={name}>
              <span className={`swatch ${className}`} aria-hidden="true" /> {name} {milliseconds(ms)}
            </li>
          ))}
          {phases.dns_ms === null && phases.connect_ms === null && <li>reused an open connection</li>}
        </ul>
      </figcaption>
    </figure>
  );
}
