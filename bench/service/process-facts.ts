import { readdirSync, readFileSync } from 'node:fs';

/** Linux counts CPU time in hundredths of a second, whatever the kernel's own tick is. */
const TICKS_PER_SECOND = 100;

/** Of a process, or of a process and its children. */
export interface MemoryUse {
  /** Resident, shared pages counted in full. */
  readonly rssMb: number;
  /** Resident, each shared page divided by those who share it: the figure that adds up. */
  readonly pssMb: number;
}

/** User and system time of a process so far; null where there is no /proc. */
export function cpuSecondsOf(pid: number): number | null {
  const fields = statOf(pid);
  return fields && (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** As `cpuSecondsOf`, with all below it, those that have ended included. */
export function cpuSecondsOfTree(pid: number): number | null {
  const fields = statOf(pid);
  if (!fields) return null;
  const own = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND;
  return childrenOf(pid).reduce((sum, child) => sum + (cpuSecondsOfTree(child) ?? 0), own);
}

export function memoryOf(pid: number): MemoryUse | null {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    const kb = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1]);
    return { rssMb: kb('Rss') / 1_024, pssMb: kb('Pss') / 1_024 };
  } catch {
    return null;
  }
}

export function memoryOfTree(pid: number): MemoryUse | null {
  const all = [pid, ...childrenOf(pid)].map(memoryOf).filter((use) => use !== null);
  if (all.length === 0) return null;
  return {
    rssMb: all.reduce((sum, use) => sum + use.rssMb, 0),
    pssMb: all.reduce((sum, use) => sum + use.pssMb, 0),
  };
}

function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((candidate) => Number(statOf(candidate)?.[1]) === pid);
}

/** The fields of /proc/pid/stat from the state on; the name before it may hold spaces. */
function statOf(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}
