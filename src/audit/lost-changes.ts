import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { AUDIT_LOGGED } from './audit-log.js';
import { AuditRepository } from './audit.repository.js';

/** A change as logged by the process that made it. */
export interface LoggedChange {
  readonly id: string;
  readonly at: Date;
  readonly action: string;
  readonly subjectId: string;
  readonly partnerId: string | null;
  readonly actor: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Changes found in a log. */
export interface ReadChanges {
  /** Number of logged changes, including those still in the table. */
  readonly logged: number;
  /** Oldest first. */
  readonly lost: readonly LoggedChange[];
}

/** Allowance for process clocks; changes still in the table are excluded anyway. */
const LOOK_BACK_MS = 3_600_000;

/** Finds changes missing from the audit log because the database was restored to an earlier time (D54). */
@Injectable()
export class LostChanges {
  constructor(private readonly entries: AuditRepository) {}

  /** Reads log lines, one JSON object each; skips other lines. */
  async read(lines: Readable, since: Date): Promise<ReadChanges> {
    const fromMs = since.getTime() - LOOK_BACK_MS;
    const logged = new Map<string, LoggedChange>();
    for await (const line of createInterface({ input: lines, crlfDelay: Infinity })) {
      const change = toChange(line);
      if (change && change.at.getTime() >= fromMs) logged.set(change.id, change);
    }
    const known = await this.entries.idsOf([...logged.keys()]);
    const lost = [...logged.values()]
      .filter(({ id }) => !known.has(id))
      .sort((a, b) => a.at.getTime() - b.at.getTime());
    return { logged: logged.size, lost };
  }
}

function toChange(line: string): LoggedChange | null {
  if (!line.includes(AUDIT_LOGGED)) return null;
  try {
    // A log collector may have added a prefix to the object.
    const entry = JSON.parse(line.slice(line.indexOf('{'))) as Record<string, unknown>;
    const { event, auditId, time, action, subjectId, partnerId, actor, details } = entry;
    const at = new Date(String(time));
    if (event !== AUDIT_LOGGED || typeof auditId !== 'string' || Number.isNaN(at.getTime())) return null;
    return {
      id: auditId,
      at,
      action: String(action),
      subjectId: String(subjectId),
      partnerId: typeof partnerId === 'string' ? partnerId : null,
      actor: String(actor),
      details: typeof details === 'object' && details !== null ? { ...details } : {},
    };
  } catch {
    return null;
  }
}
