/** Which request this is, by its method and path alone: a proxy knows no more. */
import { RUNS_PATH } from '../../protocol/routes.js'
import { OUTPUTS_PATH } from '../stored-run.js'
import type { RequestKind } from './fault.js'

/** A reverse proxy may have put a path of its own before the service's. */
const RUNS = new RegExp(`${RUNS_PATH}/?$`)
const ONE_RUN = new RegExp(`${RUNS_PATH}/([^/]+)$`)
const OUTPUT = new RegExp(`${OUTPUTS_PATH}/[^/]+/.+$`)

const withoutQuery = (path: string): string => path.replace(/\?.*$/s, '')

/** Undefined for everything that faults leave alone. */
export function requestKindOf(method: string, path: string): RequestKind | undefined {
  const bare = withoutQuery(path)
  if (method === 'POST') return RUNS.test(bare) ? 'create' : undefined
  if (method !== 'GET' && method !== 'HEAD') return undefined
  if (ONE_RUN.test(bare)) return 'status'
  return OUTPUT.test(bare) ? 'output' : undefined
}

export function runIdOf(path: string): string | undefined {
  const [, id] = ONE_RUN.exec(withoutQuery(path)) ?? []
  if (id === undefined) return undefined
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}

/** A link without what a reverse proxy put before it: the same from inside and from outside. */
export function linkOf(address: string): string {
  const { pathname, search } = new URL(address, 'http://service.invalid')
  return `${pathname.slice(Math.max(0, pathname.indexOf(`${OUTPUTS_PATH}/`)))}${search}`
}
