import { lazy, Suspense, useEffect, useState } from 'react';
import { Icon } from '../components/icon.tsx';

const PaletteDialog = lazy(async () => ({ default: (await import('./palette-dialog.tsx')).PaletteDialog }));

/** The button of the palette, which Ctrl+K or Cmd+K opens too. */
export function CommandPalette() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen(true);
    };
    window.addEventListener('keydown', listen);
    return () => window.removeEventListener('keydown', listen);
  }, []);
  return (
    <>
      <button type="button" className="goto" onClick={() => setOpen(true)}>
        <Icon name="search" />
        <span>Go to …</span>
        <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
      {open && (
        <Suspense fallback={null}>
          <PaletteDialog onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
