/** Maps pages to URL fragments, such as `#/runs?status=failed` and `#/runs/<id>`. */
import { useLayoutEffect, useState } from 'preact/hooks'
import { percentDecoded } from '../protocol/text.js'

export const PAGES = ['runs', 'new', 'keys', 'credits', 'account', 'link'] as const
export type PageName = (typeof PAGES)[number]

export interface Route {
  /** Undefined for an unknown fragment. */
  readonly page: PageName | undefined
  /** Id of a run, or token of a sign-in link. */
  readonly param: string | undefined
  readonly query: Readonly<Record<string, string>>
}

/** Pages whose fragment can have a parameter after the page name. */
const WITH_PARAM: readonly PageName[] = ['runs', 'link']

export function parseRoute(fragment: string): Route {
  const [path = '', search = ''] = fragment.replace(/^#/, '').split(/\?(.*)/s)
  const parts = path.split('/').filter((part) => part !== '')
  const [name = 'runs', param] = parts
  const page = PAGES.find((each) => each === name)
  const isTooLong = parts.length > (page !== undefined && WITH_PARAM.includes(page) ? 2 : 1)
  return {
    page: isTooLong ? undefined : page,
    param: param === undefined ? undefined : percentDecoded(param),
    query: Object.fromEntries(new URLSearchParams(search)),
  }
}

/** Returns the fragment of a page, for example `linkTo('runs', { param: id })`. Omits undefined and empty values. */
export function linkTo(page: PageName, { param, query = {} }: LinkParts = {}): string {
  const path = param === undefined ? `#/${page}` : `#/${page}/${encodeURIComponent(param)}`
  return withQuery(path, query)
}

export interface LinkParts {
  readonly param?: string
  readonly query?: UrlQuery
}

export type UrlQuery = Readonly<Record<string, string | number | undefined | null>>

/** Appends the query to the path. Omits undefined, null and empty values. */
export function withQuery(path: string, query: UrlQuery): string {
  const entries = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === null || value === '' ? [] : [[name, String(value)]],
  )
  return entries.length === 0 ? path : `${path}?${new URLSearchParams(entries)}`
}

/**
 * Inserts the parameters into a path such as `/api/console/runs/:id`. The result is relative to the document, so that
 * the page also works behind a proxy that adds a path prefix.
 */
export function relativePath(path: string, params: Readonly<Record<string, string | number>> = {}): string {
  return path
    .replace(/^\//, '')
    .replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(params[name] ?? '')))
}

export function useRoute(): Route {
  const [fragment, setFragment] = useState(location.hash)
  // `useEffect` runs after painting, which a hidden tab delays. A change before that would be missed.
  useLayoutEffect(() => {
    const onChange = () => setFragment(location.hash)
    window.addEventListener('hashchange', onChange)
    return () => window.removeEventListener('hashchange', onChange)
  }, [])
  return parseRoute(fragment)
}

/** Opens a fragment returned by `linkTo`. With `replace`, adds no history entry; used for filters. */
export function navigate(fragment: string, { replace = false } = {}): void {
  if (fragment === location.hash) return
  if (!replace) {
    location.hash = fragment
    return
  }
  history.replaceState(null, '', fragment)
  window.dispatchEvent(new HashChangeEvent('hashchange'))
}
