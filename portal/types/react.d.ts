/**
 * The part of React's API that the portal and the packages it uses name. React ships no types of its own, and the portal
 * adds no package for them. Props of elements are those that the portal sets: an unknown one is an error.
 */
declare module 'react' {
  export type Key = string | number | bigint;
  export type ReactNode =
    ReactElement | string | number | bigint | Iterable<ReactNode> | boolean | null | undefined;
  export type JSXElementConstructor<P> = (props: P) => ReactNode | Promise<ReactNode>;
  export interface ReactElement<P = unknown> {
    type: unknown;
    props: P;
    key: string | null;
  }
  export type ReactPortal = ReactElement;

  export interface RefObject<T> {
    current: T;
  }
  export type MutableRefObject<T> = RefObject<T>;
  export type RefCallback<T> = (instance: T | null) => void | (() => void);
  export type Ref<T> = RefCallback<T> | RefObject<T | null> | null;
  export type ForwardedRef<T> = Ref<T>;
  export interface RefAttributes<T> {
    ref?: Ref<T> | undefined;
    key?: Key | null | undefined;
  }
  export type FunctionComponent<P = object> = (props: P) => ReactNode;
  export type FC<P = object> = FunctionComponent<P>;
  export type ComponentType<P = object> = FunctionComponent<P>;
  export type ForwardRefExoticComponent<P> = (props: P) => ReactNode;
  export type NamedExoticComponent<P = object> = (props: P) => ReactNode;
  export type LazyExoticComponent<T> = T;
  export type ElementType = keyof JSX.IntrinsicElements | JSXElementConstructor<never>;
  export type ComponentProps<T extends ElementType> = T extends keyof JSX.IntrinsicElements
    ? JSX.IntrinsicElements[T]
    : T extends JSXElementConstructor<infer P>
      ? P
      : object;
  export type ComponentPropsWithRef<T extends ElementType> = ComponentProps<T>;
  export type ComponentPropsWithoutRef<T extends ElementType> = Omit<ComponentProps<T>, 'ref'>;
  export type PropsWithoutRef<P> = Omit<P, 'ref'>;
  export type PropsWithChildren<P = unknown> = P & { children?: ReactNode | undefined };
  export type ErrorInfo = { componentStack?: string | null };
  export type ErrorRouteComponent = ComponentType;

  export interface SyntheticEvent<T = Element, E = Event> {
    readonly nativeEvent: E;
    readonly currentTarget: EventTarget & T;
    readonly target: EventTarget;
    readonly defaultPrevented: boolean;
    preventDefault(): void;
    stopPropagation(): void;
  }
  export interface MouseEvent<T = Element, E = globalThis.MouseEvent> extends SyntheticEvent<T, E> {
    readonly button: number;
    readonly metaKey: boolean;
    readonly ctrlKey: boolean;
    readonly shiftKey: boolean;
    readonly altKey: boolean;
  }
  export interface KeyboardEvent<T = Element> extends SyntheticEvent<T, globalThis.KeyboardEvent> {
    readonly key: string;
    readonly metaKey: boolean;
    readonly ctrlKey: boolean;
    readonly shiftKey: boolean;
    readonly altKey: boolean;
  }
  export type FocusEvent<T = Element> = SyntheticEvent<T, globalThis.FocusEvent>;
  export type PointerEvent<T = Element> = SyntheticEvent<T, globalThis.PointerEvent>;
  export type TouchEvent<T = Element> = SyntheticEvent<T, globalThis.TouchEvent>;
  export interface ChangeEvent<T = Element> extends SyntheticEvent<T> {
    readonly target: EventTarget & T;
  }
  export type FormEvent<T = Element> = SyntheticEvent<T, SubmitEvent>;
  export type EventHandler<E> = (event: E) => void;
  export type MouseEventHandler<T = Element> = EventHandler<MouseEvent<T>>;
  export type FocusEventHandler<T = Element> = EventHandler<FocusEvent<T>>;
  export type TouchEventHandler<T = Element> = EventHandler<TouchEvent<T>>;
  export type KeyboardEventHandler<T = Element> = EventHandler<KeyboardEvent<T>>;

  export type CSSProperties = { [name: string]: string | number | undefined };

