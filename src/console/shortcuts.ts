/** Keyboard shortcuts on all pages: `g` and a letter opens a page, `?` shows the list of shortcuts. */
import { useEffect } from 'preact/hooks'
import { linkTo, navigate, type PageName } from './routes.js'

export interface Shortcut {
  readonly keys: readonly string[]
  readonly label: string
}

const PAGE_KEYS: Readonly<Record<string, PageName>> = {
  r: 'runs',
  n: 'new',
  k: 'keys',
  c: 'credits',
  u: 'users',
  a: 'account',
}

export const SHORTCUTS: readonly Shortcut[] = [
  { keys: ['g', 'r'], label: 'Go to Runs' },
  { keys: ['g', 'n'], label: 'Go to New run' },
  { keys: ['g', 'k'], label: 'Go to API keys' },
  { keys: ['g', 'c'], label: 'Go to Credits' },
  { keys: ['g', 'u'], label: 'Go to Users' },
  { keys: ['g', 'a'], label: 'Go to Account' },
  { keys: ['/'], label: 'Search, where the page has a search field' },
  { keys: ['j', 'k'], label: 'Go to the next or the previous run' },
  { keys: ['←', '→', '↑', '↓'], label: 'Move between runs, from a run that has the focus' },
  { keys: ['Ctrl', 'Enter'], label: 'Create the run, in the form' },
  { keys: ['Esc'], label: 'Leave a field, so that keys are shortcuts again' },
  { keys: ['?'], label: 'Show this list' },
]

/** Maximum time between `g` and the second key. */
const MAX_PAUSE_MS = 1_500

/** Fields that take keys as text. */
const FIELDS = 'input:not([type="radio"], [type="checkbox"]), textarea, select'

const fieldOf = ({ target }: KeyboardEvent): HTMLElement | null =>
  target instanceof HTMLElement ? target.closest<HTMLElement>(FIELDS) : null

/** Returns false if the key is text input, has a modifier, or belongs to an open dialog. */
export const isShortcut = (event: KeyboardEvent): boolean =>
  !(event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) &&
  fieldOf(event) === null &&
  document.querySelector('dialog[open]') === null

export function useShortcuts(showList: () => void): void {
  useEffect(() => {
    let startedAt = Number.NEGATIVE_INFINITY
    const onKey = (event: KeyboardEvent) => {
      // After Escape in a field, keys are shortcuts again instead of text.
      if (event.key === 'Escape' && !event.isComposing && document.querySelector('dialog[open]') === null)
        fieldOf(event)?.blur()
      if (!isShortcut(event)) return
      const page = PAGE_KEYS[event.key]
      const isSecond = event.timeStamp - startedAt < MAX_PAUSE_MS
      startedAt = event.key === 'g' ? event.timeStamp : Number.NEGATIVE_INFINITY
      if (isSecond && page !== undefined) {
        // Stops pages from handling the `k` of `g k` as "previous run".
        event.preventDefault()
        navigate(linkTo(page))
      } else if (event.key === '?') showList()
      else if (event.key === '/') focusSearch(event)
    }
    // Listens in the capture phase, to run before the listeners of the pages.
    document.addEventListener('keydown', onKey, true)
    return () => document.removeEventListener('keydown', onKey, true)
  }, [showList])
}

function focusSearch(event: KeyboardEvent): void {
  const field = document.querySelector<HTMLInputElement>('main input[type="search"]')
  if (field === null) return
  event.preventDefault()
  field.focus()
}
