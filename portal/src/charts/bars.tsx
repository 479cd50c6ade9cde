import { BASE, HEIGHT, percentOf, TOP } from './chart.tsx';

export type Bar = {
  /** The slot in full, such as `Fri 20`. */
  name: string;
  /** Below the slot; empty for slots without a label. */
  label: string;
  value: number;
  text: string;
  /** The same in the period before. */
  before?: { value: number; text: string };
  /** Failures, stacked on the value. */
  trouble?: number;
};

/** From this number of bars on, only the highest one and failures have a text, because all would overlap. */
const TOO_MANY = 9;

type Props = {
  bars: readonly Bar[];
  /** Draws every bar as a failure. */
  allTrouble?: boolean;
};

/** Bars with their values on them. */
export function Bars({ bars, allTrouble = false }: Props) {
  const totals = bars.map(({ value, trouble = 0, before }) => Math.max(value + trouble, before?.value ?? 0));
  const highest = Math.max(1, ...totals);
  const slot = 1 / bars.length;
  const heightOf = (value: number) => (value / highest) * (BASE - TOP);
  const many = bars.length >= TOO_MANY;
  const mostAt = totals.indexOf(Math.max(...totals));
  return (
    <>
      <line className="base" x1="0" x2="100%" y1={BASE + 0.5} y2={BASE + 0.5} />
      {bars.map((bar, at) => {
        const left = at * slot;
        const isLast = at === bars.length - 1;
        const middle = percentOf(left + slot / 2);
        const paired = bar.before !== undefined;
        const [x, width] = paired ? [left + slot * 0.52, slot * 0.34] : [left + slot * 0.2, slot * 0.6];
        const top = BASE - heightOf(bar.value);
        const trouble = bar.trouble ?? 0;
        const troubleTop = top - heightOf(trouble) - (trouble > 0 && bar.value > 0 ? 2 : 0);
        const hasText = !many || (at === mostAt && totals[at]! > 0);
        return (
          <g key={bar.name} className="slot">
            <title>{describe(bar)}</title>
            <rect className="hit" x={percentOf(left)} y="0" width={percentOf(slot)} height={HEIGHT} rx="4" />
            {bar.before && bar.before.value > 0 && (
              <rect
                className="before"
                x={percentOf(left + slot * 0.14)}
                y={BASE - heightOf(bar.before.value)}
                width={percentOf(slot * 0.32)}
                height={heightOf(bar.before.value)}
                rx="2"
              />
            )}
            {bar.value > 0 && (
              <rect
                className={allTrouble ? 'trouble' : 'now'}
                x={percentOf(x)}
                y={top}
                width={percentOf(width)}
                height={heightOf(bar.value)}
                rx="2"
              />
            )}
            {trouble > 0 && (
              <rect
                className="trouble"
                x={percentOf(x)}
                y={troubleTop}
                width={percentOf(width)}
                height={heightOf(trouble)}
                rx="1.5"
              />
            )}
            {hasText && (
              <text
                className="value"
                x={percentOf(x + width / 2)}
                y={Math.max(12, troubleTop - 6)}
                textAnchor={anchor(at, bars.length, many)}
              >
                {bar.text}
              </text>
            )}
            {bar.label !== '' && (
              <text
                x={many ? percentOf(isLast ? left + slot : left) : middle}
                y={BASE + 18}
                textAnchor={many ? (isLast ? 'end' : 'start') : 'middle'}
              >
                {bar.label}
              </text>
            )}
          </g>
        );
      })}
    </>
  );
}

/** Texts of the outer bars stay inside the drawing. */
function anchor(at: number, length: number, many: boolean): 'start' | 'middle' | 'end' {
  if (!many) return 'middle';
  if (at < 2) return 'start';
  return at > length - 3 ? 'end' : 'middle';
}

function describe({ name, text, before, trouble }: Bar): string {
  const parts = [
    text,
    trouble === undefined ? '' : `${trouble} failed`,
    before ? `before ${before.text}` : '',
  ];
  return `${name}: ${parts.filter(Boolean).join(', ')}`;
}
