import type { CSSProperties } from 'react';
import type { Attempt, CurrentAttempt } from '../../api/types.ts';
import { milliseconds } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { inWords, useNow } from '../../components/time.tsx';

type Phases = NonNullable<Attempt['phases']>;
type Kind = 'passed' | 'failed' | 'never' | 'running';
type Part = { name: string; kind: Kind; text: string; share: number };

/** Widths have a minimum, because a phase of 1 ms must be readable beside one of 60 s. */
const MIN_SHARE = 4;

/** Names of the phases in their order, with the name of the phase in errors. */
const ORDER = [
  ['DNS', 'dns_ms', /^dns/],
  ['Connect', 'connect_ms', /^connect|^target/],
  ['TLS', 'tls_ms', /^tls/],
] as const;

/**
 * The phases as reached or not. `first_byte_ms` and `total_ms` count from the start of the attempt, the others are
 * durations.
 */
function partsOf(phases: Phases, failed: boolean, error: string | null): Part[] {
  const parts: Part[] = [];
  let before = 0;
  let ended = false;
  for (const [name, field, pattern] of ORDER) {
    const ms = phases[field];
    const isCause = failed && error !== null && pattern.test(error);
    if (ms === null && !isCause) continue;
    before += ms ?? 0;
    const spent = ms ?? Math.max(0, phases.total_ms - before);
    parts.push(
      isCause
        ? { name, kind: 'failed', text: `${milliseconds(spent)}, failed`, share: spent }
        : { name, kind: 'passed', text: milliseconds(spent), share: spent },
    );
    ended ||= isCause;
  }
  if (ended) return [...parts, { name: 'Response', kind: 'never', text: 'Not reached', share: 0 }];
  const answered = phases.first_byte_ms ?? phases.total_ms;
  const waited = Math.max(0, answered - before);
  const isLost = failed && phases.first_byte_ms === null;
  parts.push({
    name: 'First byte',
    kind: isLost ? 'failed' : 'passed',
    text: isLost ? `${milliseconds(waited)}, failed` : milliseconds(waited),
    share: waited,
  });
  if (!isLost) {
    const rest = Math.max(0, phases.total_ms - answered);
    parts.push({ name: 'Rest', kind: 'passed', text: milliseconds(rest), share: rest });
  }
  return parts;
}

function Bar({ parts, label }: { parts: readonly Part[]; label: string }) {
  const total = Math.max(
    1,
    parts.reduce((sum, { share }) => sum + share, 0),
  );
  return (
    <ul className="phases" aria-label={label}>
      {parts.map(({ name, kind, text, share }) => (
        <li
          key={name}
          className={kind === 'passed' ? undefined : kind}
          style={{ '--ms': Math.max(MIN_SHARE, (share / total) * 100) } as CSSProperties}
        >
          <strong>
            {kind === 'failed' && <Icon name="close" />}
            {name}
          </strong>
          {text}
        </li>
      ))}
    </ul>
  );
}

/** The phases of an attempt that has ended, and their times. */
export function PhaseBar({ attempt, phases }: { attempt: Attempt; phases: Phases }) {
  const failed = attempt.outcome === 'failed' && attempt.status_code === null;
  return (
    <>
      <Bar label="Phase times" parts={partsOf(phases, failed, attempt.error)} />
      {phases.dns_ms === null && phases.connect_ms === null && (
        <p className="hint">We reused an open connection.</p>
      )}
    </>
  );
}

/** Says in words which phase the attempt is in; its phase becomes known after one or two seconds. */
export function activityOf({ phase }: CurrentAttempt): string {
  switch (phase) {
    case 'dns':
      return 'looking up the host';
    case 'connect':
      return 'connecting';
    case 'tls':
      return 'establishing TLS';
    case 'waiting':
      return 'waiting for the response';
    case null:
      return 'no response yet';
  }
}

/** The attempt under way, which counts up. The times of its phases are known only when it has ended. */
export function RunningBar({ attempt }: { attempt: CurrentAttempt }) {
  const ms = useNow() - Date.parse(attempt.started_at);
  const text = `Running for ${inWords(Math.max(0, ms))}, ${activityOf(attempt)}`;
  const parts: Part[] = [{ name: `Attempt ${attempt.number}`, kind: 'running', text, share: 1 }];
  return <Bar label="Running attempt" parts={parts} />;
}
