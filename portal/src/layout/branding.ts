import type { Session } from '../api/types.ts';

/** The share of light that a colour gives back, 0 to 1 (WCAG 2.2, relative luminance). */
function luminance([red, green, blue]: [number, number, number]): number {
  const [r, g, b] = [red, green, blue].map((channel) => {
    const share = channel / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** The accent of the portal team, if it is a colour `#rrggbb`; the text upon it is what can be read there. */
export function applyBranding({ branding }: Session): void {
  const match = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(branding?.accent ?? '');
  if (!match) return;
  const light = luminance([parseInt(match[1]!, 16), parseInt(match[2]!, 16), parseInt(match[3]!, 16)]);
  const { style } = document.documentElement;
  style.setProperty('--accent-fill', match[0]);
  // Black reads better than white on everything lighter than this.
  style.setProperty('--on-accent', light > 0.179 ? '#000' : '#fff');
}
