/** The pages as fragments: `#/runs?status=failed`, `#/runs/<id>`. Pure. */

export const PAGES = ['runs', 'new', 'keys', 'credits', 'account', 'link', 'login'] as const
export type PageName = (typeof PAGES)[number]

export interface Route {
  /** Undefined: no page has this address. */
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
  readonly query?: Query
}

export type Query = Readonly<Record<string, string | number | undefined | null>>

/** A path with a query; values that are undefined, null or empty are left out. */
export function withQuery(path: string, query: Query): string {
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
