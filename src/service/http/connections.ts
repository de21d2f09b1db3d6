/**
 * Connections of the service: on which address it listens and who can reach it, limits for slow and idle connections, closing,
 * and draining before a stop.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, Server, Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type RushesError, usageError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { isLoopback } from '../../host/http.js'
import { describeReason, errorCode } from '../../host/system-error.js'
import type { NodeRole } from '../rules/names.js'
import { Refusal } from '../rules/refusal.js'

export interface Address {
  readonly host: string
  readonly port: number
}

export interface Listening {
  readonly host: string
  /** Without a trailing slash. On all addresses, the one by which this machine reaches it. */
  readonly url: string
}

/** Whether the service listens on all addresses of the machine. */
export const isOnAllAddresses = (host: string): boolean => ['0.0.0.0', '::', ''].includes(host)

/** Returns the base of the URLs in the response to a request, without a trailing slash. */
export type BaseUrl = (request?: Pick<FastifyRequest, 'host' | 'protocol'>) => string

/**
 * Returns the address that the service listens on. On all addresses, it is the one that the client asked for.
 */
export function addressFor(
  { host, protocol }: Pick<FastifyRequest, 'host' | 'protocol'>,
  listening: Listening | undefined,
): string | undefined {
  const isKnown = listening === undefined || !isOnAllAddresses(listening.host)
  return isKnown || !/^[\w.:[\]-]+$/.test(host) ? listening?.url : `${protocol}://${host}`
}

/**
 * Checks that the service can listen on this address. Call it before the data is opened: the key of a first start is
 * shown only once, and only after the service listens. Throws as `listenOn` does.
 */
export async function checkListening(address: Address, flag = '--port'): Promise<void> {
  const server = createServer()
  try {
    server.listen(address)
    await once(server, 'listening')
  } catch (error) {
    throw cannotListen(address, flag, error)
  }
  server.close()
  await once(server, 'close')
}

/**
 * Port 0 selects a free port. Throws `RushesError` (usage) when the service cannot listen; the message names `flag`.
 */
export async function listenOn(
  app: FastifyInstance,
  { host, port }: Address,
  flag = '--port',
): Promise<Listening> {
  try {
    await app.listen({ host, port })
  } catch (error) {
    throw cannotListen({ host, port }, flag, error)
  }
  const { port: taken } = app.server.address() as AddressInfo
  return { host, url: `http://${reachable(host)}:${taken}` }
}

interface Exposure {
  /** Undefined while the service does not listen. */
  readonly host: string | undefined
  readonly publicUrl: string | undefined
  readonly trustedProxies: readonly string[]
  readonly role: NodeRole
}

/**
 * Whether users of other machines can reach the service. On loopback they cannot, unless an option shows that a proxy
 * forwards to it. A node with a separate role counts as reachable: a worker renders runs that another node accepted
 * from any client.
 */
export const isOpenToOthers = ({ host, publicUrl, trustedProxies, role }: Exposure): boolean =>
  role !== 'all' ||
  (host !== undefined && (!isLoopback(host) || publicUrl !== undefined || trustedProxies.length > 0))

/** Returns the host as part of a URL; loopback for a wildcard address. */
function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

function cannotListen({ host, port }: Address, flag: string, error: unknown): RushesError {
  if (errorCode(error) === 'EADDRINUSE')
    return usageError(
      `Port ${port} on ${host} is in use.`,
      `Choose another one with ${flag}, or use ${flag} 0 for a free port.`,
    )
  return usageError(
    `The service cannot listen on ${host}, port ${port}: ${describeReason(error)}.`,
    `Choose another address with --host and ${flag}.`,
  )
}

export const HTTP_LIMITS = {
  /** Maximum time from the connection, or from the first byte of a request, to the end of the headers. */
  headersMs: 15_000,
  /** Interval of the check for slow headers and requests. */
  checkIntervalMs: 5_000,
  /** Idle time after which a connection is closed. */
  idleMs: 120_000,
  /** Maximum time of one whole request. 15 minutes for a body of 64 MiB are 73 KiB/s. */
  requestMs: 900_000,
  headerBytes: 16_384,
  /** Maximum number of connections. Further ones are closed at once. */
  connections: 1_000,
}

export type HttpLimits = typeof HTTP_LIMITS

/**
 * Returns the client's IP address. Throws `Refusal` (400) if the client has closed the connection, which then has no
 * address; the response is not sent.
 */
export function clientAddress(request: FastifyRequest): string {
  if (request.raw.socket.remoteAddress === undefined)
    throw new Refusal('bad_request', 'The connection was closed.')
  return request.ip
}

/** Time to read the response, for a client that is still sending its request. */
const LINGER_MS = 1_000

/**
 * Closes the connection after this response. Closing at once while the client still sends would reset the connection,
 * and the client could lose the response. So the rest of the request is read and discarded for one second.
 */
export function closeAfter(reply: FastifyReply, clock: Clock): FastifyReply {
  const { socket } = reply.request.raw
  if (socket instanceof Socket)
    // Node calls this when the response is sent.
    socket.destroySoon = () => {
      socket.end()
      socket.once(
        'close',
        clock.alarm(LINGER_MS, () => socket.destroy()),
      )
    }
  return reply.header('connection', 'close')
}

/** Time to drain. Within it, a proxy under load uses each of its open connections. */
const DRAIN_MS = 1_000
const QUIET_MS = 0.3
const MAX_TURNS = 200

/**
 * Stops listening without losing a request, so that nodes behind a proxy can be restarted one by one. Call it in
 * Fastify's `preClose`: after that, Fastify's responses have `Connection: close`.
 *
 * The proxy does not know that this node stops, so the node accepts no new connections. A refused connection is
 * harmless: no request was sent on it, and the proxy uses another node. An open connection gets time for its next
 * request, and is closed after the response. Closing it while it is idle could lose a request in flight.
 */
export async function drain({ server }: FastifyInstance, clock: Clock): Promise<void> {
  if (!server.listening) return
  // The system resets connections that Node has not yet accepted, so close right after an idle turn of the event loop.
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const startedAtMs = performance.now()
    await new Promise(setImmediate)
    if (performance.now() - startedAtMs < QUIET_MS) break
  }
  // `http.Server.close` would also close idle connections.
  Server.prototype.close.call(server)
  await clock.sleep(DRAIN_MS)
}
