import { BASE, HEIGHT, percentOf, TOP } from './chart.tsx';

export type Point = {
  /** Place from left to right, 0 to 1. */
  x: number;
  /** Height from the base line, 0 to 1. */
  y: number;
};

type Props = {
  points: readonly Point[];
  /** Where the line is expected to go from its last point. */
  ahead?: Point;
  /** A height to compare with. */
  guide?: number;
  base?: number;
  height?: number;
};

const place = ({ x, y }: Point, base: number) => `${x * 100} ${base - y * (base - TOP)}`;

/** A line over an area, with a mark at its end. */
export function Line({ points, ahead, guide, base = BASE, height = HEIGHT }: Props) {
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last) return null;
  const path = `M${points.map((point) => place(point, base)).join('L')}`;
  const yOf = (y: number) => base - y * (base - TOP);
  return (
    <>
      {guide !== undefined && <line className="guide" x1="0" x2="100%" y1={yOf(guide)} y2={yOf(guide)} />}
      <svg x="0" y="0" width="100%" height={height} viewBox={`0 0 100 ${height}`} preserveAspectRatio="none">
        <path className="area" d={`${path}L${last.x * 100} ${base}L${first.x * 100} ${base}z`} />
        <path className="line" d={path} />
        {ahead && <path className="line ahead" d={`M${place(last, base)}L${place(ahead, base)}`} />}
      </svg>
      <line className="base" x1="0" x2="100%" y1={base + 0.5} y2={base + 0.5} />
      <circle className="dot" cx={percentOf(last.x)} cy={yOf(last.y)} r="3.5" />
    </>
  );
}
