import { useQuery } from '@tanstack/react-query';
import { statsQuery } from '../../api/queries.ts';
import { count, counted } from '../../components/format.ts';
import { useInSight } from '../../components/use-in-sight.ts';

const WIDTH = 192;
const HEIGHT = 36;

/** Delivered and failed attempts of 24 hours, one bar per bucket. */
export function Sparkline({ endpointId }: { endpointId: string }) {
  const [ref, inSight] = useInSight();
  const { data } = useQuery({ ...statsQuery(endpointId), enabled: inSight });
  if (!data) return <div className="sparkline" ref={ref} />;
  const delivered = data.reduce((sum, bucket) => sum + bucket.delivered, 0);
  const failed = data.reduce((sum, bucket) => sum + bucket.failed, 0);
  const highest = Math.max(1, ...data.map((bucket) => bucket.delivered + bucket.failed));
  const step = WIDTH / Math.max(1, data.length);
  const high = (value: number) => (value / highest) * HEIGHT;
  return (
    <figure className="sparkline" ref={ref}>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`Last 24 hours: ${counted(delivered, 'attempt')} delivered, ${count(failed)} failed`}
      >
        {data.map((bucket, index) => (
          <g key={bucket.at}>
            <rect
              className="bar-failed"
              x={index * step}
              y={HEIGHT - high(bucket.failed)}
              width={Math.max(1, step - 1)}
              height={high(bucket.failed)}
            />
            <rect
              className="bar-delivered"
              x={index * step}
              y={HEIGHT - high(bucket.failed) - high(bucket.delivered)}
              width={Math.max(1, step - 1)}
              height={high(bucket.delivered)}
            />
          </g>
        ))}
      </svg>
      <figcaption aria-hidden="true">
        24 h: {count(delivered)} delivered, {count(failed)} failed
      </figcaption>
    </figure>
  );
}
