import { useSearch } from '@tanstack/react-router';
import { useSession } from '../api/session.ts';
import type { Mode } from '../api/types.ts';

export const MODE_NAMES: Record<Mode, string> = { sandbox: 'Sandbox', live: 'Live' };

/** The mode of the whole screen. It is stored in the address; a mode outside the session is ignored. */
export function useMode(): Mode {
  const { modes } = useSession();
  const { mode } = useSearch({ strict: false });
  return mode !== undefined && modes.includes(mode) ? mode : (modes[0] ?? 'sandbox');
}
