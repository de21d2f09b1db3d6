/**
 * Attributes of htmx as one typed object. TSX accepts any name with a hyphen (`hx-gett`), so a page writes
 * `{...hx({ get: '/runs', trigger: 'every 2s' })}`: an unknown name does not compile, and what needs `eval` or inline
 * script (`hx-on`, `js:`, filters in brackets) cannot be said.
 */
import type { HTMLAttributes } from 'preact'

declare module 'preact' {
  namespace JSX {
    interface IntrinsicElements {
      'hx-partial': HTMLAttributes
    }
  }
}

type Swap = 'outerHTML' | 'textContent' | 'none'
type Event = 'submit' | 'change' | 'input' | 'intersect' | `every ${number}s`
type Trigger = Event | `${Event} ${'from:#' | 'delay:'}${string}`

export interface Hx {
  readonly get?: string
  readonly post?: string
  readonly trigger?: Trigger | readonly Trigger[]
  readonly target?: string
  readonly select?: string
  readonly swap?: Swap
  /** Fields of other elements that are sent too. */
  readonly include?: string
  /** What happens to a request while another of the element is under way. */
  readonly sync?: 'this:drop' | 'this:replace'
  /** `form` sends the names of files in place of the files. */
  readonly encoding?: 'form'
  readonly replaceUrl?: true
}

export function hx({ trigger, encoding, replaceUrl, ...rest }: Hx): Readonly<Record<`hx-${string}`, string>> {
  return {
    ...Object.fromEntries(Object.entries(rest).map(([name, value]) => [`hx-${name}`, value])),
    ...(trigger !== undefined && { 'hx-trigger': [trigger].flat().join(', ') }),
    ...(encoding && { 'hx-encoding': 'application/x-www-form-urlencoded' }),
    ...(replaceUrl && { 'hx-replace-url': 'true' }),
  }
}
