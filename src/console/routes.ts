/** The pages as fragments of the address: `#/runs?status=failed`, `#/runs/<id>`. */
import { useLayoutEffect, useState } from 'preact/hooks'

export const PAGES = ['runs', 'new', 'keys', 'credits', 'account', 'link', 'login'] as const
export type PageName = (typeof PAGES)[number]

export interface Route {
  /** Undefined for an unknown address. */
  readonly page: PageName | undefined
  /** The id of a run, or the token of a link. */
  readonly param: string | undefined
  readonly query: Readonly<Record<string, string>>
}

/** Pages with a part after their name. */
const WITH_PARAM: readonly PageName[] = ['runs', 'link']

export function parseRoute(fragment: string): Route {
  const [path = '', search = ''] = fragment.replace(/^#/, '').split(/\?(.*)/s)
  const parts = path.split('/').filter((part) => part !== '')
  const [name = 'runs', param] = parts
  const page = PAGES.find((each) => each === name)
  const isTooLong = parts.length > (page !== undefined && WITH_PARAM.includes(page) ? 2 : 1)
  return {
    page: isTooLong ? undefined : page,
    param: param === undefined ? undefined : decode(param),
    query: Object.fromEntries(new URLSearchParams(search)),
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The fragment of a page: `linkTo('runs', { param: id })`. Values that are undefined or empty are left out. */
export function linkTo(page: PageName, { param, query = {} }: LinkParts = {}): string {
  const path = param === undefined ? `#/${page}` : `#/${page}/${encodeURIComponent(param)}`
  return withQuery(path, query)
}

export interface LinkParts {
  readonly param?: string
  readonly query?: UrlQuery
}

export type UrlQuery = Readonly<Record<string, string | number | undefined | null>>

/** A path with a query; values that are undefined, null or empty are left out. */
export function withQuery(path: string, query: UrlQuery): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === null || value === '' ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}

/** `/api/console/runs/:id` with its parameters, relative to the document, so that the page works below a prefix. */
export function relativePath(path: string, params: Readonly<Record<string, string | number>> = {}): string {
  return path
    .replace(/^\//, '')
    .replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(params[name] ?? '')))
}

/** The current page. */
export function useRoute(): Route {
  const [fragment, setFragment] = useState(location.hash)
  // A plain effect runs after painting, later in a hidden tab, and would miss an earlier change.
  useLayoutEffect(() => {
    const onChange = () => setFragment(location.hash)
    window.addEventListener('hashchange', onChange)
    return () => window.removeEventListener('hashchange', onChange)
  }, [])
  return parseRoute(fragment)
}

/** Goes to a fragment of `linkTo`. `replace`: without an entry in the history, for filters. */
export function navigate(fragment: string, { replace = false } = {}): void {
  if (fragment === location.hash) return
  if (!replace) {
    location.hash = fragment
    return
  }
  history.replaceState(null, '', fragment)
  window.dispatchEvent(new HashChangeEvent('hashchange'))
}
