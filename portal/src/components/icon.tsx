/** Outlines in a box of 16 by 16. Each state has its own shape, because color alone must not tell states apart. */
const SHAPES = {
  bad: 'M5.7 2.5h4.6l3.2 3.2v4.6l-3.2 3.2H5.7l-3.2-3.2V5.7zM6.2 6.2l3.6 3.6M9.8 6.2 6.2 9.8',
  book: 'M8 4.2C6.8 3.2 5 2.9 2.5 3v9.3c2.5-.1 4.3.2 5.5 1.2 1.2-1 3-1.3 5.5-1.2V3C11 2.9 9.2 3.2 8 4.2zM8 4.2v9.3',
  catalog: 'M2.5 3h4.2v4.2H2.5zM9.3 3h4.2v4.2H9.3zM2.5 9.3h4.2v4.2H2.5zM9.3 10h4.2M9.3 12.8h2.6',
  check: 'M3.5 8.4l3 3 6-6.6',
  clock: 'M2.5 8a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0M8 5v3.2l2 1.3',
  close: 'M4 4l8 8M12 4l-8 8',
  coin: 'M2.5 8a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0M9.8 6.2c-.4-.6-1-.9-1.8-.9-1 0-1.7.5-1.7 1.3 0 1.9 3.5.8 3.5 2.8 0 .8-.7 1.3-1.8 1.3-.9 0-1.6-.3-2-1M8 4.3v1M8 10.7v1',
  copy: 'M5.8 5.8h7.7v7.7H5.8zM10.2 5.8V2.5H2.5v7.7h3.3',
  doctor: 'M8 2.2 13 4v4c0 3-2.1 5-5 5.9C5.1 13 3 11 3 8V4zM5.8 8l1.6 1.6 2.9-3',
  down: 'M4 6.2l4 4 4-4',
  download: 'M8 2.5v7.3M4.8 6.8 8 10l3.2-3.2M3 13.5h10',
  edit: 'M9.8 3.6l2.6 2.6L6 12.6l-3.2.6.6-3.2z',
  end: 'M4 13.5v-11M4 3.2h7.5L9.8 5.7l1.7 2.5H4',
  events: 'M8.8 2 3.5 9H8l-.8 5 5.3-7H8z',
  fall: 'M4 4l8 8M12 6v6H6',
  filter: 'M2.5 4.5h11M4.5 8h7M6.5 11.5h3',
  home: 'M2.5 7.2 8 2.6l5.5 4.6v5.3a1 1 0 0 1-1 1h-9a1 1 0 0 1-1-1zM6.3 13.5V9.6h3.4v3.9',
  info: 'M2.5 8a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0M8 7.5v3M8 5.3h.01',
  key: 'M2.5 10.6a2.9 2.9 0 1 0 5.8 0a2.9 2.9 0 1 0 -5.8 0M7.5 8.5l5.3-5.3M10.6 5.4l2 2',
  link: 'M6.7 9.3a2.5 2.5 0 0 0 3.5 0l2-2a2.5 2.5 0 0 0-3.5-3.5l-.8.8M9.3 6.7a2.5 2.5 0 0 0-3.5 0l-2 2a2.5 2.5 0 0 0 3.5 3.5l.8-.8',
  live: 'M6.7 8a1.3 1.3 0 1 0 2.6 0a1.3 1.3 0 1 0-2.6 0M8 8h.01M4.2 4.2a5.4 5.4 0 0 0 0 7.6M11.8 4.2a5.4 5.4 0 0 1 0 7.6',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  minus: 'M3.3 8h9.4',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  off: 'M2.5 8a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0M5.5 8h5',
  ok: 'M2.5 8a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0M5.7 8.2l1.6 1.6 3-3.4',
  orders: 'M3.5 2.5h9v11l-2.2-1.3L8 13.5l-2.3-1.3-2.2 1.3zM6 6h4M6 8.8h4',
  out: 'M9.5 2.5h-6a1 1 0 0 0-1 1v9a1 1 0 0 0 1 1h6M7 8h6.5M11 5.5 13.5 8 11 10.5',
  pause: 'M2.5 8a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0M6.6 6.2v3.6M9.4 6.2v3.6',
  phone: 'M5 2h6a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V3a1 1 0 0 1 1-1zM7.2 11.9h1.6',
  plus: 'M8 3.3v9.4M3.3 8h9.4',
  refresh: 'M13 3v3.2H9.8M3 13V9.8h3.2M12.6 6.2A5 5 0 0 0 3.7 5.7M3.4 9.8a5 5 0 0 0 8.9.5',
  requests: 'M2.5 5.2h9.6M9.4 2.5l2.7 2.7-2.7 2.7M13.5 11H4M6.6 8.3 3.9 11l2.7 2.7',
  rise: 'M4 12 12 4M6 4h6v6',
  run: 'M13.5 8A5.5 5.5 0 1 1 8 2.5',
  sandbox: 'M6.3 2.5v3.8L3 12.2a.9.9 0 0 0 .8 1.3h8.4a.9.9 0 0 0 .8-1.3L9.7 6.3V2.5M5.2 2.5h5.6M4.6 9.7h6.8',
  search: 'M2.7 7a4.3 4.3 0 1 0 8.6 0a4.3 4.3 0 1 0 -8.6 0M10.3 10.3l3.2 3.2',
  send: 'M13.7 2.3 2.5 6.4l4.7 2.4 2.4 4.7zM7.2 8.8l3-3',
  signal: 'M3 12.5v-2M6.3 12.5v-4M9.7 12.5v-6.5M13 12.5v-9',
  sim: 'M4 2.5h5l3.5 3.4v6.6a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1v-9a1 1 0 0 1 1-1zM5.7 8h4.1v3H5.7z',
  table: 'M2.5 3h11v10h-11zM2.5 6.3h11M6.3 6.3V13',
  todo: 'M2.5 8a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0',
  topup: 'M2.5 8a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0M8 5.5v5M5.5 8h5',
  trash: 'M3 4.5h10M6.2 4.5v-2h3.6v2M4.3 4.5l.6 9h6.2l.6-9',
  up: 'M4 9.8l4-4 4 4',
  updown: 'M5 6l3-3 3 3M5 10l3 3 3-3',
  wallet:
    'M2.5 4.7a1.4 1.4 0 0 1 1.4-1.4h7.3v2M2.5 4.7v6.6a1.4 1.4 0 0 0 1.4 1.4h8.6a1 1 0 0 0 1-1V6.3a1 1 0 0 0-1-1H3.2M10.8 9h.01',
  warn: 'M8 2.7 14 13H2zM8 6.7v2.8M8 11.3h.01',
  webhook:
    'M6.3 4a1.7 1.7 0 1 0 3.4 0a1.7 1.7 0 1 0 -3.4 0M2.1 11.7a1.7 1.7 0 1 0 3.4 0a1.7 1.7 0 1 0 -3.4 0M10.5 11.7a1.7 1.7 0 1 0 3.4 0a1.7 1.7 0 1 0 -3.4 0M7.2 5.6l-2.5 4.6M8.8 5.6l2.5 4.6M5.6 11.7h4.8',
} as const;

export type IconName = keyof typeof SHAPES;

/** Attributes of the shapes that differ from a plain outline. */
const OWN: Partial<Record<IconName, { strokeDasharray?: string; strokeWidth?: number }>> = {
  todo: { strokeDasharray: '2.2 2.1' },
  more: { strokeWidth: 2.2 },
};

/** A decoration beside text. A button with nothing else needs an `aria-label`. */
export function Icon({ name, spin = false }: { name: IconName; spin?: boolean }) {
  return (
    <svg className={spin ? 'icon spin' : 'icon'} viewBox="0 0 16 16" aria-hidden="true">
      <path d={SHAPES[name]} {...OWN[name]} />
    </svg>
  );
}
