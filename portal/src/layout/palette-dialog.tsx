import { Dialog } from '@base-ui/react/dialog';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState, type KeyboardEvent, type ReactNode } from 'react';
import { get } from '../api/client.ts';
import type { Delivery, Page, SearchHit } from '../api/types.ts';
import { useReturnedFocus } from '../components/dialog.tsx';
import { capitalized, words } from '../components/format.ts';
import { Icon, type IconName } from '../components/icon.tsx';
import { useScreens } from './navigation.tsx';
import { MODE_NAMES, useMode } from './use-mode.ts';

type Choice = { key: string; icon: IconName; name: ReactNode; end?: string; go: () => void };
type Group = { name: string; choices: readonly Choice[] };

/** An id leads to its object. */
const IDS: readonly [pattern: RegExp, name: string, icon: IconName, to: (id: string) => string][] = [
  [/^req_\w+$/, 'Request', 'requests', (id) => `/developers/requests/${id}`],
  [/^ord_\w+$/, 'Order', 'orders', (id) => `/orders/${id}`],
  [/^esim_\w+$/, 'eSIM', 'sim', (id) => `/esims/${id}`],
  [/^top_\w+$/, 'Top-up', 'topup', (id) => `/top-ups/${id}`],
  [/^pkg_\w+$/, 'Package', 'catalog', (id) => `/catalog/${id}`],
  [/^whe_\w+$/, 'Endpoint', 'webhook', (id) => `/developers/webhooks/${id}`],
];
/** Shorter texts would find nothing: the search takes whole references and ids. */
const MIN_TEXT = 3;

const ICONS: Record<SearchHit['type'], IconName> = {
  order: 'orders',
  esim: 'sim',
  topup: 'topup',
  refund_request: 'coin',
  event: 'events',
  delivery: 'send',
  endpoint: 'webhook',
  request: 'requests',
  partner: 'home',
};

const PAGES: Record<Exclude<SearchHit['type'], 'delivery'>, (id: string) => string> = {
  order: (id) => `/orders/${id}`,
  esim: (id) => `/esims/${id}`,
  topup: (id) => `/top-ups/${id}`,
  refund_request: () => '/refunds',
  event: (id) => `/developers/events/${id}`,
  endpoint: (id) => `/developers/webhooks/${id}`,
  request: (id) => `/developers/requests/${id}`,
  partner: () => '/',
};

/** The objects that the text names by id, reference or ICCID, in both modes. */
function useFound(text: string): readonly SearchHit[] {
  const isId = IDS.some(([pattern]) => pattern.test(text));
  const { data } = useQuery({
    queryKey: ['search', text],
    enabled: text.length >= MIN_TEXT && !isId,
    queryFn: async ({ signal }) => (await get<Page<SearchHit>>('search', { q: text }, signal)).data,
    retry: false,
  });
  return data ?? [];
}

function useGroups(text: string): readonly Group[] {
  const navigate = useNavigate();
  const mode = useMode();
  const screens = [{ to: '/', name: 'Home', icon: 'home' } as const, ...useScreens()];
  const found = useFound(text);
  const objects = IDS.filter(([pattern]) => pattern.test(text)).map(([, name, icon, to]): Choice => ({
    key: name,
    icon,
    name: `${name} ${text}`,
    go: () => void navigate({ to: to(text) }),
  }));
  const open = async ({ type, id, mode: of }: SearchHit) => {
    const search = of ? { mode: of } : {};
    if (type !== 'delivery') return navigate({ to: PAGES[type](id), search });
    const { data: delivery } = await get<{ data: Delivery }>(`deliveries/${id}`);
    return navigate({
      to: '/developers/webhooks/$endpointId',
      params: { endpointId: delivery.endpoint_id },
      search: { ...search, delivery: id },
    });
  };
  const choiceOf = (hit: SearchHit): Choice => ({
    key: hit.id,
    icon: ICONS[hit.type],
    name: `${capitalized(words(hit.type)).replace('Esim', 'eSIM')} ${hit.label}`,
    end:
      hit.mode === null || hit.mode === mode
        ? capitalized(words(hit.status ?? ''))
        : `Opens in ${MODE_NAMES[hit.mode]}`,
    go: () => void open(hit),
  });
  const isHere = (hit: SearchHit) => hit.mode === null || hit.mode === mode;
  const other = found.find((hit) => !isHere(hit))?.mode;
  const groups: Group[] = [
    { name: 'By id', choices: objects },
    { name: 'Found', choices: found.filter(isHere).map(choiceOf) },
    {
      name: other ? `In ${MODE_NAMES[other]}` : 'Other mode',
      choices: found.filter((hit) => !isHere(hit)).map(choiceOf),
    },
    {
      name: 'Screens',
      choices: screens
        .filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()))
        .map((screen) => ({
          key: screen.to,
          icon: screen.icon,
          name: screen.name,
          go: () => void navigate({ to: screen.to }),
        })),
    },
  ];
  return groups.filter(({ choices }) => choices.length > 0);
}

/** Opens a screen by its name, or an object by its id, reference or ICCID. */
export function PaletteDialog({ onClose }: { onClose: () => void }) {
  useReturnedFocus();
  return (
    <Dialog.Root
      open
      onOpenChange={(next) => {
        if (!next) onClose();
      }}
    >
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className="palette">
          <Dialog.Title className="hidden">Go to</Dialog.Title>
          <Search onClose={onClose} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function Search({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const [index, setIndex] = useState(0);
  const groups = useGroups(text.trim());
  const choices = groups.flatMap((group) => group.choices);
  const active = Math.min(index, choices.length - 1);

  const take = (choice: Choice | undefined) => {
    if (!choice) return;
    onClose();
    choice.go();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && choices.length > 0) {
      event.preventDefault();
      setIndex((active + step + choices.length) % choices.length);
    }
    if (event.key === 'Enter') {
      event.preventDefault();
      take(choices[active]);
    }
  };

  return (
    <>
      <div className="palette-input">
        <Icon name="search" />
        <input
          role="combobox"
          aria-label="Screen, id, reference or ICCID"
          aria-expanded={choices.length > 0}
          aria-controls="palette-choices"
          aria-activedescendant={choices.length > 0 ? `palette-${active}` : undefined}
          aria-autocomplete="list"
          autoComplete="off"
          spellCheck={false}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setIndex(0);
          }}
          onKeyDown={onKeyDown}
        />
        <kbd aria-hidden="true">Esc</kbd>
      </div>
      <div id="palette-choices" role="listbox" aria-label="Results" className="palette-list">
        {groups.map((group) => (
          <div key={group.name} role="group" aria-label={group.name}>
            <h3 aria-hidden="true">{group.name}</h3>
            {group.choices.map((choice) => {
              const at = choices.indexOf(choice);
              return (
                <div
                  key={choice.key}
                  id={`palette-${at}`}
                  role="option"
                  aria-selected={at === active}
                  onClick={() => take(choice)}
                >
                  <Icon name={choice.icon} />
                  <span>{choice.name}</span>
                  {choice.end !== undefined && <span className="end">{choice.end}</span>}
                </div>
              );
            })}
          </div>
        ))}
      </div>
      {choices.length === 0 && (
        <p className="palette-none" role="status">
          No matches. Enter a screen, a whole id, your reference or an ICCID.
        </p>
      )}
      <p className="palette-foot">
        Finds order, eSIM, top-up, event, delivery, endpoint and request ids, ICCIDs and your references.
      </p>
    </>
  );
}
