/** The address that the service listens on, and who can reach it. */

import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { type RushesError, usageError } from '../../errors.js'
import { isLoopback } from '../../host/http.js'
import { describeReason, errorCode } from '../../host/system-error.js'
import type { NodeRole } from '../names.js'

export interface Address {
  readonly host: string
  readonly port: number
}

export interface Listening {
  readonly host: string
  /** Without a slash at the end. */
  readonly url: string
}

/**
 * Listens for a moment. A service calls this before it opens its data, since the key of a first start is shown only once, and
 * only after the service listens. Throws as `listenOn` does.
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

/** Port 0: a free port. Throws `RushesError` (usage) when it cannot listen; it names the flag of the port. */
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
  /** Undefined: the service does not listen. */
  readonly host: string | undefined
  readonly publicUrl: string | undefined
  readonly trustedProxies: readonly string[]
  readonly role: NodeRole
}

/**
 * A service on loopback is private to this machine, unless an option says that a proxy forwards to it. A worker
 * renders runs that another node accepted from any client.
 */
export const isOpenToOthers = ({ host, publicUrl, trustedProxies, role }: Exposure): boolean =>
  role !== 'all' ||
  (host !== undefined && (!isLoopback(host) || publicUrl !== undefined || trustedProxies.length > 0))

/** The host as part of a URL; for a wildcard address, loopback. */
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
