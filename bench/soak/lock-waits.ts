import { open, stat } from 'node:fs/promises';

/** A lock that somebody has waited for, longer than the server's `deadlock_timeout`. */
export interface LockWait {
  readonly waitedMs: number;
  /** Such as `ShareLock on transaction 812`. */
  readonly lock: string;
  readonly statement: string;
}

/** Of the server's settings that make it tell of waits. */
export const LOCK_WAIT_SETTINGS = { log_lock_waits: 'on', deadlock_timeout: '100ms' } as const;

interface LogLine {
  readonly message?: string;
  readonly statement?: string;
  readonly application_name?: string;
}

/** Reads what the server has logged since the last look. */
export class LockWaitLog {
  private offset = 0;
  private rest = '';

  constructor(private readonly file: string) {}

  async read(): Promise<readonly LockWait[]> {
    const size = (await stat(this.file).catch(() => null))?.size ?? 0;
    if (size <= this.offset) return [];
    const handle = await open(this.file);
    try {
      const { buffer, bytesRead } = await handle.read(
        Buffer.alloc(size - this.offset),
        0,
        size - this.offset,
        this.offset,
      );
      this.offset += bytesRead;
      const lines = (this.rest + buffer.toString('utf8', 0, bytesRead)).split('\n');
      this.rest = lines.pop()!;
      return lines.flatMap((line) => (line === '' ? [] : toLockWait(JSON.parse(line) as LogLine)));
    } finally {
      await handle.close();
    }
  }
}

/** `process 7 acquired ShareLock on transaction 812 after 231.4 ms`; what still waits is told again when it has the lock. */
function toLockWait({ message = '', statement = '', application_name = '' }: LogLine): LockWait[] {
  const acquired = /^process \d+ acquired (.+) after ([\d.]+) ms/.exec(message);
  if (!acquired) return [];
  const text = statement.replace(/\s+/g, ' ').trim().slice(0, 120);
  return [{ waitedMs: Number(acquired[2]), lock: acquired[1]!, statement: `${application_name}: ${text}` }];
}