  export interface AriaAndData {
    [name: `aria-${string}`]: string | number | boolean | undefined;
    [name: `data-${string}`]: string | number | boolean | undefined;
  }
  export interface DOMAttributes<T> extends AriaAndData {
    children?: ReactNode | undefined;
    onClick?: MouseEventHandler<T> | undefined;
    onKeyDown?: KeyboardEventHandler<T> | undefined;
    onFocus?: FocusEventHandler<T> | undefined;
    onBlur?: FocusEventHandler<T> | undefined;
    onChange?: EventHandler<ChangeEvent<T>> | undefined;
    onInput?: EventHandler<ChangeEvent<T>> | undefined;
    onSubmit?: EventHandler<FormEvent<T>> | undefined;
    onError?: EventHandler<SyntheticEvent<T>> | undefined;
    onMouseEnter?: MouseEventHandler<T> | undefined;
    onMouseOver?: MouseEventHandler<T> | undefined;
    onMouseLeave?: MouseEventHandler<T> | undefined;
    onTouchStart?: TouchEventHandler<T> | undefined;
  }
  export interface HTMLAttributes<T = HTMLElement> extends DOMAttributes<T> {
    id?: string | undefined;
    className?: string | undefined;
    style?: CSSProperties | undefined;
    role?: string | undefined;
    tabIndex?: number | undefined;
    title?: string | undefined;
    hidden?: boolean | undefined;
    lang?: string | undefined;
    inert?: boolean | undefined;
  }
  export interface ElementAttributes<T> extends HTMLAttributes<T>, RefAttributes<T> {
    accept?: string | undefined;
    alt?: string | undefined;
    autoComplete?: string | undefined;
    autoFocus?: boolean | undefined;
    checked?: boolean | undefined;
    colSpan?: number | undefined;
    cols?: number | undefined;
    dateTime?: string | undefined;
    defaultChecked?: boolean | undefined;
    defaultValue?: string | number | undefined;
    disabled?: boolean | undefined;
    download?: string | boolean | undefined;
    form?: string | undefined;
    height?: number | string | undefined;
    href?: string | undefined;
    htmlFor?: string | undefined;
    inputMode?: string | undefined;
    max?: number | string | undefined;
    maxLength?: number | undefined;
    min?: number | string | undefined;
    name?: string | undefined;
    noValidate?: boolean | undefined;
    open?: boolean | undefined;
    placeholder?: string | undefined;
    preload?: string | undefined;
    readOnly?: boolean | undefined;
    rel?: string | undefined;
    required?: boolean | undefined;
    rows?: number | undefined;
    scope?: string | undefined;
    spellCheck?: boolean | undefined;
    src?: string | undefined;
    step?: number | string | undefined;
    target?: string | undefined;
    type?: string | undefined;
    value?: string | number | undefined;
    width?: number | string | undefined;
  }
  export type AnchorHTMLAttributes<T> = ElementAttributes<T>;
  export type ButtonHTMLAttributes<T> = ElementAttributes<T>;
  export interface SVGAttributes<T = SVGElement> extends DOMAttributes<T>, RefAttributes<T> {
    className?: string | undefined;
    cx?: number | string | undefined;
    cy?: number | string | undefined;
    d?: string | undefined;
    fill?: string | undefined;
    focusable?: boolean | undefined;
    height?: number | string | undefined;
    id?: string | undefined;
    points?: string | undefined;
    preserveAspectRatio?: string | undefined;
    r?: number | string | undefined;
    role?: string | undefined;
    rx?: number | string | undefined;
    stroke?: string | undefined;
    strokeWidth?: number | string | undefined;
    viewBox?: string | undefined;
    width?: number | string | undefined;
    x?: number | string | undefined;
    y?: number | string | undefined;
  }

  export type Dispatch<A> = (value: A) => void;
  export type SetStateAction<S> = S | ((previous: S) => S);
  export function useState<S>(initial: S | (() => S)): [S, Dispatch<SetStateAction<S>>];
  export function useEffect(effect: () => void | (() => void), dependencies?: readonly unknown[]): void;
  export function useLayoutEffect(effect: () => void | (() => void), dependencies?: readonly unknown[]): void;
  export function useMemo<T>(compute: () => T, dependencies: readonly unknown[]): T;
  export function useCallback<T>(callback: T, dependencies: readonly unknown[]): T;
  export function useRef<T>(initial: T): RefObject<T>;
  export function useId(): string;
  export function useContext<T>(context: Context<T>): T;
  export function useSyncExternalStore<T>(subscribe: (onChange: () => void) => () => void, read: () => T): T;
  export interface Context<T> {
    (props: { value: T; children?: ReactNode | undefined }): ReactNode;
    Provider: (props: { value: T; children?: ReactNode | undefined }) => ReactNode;
  }
  export function createContext<T>(initial: T): Context<T>;
  export const StrictMode: (props: { children?: ReactNode | undefined }) => ReactNode;
  export const Suspense: (props: {
    fallback?: ReactNode | undefined;
    children?: ReactNode | undefined;
  }) => ReactNode;
  export const Fragment: (props: {
    children?: ReactNode | undefined;
    key?: Key | null | undefined;
  }) => ReactNode;

  export namespace JSX {
    type ElementType = keyof IntrinsicElements | JSXElementConstructor<never>;
    type Element = ReactElement;
    interface ElementChildrenAttribute {
      children: unknown;
    }
    interface IntrinsicAttributes {
      key?: Key | null | undefined;
    }
    type HtmlElements = {
      [Tag in keyof HTMLElementTagNameMap]: ElementAttributes<HTMLElementTagNameMap[Tag]>;
    };
    type SvgTags = Exclude<keyof SVGElementTagNameMap, keyof HTMLElementTagNameMap>;
    type SvgElements = { [Tag in SvgTags]: SVGAttributes<SVGElementTagNameMap[Tag]> };
    interface IntrinsicElements extends HtmlElements, SvgElements {}
  }
}

declare module 'react/jsx-runtime' {
  export { JSX } from 'react';
  export const jsx: unknown;
  export const jsxs: unknown;
  export const Fragment: unknown;
}

declare module 'react-dom/client' {
  export function createRoot(container: Element): { render(children: import('react').ReactNode): void };
}
