/** Listens on an address, and determines who can reach it. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type RushesError, usageError } from '../../errors.js'
import { isLoopback } from '../../host/http.js'
import { describeReason, errorCode } from '../../host/system-error.js'
import type { NodeRole } from '../rules/names.js'

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
