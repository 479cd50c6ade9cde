import { useEffect, useState } from 'react';

/** Whether an element is on the screen, or nearly. Invisible data need not be fetched. */
export function useInSight<E extends Element>(): [ref: (element: E | null) => void, inSight: boolean] {
  const [element, setElement] = useState<E | null>(null);
  const [inSight, setInSight] = useState(false);
  useEffect(() => {
    if (!element) return;
    const observer = new IntersectionObserver(([entry]) => setInSight(entry?.isIntersecting ?? false), {
      rootMargin: '200px',
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return [setElement, inSight];
}
