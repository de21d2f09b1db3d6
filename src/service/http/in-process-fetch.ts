/** A `Fetch` that calls the app without a port, for `--local` and for tests. */
import type { FastifyInstance, LightMyRequestResponse as Response } from 'fastify'
import { onAbort, raceAbort } from '../../host/abort.js'
import { type Fetch, HttpFailure, type HttpResponse } from '../../host/http.js'

interface InProcessOptions {
  readonly app: FastifyInstance
  isClosed(): boolean
}

export const createInProcessFetch =
  ({ app, isClosed }: InProcessOptions): Fetch =>
  async ({ method, url, headers, body, signal }) => {
    signal?.throwIfAborted()
    if (isClosed()) throw new HttpFailure('the connection was refused', { sent: false, code: 'ECONNREFUSED' })
    const answer = app.inject({
      method,
      url: `${url.pathname}${url.search}`,
      headers: { host: url.host, ...headers },
      ...(body === undefined ? {} : { payload: Buffer.from(body) }),
      payloadAsStream: true,
    })
    // After an abort, the service still handles the request. Discard its response.
    answer.then(
      (response) => signal?.aborted && discard(response),
      () => {},
    )
    const response = await raceAbort(answer, signal)
    const { statusCode, headers: answered } = response
    return {
      status: statusCode,
      header(name) {
        const value = answered[name.toLowerCase()]
        return Array.isArray(value) ? value.join(', ') : value?.toString()
      },
      body: bodyOf(response, signal),
      discard: () => discard(response),
    }
  }

async function* bodyOf(
  response: Response,
  signal: AbortSignal | undefined,
): HttpResponse['body'] & AsyncGenerator {
  const stream = response.stream()
  const removeListener = onAbort(signal, () => stream.destroy(signal?.reason))
  try {
    for await (const chunk of stream) yield chunk as Uint8Array
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    throw new HttpFailure('the connection was closed', { sent: true, code: 'ECONNRESET', cause: error })
  } finally {
    removeListener()
    discard(response)
  }
}

/** Ends both sides. The service closes the file that it sends only when its own side is destroyed. */
function discard(response: Response): void {
  const stream = response.stream()
  stream.on('error', () => {})
  stream.destroy()
  response.raw.res.destroy()
}
