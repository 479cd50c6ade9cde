import { html, type Html, trusted } from './html.js';

/** Symbols of 16 by 16 units, drawn with strokes. */
const SHAPES = {
  clock: '<circle cx="8" cy="8" r="5.5"/><path d="M8 5v3.2l2 1.3"/>',
  down: '<path d="m4 6.2 4 4 4-4"/>',
  download: '<path d="M8 2.5v7.3M4.8 6.8 8 10l3.2-3.2M3 13.5h10"/>',
  globe:
    '<circle cx="8" cy="8" r="5.5"/><path d="M2.5 8h11M8 2.5c2.2 2.3 2.2 8.7 0 11-2.2-2.3-2.2-8.7 0-11z"/>',
  key: '<circle cx="5.5" cy="10.5" r="3"/><path d="m7.6 8.4 5.9-5.9M11 5l2 2"/>',
  linkoff:
    '<path d="M6.7 9.3a2.5 2.5 0 0 0 2.3.7M9.3 6.7a2.5 2.5 0 0 0-2.3-.7M5 7.5 3.8 8.7a2.5 2.5 0 0 0 3.5 3.5l.8-.8M11 8.5l1.2-1.2a2.5 2.5 0 0 0-3.5-3.5l-.8.8M2.5 2.5l11 11"/>',
  ok: '<circle cx="8" cy="8" r="5.5"/><path d="m5.7 8.2 1.6 1.6 3-3.4"/>',
  qr: '<path d="M2.5 2.5h4v4h-4zM9.5 2.5h4v4h-4zM2.5 9.5h4v4h-4z"/><path d="M9.5 9.5h1.3v1.3M13.5 9.5v1.3M9.5 13.5h1.3M13.5 13.5v-.3"/>',
  refresh:
    '<path d="M13 3v3.2H9.8M3 13V9.8h3.2"/><path d="M12.6 6.2A5 5 0 0 0 3.7 5.7M3.4 9.8a5 5 0 0 0 8.9.5"/>',
  warn: '<path d="M8 2.7 14 13H2z"/><path d="M8 6.7v2.8M8 11.3h.01"/>',
  wifi: '<path d="M2 6.5a8.5 8.5 0 0 1 12 0M4.2 8.9a5.4 5.4 0 0 1 7.6 0M6.3 11.2a2.4 2.4 0 0 1 3.4 0M8 13.3h.01"/>',
} as const;

export type IconName = keyof typeof SHAPES;

/** A decoration beside a text, hidden from screen readers. */
export function icon(name: IconName): Html {
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">${trusted(SHAPES[name])}</svg>`;
}
