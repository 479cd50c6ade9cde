import type { Session } from '../api/types.ts';

type Color = readonly [red: number, green: number, blue: number];

/** Minimum contrast of text to its background (WCAG 2.2, AA), with a margin because colors are rounded. */
const READABLE = 4.6;
/** The worst backgrounds for text in both schemes: `--bad-ground` and `--off-ground` of styles/base.css. */
const DARKEST_OF_LIGHT: Color = [0xfd, 0xea, 0xea];
const LIGHTEST_OF_DARK: Color = [0x2b, 0x31, 0x3a];
const BLACK: Color = [0, 0, 0];
const WHITE: Color = [255, 255, 255];
const STEPS = 50;

/** Relative luminance of a color, 0 to 1 (WCAG 2.2). */
function luminance(color: Color): number {
  const [r, g, b] = color.map((channel) => {
    const share = channel / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one: Color, other: Color): number {
  const [darker, lighter] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (lighter + 0.05) / (darker + 0.05);
}

/** The color nearest to `accent`, on the way to `end`, that is readable on `ground`. */
function readable(accent: Color, ground: Color, end: Color): Color {
  for (let step = 0; step < STEPS; step += 1) {
    const mixed = accent.map((channel, at) =>
      Math.round(channel + ((end[at]! - channel) * step) / STEPS),
    ) as unknown as Color;
    if (contrast(mixed, ground) >= READABLE) return mixed;
  }
  return end;
}

const css = (color: Color): string =>
  `#${color.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;

/**
 * Applies the portal team's accent if it is a color `#rrggbb`. Fills use it unchanged, with readable text on it. Links,
 * focus rings and marks darken or lighten it as their background requires.
 */
export function applyBranding({ branding }: Session): void {
  const match = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(branding?.accent ?? '');
  if (!match) return;
  const accent: Color = [parseInt(match[1]!, 16), parseInt(match[2]!, 16), parseInt(match[3]!, 16)];
  const { style } = document.documentElement;
  style.setProperty('--accent-fill', match[0]);
  style.setProperty('--on-accent', contrast(accent, BLACK) > contrast(accent, WHITE) ? '#000' : '#fff');
  const light = css(readable(accent, DARKEST_OF_LIGHT, BLACK));
  const dark = css(readable(accent, LIGHTEST_OF_DARK, WHITE));
  style.setProperty('--accent', `light-dark(${light}, ${dark})`);
}
