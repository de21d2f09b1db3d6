/** The kind of a request by its method and path, which is all that a proxy knows. */
import { RUNS_PATH } from '../../protocol/routes.js'
import { OUTPUTS_PATH } from '../stored-run.js'
import type { RequestKind } from './fault.js'

/** Not anchored at the start: a reverse proxy may add a path before the service's. */
const RUNS = new RegExp(`${RUNS_PATH}/?$`)
const ONE_RUN = new RegExp(`${RUNS_PATH}/([^/]+)$`)
const OUTPUT = new RegExp(`${OUTPUTS_PATH}/[^/]+/.+$`)

const withoutQuery = (path: string): string => path.replace(/\?.*$/s, '')

/** Undefined for requests that faults never touch. */
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

/** A link without the host and the path that a reverse proxy adds, so that it is the same inside and outside. */
export function linkOf(address: string): string {
  const { pathname, search } = new URL(address, 'http://service.invalid')
  return `${pathname.slice(Math.max(0, pathname.indexOf(`${OUTPUTS_PATH}/`)))}${search}`
}
