/** A `Fetch` that calls the app without a port: for `--local` and for tests. */
import type { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { onAbort, raceAbort } from '../../host/abort.js'
import { type Fetch, HttpFailure, type HttpRequest, type HttpResponse } from '../../host/http.js'

export interface InProcessOptions {
  readonly app: FastifyInstance
  isClosed(): boolean
  /** The path of the public URL, which is removed as a reverse proxy would; mostly empty. */
  readonly prefix: string
}

export const createInProcessFetch =
  ({ app, isClosed, prefix }: InProcessOptions): Fetch =>
  async (request) => {
    request.signal?.throwIfAborted()
    if (isClosed()) throw new HttpFailure('the connection was refused', { sent: false, code: 'ECONNREFUSED' })
    const answer = await orAborted(ask(app, request, prefix), request.signal)
    const { headers, stream } = answer
    return {
      status: answer.statusCode,
      header(name) {
        const value = headers[name.toLowerCase()]
        return Array.isArray(value) ? value.join(', ') : value?.toString()
      },
      body: bodyOf(stream(), request.signal),
      discard: () => discard(stream()),
    }
  }

function ask(app: FastifyInstance, { method, url, headers, body }: HttpRequest, prefix: string) {
  const path = `${url.pathname}${url.search}`
  return app.inject({
    method,
    url: path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path,
    headers: { host: url.host, ...headers },
    ...(body === undefined ? {} : { payload: Buffer.from(body) }),
    payloadAsStream: true,
  })
}

/** Rejects when the signal is aborted; the service still handles the request. */
async function orAborted<Answer extends { stream(): Readable }>(
  answer: Promise<Answer>,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  answer.then(
    (late) => signal?.aborted && discard(late.stream()),
    () => {},
  )
  return await raceAbort(answer, signal)
}

async function* bodyOf(
  stream: Readable,
  signal: AbortSignal | undefined,
): HttpResponse['body'] & AsyncGenerator {
  const forget = onAbort(signal, () => stream.destroy(signal?.reason))
  try {
    for await (const chunk of stream) yield chunk as Uint8Array
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    throw new HttpFailure('the connection was closed', { sent: true, code: 'ECONNRESET', cause: error })
  } finally {
    forget()
  }
}

function discard(stream: Readable): void {
  stream.on('error', () => {})
  stream.destroy()
}
