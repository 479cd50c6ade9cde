import { useSearch } from '@tanstack/react-router';
import { useSession } from '../api/session.ts';
import type { Mode } from '../api/types.ts';

export const MODE_NAMES: Record<Mode, string> = { sandbox: 'Sandbox', live: 'Live' };

/** The mode of the whole screen, stored in the address. A mode that the session does not include is ignored. */
export function useMode(): Mode {
  const { modes } = useSession();
  const { mode } = useSearch({ strict: false });
  return mode !== undefined && modes.includes(mode) ? mode : (modes[0] ?? 'sandbox');
}
