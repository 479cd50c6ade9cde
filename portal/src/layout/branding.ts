import type { Session } from '../api/types.ts';

/**
 * Applies the portal team's accent if it is a color `#rrggbb`. The styles derive readable links, focus rings and button
 * texts from it.
 */
export function applyBranding({ branding }: Session): void {
  const accent = branding?.accent ?? '';
  if (/^#[0-9a-f]{6}$/i.test(accent)) document.documentElement.style.setProperty('--brand', accent);
}
