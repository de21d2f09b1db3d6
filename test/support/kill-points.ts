/**
 * A proxy for the real service that stops at a chosen point of a run, so that the program can be killed exactly there.
 * A kill after a number of milliseconds could hit any point.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type KillPoint =
  /** The proxy has received the whole create. The service has not. */
  | { readonly at: 'create arrived' }
  /** The service has accepted the run. The proxy holds its response. */
  | { readonly at: 'create accepted' }
  /** `afterMs` milliseconds after the response was forwarded. */
  | { readonly at: 'create answered'; readonly afterMs: number }
  /** `afterMs` milliseconds after the response to status request `number`, counted from 1. */
  | { readonly at: 'look'; readonly number: number; readonly afterMs: number }
  /** The proxy has forwarded this share of the output, and forwards no more. */
  | { readonly at: 'output'; readonly share: number }

export interface Relay {
  readonly url: string
  /** Starts to watch one run. Returns its requests, and a promise of its kill point. */
  watch(point: KillPoint | undefined): Watch
  close(): void
}

export interface Watch {
  /** Resolves when the kill point is reached. Never resolves without a kill point. */
  readonly reached: Promise<void>
  /** Number of creates received. */
  readonly creates: number
  /** Ids that the service returned, whether or not the program received them. */
  readonly accepted: readonly string[]
}

interface Current {
  readonly point: KillPoint | undefined
  readonly reach: () => void
  creates: number
  looks: number
  readonly accepted: string[]
}

/**
 * `target`: called for each request, because the relay starts before the service, whose own URLs must name the relay.
 */
export async function createRelay(target: () => string): Promise<Relay> {
  let current: Current = { point: undefined, reach() {}, creates: 0, looks: 0, accepted: [] }
  const server = createServer((incoming, outgoing) => {
    outgoing.on('error', () => {})
    void relay(incoming, outgoing, { target: target(), current }).catch(() => outgoing.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    watch(point) {
      let reach = () => {}
      const reached = new Promise<void>((resolve) => {
        reach = resolve
      })
      const now: Current = { point, reach, creates: 0, looks: 0, accepted: [] }
      current = now
      return {
        reached,
        get creates() {
          return now.creates
        },
        accepted: now.accepted,
      }
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

const later = (ms: number, work: () => void): void => void setTimeout(work, ms)

interface Exchange {
  readonly target: string
  readonly current: Current
}

async function relay(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { target, current }: Exchange,
): Promise<void> {
  const { point, reach } = current
  const body = await bytesOf(incoming)
  const isCreate = incoming.method === 'POST'
  const isOutput = incoming.url?.startsWith('/outputs/') === true
  if (isCreate) {
    current.creates++
    if (point?.at === 'create arrived') return reach()
  }
  const answer = await ask(incoming, body, target)
  const bytes = await bytesOf(answer)
  if (isCreate && answer.statusCode === 201) current.accepted.push(JSON.parse(bytes.toString()).id)
  if (isCreate && point?.at === 'create accepted') return reach()
  outgoing.writeHead(answer.statusCode ?? 502, headersOf(answer))
  if (isOutput && point?.at === 'output') {
    outgoing.write(bytes.subarray(0, Math.floor(bytes.length * point.share)), () => later(20, reach))
    return
  }
  outgoing.end(bytes)
  if (isCreate && point?.at === 'create answered') later(point.afterMs, reach)
  if (!isCreate && !isOutput && point?.at === 'look' && ++current.looks === point.number)
    later(point.afterMs, reach)
}

function ask(incoming: IncomingMessage, body: Buffer, target: string): Promise<IncomingMessage> {
  const { method } = incoming
  const { host: _, ...headers } = incoming.headers
  return new Promise((resolve, reject) => {
    request(new URL(incoming.url ?? '/', target), { method, headers }, resolve)
      .on('error', reject)
      .end(body)
  })
}

function headersOf({ rawHeaders }: IncomingMessage): string[] {
  const kept: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (!/^(connection|keep-alive|transfer-encoding)$/i.test(rawHeaders[at] ?? ''))
      kept.push(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '')
  return kept
}

async function bytesOf(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}
