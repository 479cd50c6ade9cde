import { useQuery } from '@tanstack/react-query';
import { statsQuery } from '../../api/queries.ts';
import { count, counted } from '../../components/format.ts';
import { useInSight } from '../../components/use-in-sight.ts';

const WIDTH = 160;
const HEIGHT = 32;

/** Succeeded and failed attempts of 24 hours, one bar per bucket. */
export function Sparkline({ endpointId }: { endpointId: string }) {
  const [ref, inSight] = useInSight();
  const { data } = useQuery({ ...statsQuery(endpointId), enabled: inSight });
  if (!data) return <div className="sparkline" ref={ref} />;
  const succeeded = data.reduce((sum, bucket) => sum + bucket.delivered, 0);
  const failed = data.reduce((sum, bucket) => sum + bucket.failed, 0);
  const highest = Math.max(1, ...data.map((bucket) => bucket.delivered + bucket.failed));
  const step = WIDTH / Math.max(1, data.length);
  const high = (value: number) => (value / highest) * HEIGHT;
  return (
    <figure className="sparkline chart" ref={ref}>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`Last 24 hours: ${counted(succeeded, 'attempt')} succeeded, ${count(failed)} failed`}
      >
        {data.map((bucket, index) => (
          <g key={bucket.at}>
            <rect
              className="now"
              x={index * step}
              y={HEIGHT - high(bucket.delivered)}
              width={Math.max(1, step - 0.5)}
              height={high(bucket.delivered)}
            />
            <rect
              className="trouble"
              x={index * step}
              y={HEIGHT - high(bucket.delivered) - high(bucket.failed)}
              width={Math.max(1, step - 0.5)}
              height={high(bucket.failed)}
            />
          </g>
        ))}
      </svg>
      <figcaption aria-hidden="true">
        {counted(succeeded + failed, 'attempt')}, {count(failed)} failed
      </figcaption>
    </figure>
  );
}
