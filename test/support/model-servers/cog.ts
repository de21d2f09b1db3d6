/** A Cog server: one prediction at a time, within its request; it forgets a prediction when it ends. */
import { ONE_PIXEL_PNG } from '../engines.js'
import { createModelServer, type ModelServer, type ServerAnswer } from './http.js'

interface CogServer extends ModelServer {
  /** Ids of the predictions that were started, in order. */
  readonly started: readonly string[]
  readonly canceled: readonly string[]
  /** Ends the prediction that runs. */
  finish(fields?: object): void
}

/** `isInstant`: whether a prediction ends at once. Else a test ends it. */
export async function createCogServer({ isInstant = true }: { isInstant?: boolean } = {}) {
  const started: string[] = []
  const canceled: string[] = []
  let running: { readonly id: string; end(fields: object): void } | undefined
  const success = { status: 'succeeded', output: dataUri(ONE_PIXEL_PNG) }

  const server: ModelServer = await createModelServer(async ({ method, path }): Promise<ServerAnswer> => {
    if (path === '/health-check') return { body: { status: running === undefined ? 'READY' : 'BUSY' } }
    const [, id = '', last] = /^\/predictions\/([^/]+)(?:\/(cancel))?$/.exec(path) ?? []
    if (method === 'POST' && last === 'cancel') {
      if (running?.id !== id) return { status: 404, body: {} }
      canceled.push(id)
      running.end({ status: 'canceled' })
      return { body: {} }
    }
    if (method !== 'PUT') return { status: 404, body: { detail: 'Not Found' } }
    if (running?.id === id) return { status: 202, body: { id, status: 'processing' } }
    if (running !== undefined) return { status: 409, body: { error: 'Already running a prediction' } }
    started.push(id)
    const fields = isInstant
      ? success
      : await new Promise<object>((resolve) => {
          running = { id, end: resolve }
        })
    running = undefined
    return { body: { id, ...fields } }
  })
  return Object.assign(server, {
    ...{ started, canceled },
    finish: (fields: object = success) => running?.end(fields),
  }) satisfies CogServer
}

export const dataUri = (bytes: Buffer): string => `data:image/png;base64,${bytes.toString('base64')}`
