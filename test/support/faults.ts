/**
 * Adds faults to a service, in the syntax of `serve --fault` (docs/faults.md): a proxy on a real port, or a wrapper of
 * `Fetch` without one. Both record the client's requests, and the requests that reached the service.
 *
 *     const proxy = await createFaultyProxy(service.url, ['create:lose::1'])
 *     const ran = await rushes(service.with({ RUSHES_BASE_URL: proxy.url }), ['run', 'image', 'a fox'])
 *     expect(ran.code).toBe(13)
 *     expect(proxy.reached('create')).toBe(1)
 *     proxy.next('output', 'reset:1000') // applies only to the next output
 */
import { Agent, createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { type Clock, systemClock } from '../../src/host/clock.js'
import {
  createResponse,
  type FaultOutcome,
  type FaultResponse,
} from '../../src/service/faults/apply-fault.js'
import { sendOutcome } from '../../src/service/http/fault-hooks.js'
import { createControl, type FaultControl, type Seen } from './faults-control.js'

export { type FaultyFetch, withFaults } from './faults-fetch.js'
export type { FaultControl, Seen }

export interface FaultyProxy extends FaultControl {
  /** URL of the proxy, with the path of the target's base URL. */
  readonly url: string
}

/**
 * Starts a proxy for a base URL. Replaces the service's URLs in JSON responses by the proxy's, so that outputs pass
 * through it too. Closes when the test ends.
 */
export async function createFaultyProxy(
  target: string,
  specs: readonly string[] = [],
  clock: Clock = systemClock,
): Promise<FaultyProxy> {
  const to = new URL(target)
  const agent = new Agent({ keepAlive: false })
  const { control, faults, note } = createControl(specs, clock)
  const used = new WeakSet<Socket>()

  const server = createServer((request, response) => {
    const { method = '', url: path = '', socket } = request
    const noted = note(method, path)
    const end = new AbortController()
    response.once('close', () => end.abort(new Error('the connection is closed')))
    const upstream = createUpstream({ request, to, agent, ownOrigin: origin(), noted })
    const exchange = { signal: end.signal, ...upstream }
    const encounter = faults.intercept({ method, path, reused: used.has(socket) })
    used.add(socket)
    const outcome: Promise<FaultOutcome> =
      encounter?.respond(exchange) ?? upstream.ask().then((answer) => ({ kind: 'answer', answer }))
    outcome.then((each) => sendOutcome(each, response)).catch(() => socket.destroy())
  })
  const origin = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    agent.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return Object.assign(control, { url: `${origin()}${to.pathname.replace(/\/$/, '')}` })
}

interface Upstream {
  readonly request: IncomingMessage
  readonly to: URL
  readonly agent: Agent
  readonly ownOrigin: string
  readonly noted: Seen
}

function createUpstream({ request, to, agent, ownOrigin, noted }: Upstream) {
  const open = () =>
    httpRequest({
      agent,
      host: to.hostname,
      port: to.port,
      method: request.method ?? 'GET',
      path: request.url ?? '/',
      headers: { ...request.headers, host: to.host, connection: 'close' },
    })
  return {
    ask: () =>
      new Promise<FaultResponse>((resolve, reject) => {
        const forward = open()
        forward.on('error', reject)
        forward.on('response', (incoming) => answerFrom(incoming, to.origin, ownOrigin).then(resolve, reject))
        request.once('end', () => {
          noted.reached = true
        })
        request.pipe(forward)
      }),
    /** Forwards the first bytes of a request body to the service, then ends the connection. */
    readUpload: (bytes: number) =>
      new Promise<void>((resolve) => {
        const forward = open()
        forward.on('error', () => {})
        const over = () => {
          forward.destroy()
          resolve()
        }
        let left = bytes
        request.on('data', (chunk: Uint8Array) => {
          if (left <= 0) return
          const part = chunk.subarray(0, left)
          left -= part.byteLength
          forward.write(part, () => left <= 0 && over())
        })
        request.once('end', over)
        if (bytes === 0) over()
      }),
  }
}

const HOP_BY_HOP = ['connection', 'keep-alive', 'transfer-encoding']

async function answerFrom(incoming: IncomingMessage, theirs: string, ours: string): Promise<FaultResponse> {
  const headers = Object.fromEntries(
    Object.entries(incoming.headers)
      .filter(([name]) => !HOP_BY_HOP.includes(name))
      .map(([name, value]) => [name, String(value)]),
  )
  const status = incoming.statusCode ?? 502
  if (headers['content-type']?.startsWith('application/json') && incoming.method !== 'HEAD')
    return createResponse(status, headers, (await buffer(incoming)).toString().replaceAll(theirs, ours))
  return { status, headers, body: incoming, discard: () => void incoming.destroy() }
}
