/**
 * A thin server on loopback between a tool and the local service. It speaks the service's own interface, that of replicate
 * and that of fal's queue, translates each request into exactly one request to the service, hands a refusal through, and
 * counts. Outputs are fetched from the service itself: they do not count against its limit.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

interface Run {
  readonly id: string
  readonly status: 'queued' | 'processing' | 'succeeded' | 'failed'
  readonly output: { readonly urls: readonly string[] } | null
  readonly error: { readonly message: string } | null
}

interface Answer {
  readonly status: number
  readonly body: unknown
}

/** One request in somebody's interface: what it is for the service, and how the run is told in return. */
interface Dialect {
  readonly pattern: RegExp
  /** The input of a create, from the request's body. Without it the request is a look. */
  readonly inputOf?: (body: Record<string, unknown>) => unknown
  readonly tell: (run: Run) => Answer
}

const REPLICATE_STATUS = {
  queued: 'starting',
  processing: 'processing',
  succeeded: 'succeeded',
  failed: 'failed',
}
const FAL_STATUS = {
  queued: 'IN_QUEUE',
  processing: 'IN_PROGRESS',
  succeeded: 'COMPLETED',
  failed: 'COMPLETED',
}

const prediction = (run: Run) => ({
  id: run.id,
  status: REPLICATE_STATUS[run.status],
  output: run.output?.urls ?? null,
  error: run.error?.message ?? null,
})

/** The first that fits. The last group of a pattern is the run's id. */
const DIALECTS: readonly Dialect[] = [
  {
    pattern: /^POST \/api\/v1\/runs$/,
    inputOf: ({ input }) => input,
    tell: (run) => ({ status: 201, body: run }),
  },
  { pattern: /^GET \/api\/v1\/runs\/([^/]+)$/, tell: (run) => ({ status: 200, body: run }) },
  {
    pattern: /^POST \/v1\/models\/acme\/still-1\/predictions$/,
    inputOf: ({ input }) => input,
    tell: (run) => ({ status: 201, body: prediction(run) }),
  },
  { pattern: /^GET \/v1\/predictions\/([^/]+)$/, tell: (run) => ({ status: 200, body: prediction(run) }) },
  {
    pattern: /^POST \/fal\/acme\/still-1$/,
    inputOf: (body) => body,
    tell: (run) => ({ status: 200, body: { request_id: run.id, status: 'IN_QUEUE' } }),
  },
  {
    pattern: /^GET \/fal\/acme\/still-1\/requests\/([^/]+)\/status$/,
    tell: (run) => ({ status: 200, body: { request_id: run.id, status: FAL_STATUS[run.status] } }),
  },
  {
    pattern: /^GET \/fal\/acme\/still-1\/requests\/([^/]+)$/,
    tell: (run) =>
      run.status === 'failed'
        ? { status: 500, body: { detail: run.error?.message } }
        : { status: 200, body: { images: run.output?.urls.map((url) => ({ url })) } },
  },
]

export interface Adapter {
  readonly url: string
  /** Requests to the service, how many of them it refused with 429, and the runs it accepted. */
  readonly counts: { requests: number; refused: number; readonly accepted: string[] }
  end(): Promise<void>
}

/** `losesAnswers`: of so many accepted creates the answer never arrives; the connection is reset instead. */
export async function startAdapter(service: string, losesAnswers = 0): Promise<Adapter> {
  const counts: Adapter['counts'] = { requests: 0, refused: 0, accepted: [] }
  let toLose = losesAnswers

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const line = `${request.method} ${new URL(request.url ?? '', 'http://localhost').pathname}`
    const dialect = DIALECTS.find(({ pattern }) => pattern.test(line))
    const body = await text(request)
    if (dialect === undefined) return answer(response, { status: 404, body: { detail: line } })

    const id = dialect.pattern.exec(line)?.[1]
    const { inputOf } = dialect
    counts.requests++
    const heard = await fetch(`${service}/api/v1/runs${inputOf === undefined ? `/${id}` : ''}`, {
      method: request.method ?? 'GET',
      headers: {
        authorization: `Bearer ${request.headers.authorization?.split(' ')[1]}`,
        'content-type': 'application/json',
      },
      ...(inputOf && { body: JSON.stringify({ model: 'acme/still-1', input: inputOf(JSON.parse(body)) }) }),
    })
    const told = await heard.json()
    if (heard.status === 429) counts.refused++
    if (!heard.ok) return answer(response, { status: heard.status, body: told })
    if (inputOf !== undefined) {
      counts.accepted.push(told.id)
      if (toLose-- > 0) return void request.socket.resetAndDestroy()
    }
    answer(response, dialect.tell(told))
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => request.socket.resetAndDestroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    async end() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

function answer(response: ServerResponse, { status, body }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
