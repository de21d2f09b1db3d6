/** Where the service can be reached, and by whom. */
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { type RushesError, usageError } from '../../errors.js'
import { isLoopback } from '../../host/http.js'

export interface Address {
  readonly host: string
  readonly port: number
}

export interface Listening {
  readonly host: string
  /** Without a slash at the end. */
  readonly url: string
}

/** Port 0 takes a free one. Throws `RushesError` (usage) when it cannot listen there. */
export async function listenOn(app: FastifyInstance, { host, port }: Address): Promise<Listening> {
  try {
    await app.listen({ host, port })
  } catch (error) {
    throw cannotListen(host, port, error)
  }
  const { port: taken } = app.server.address() as AddressInfo
  return { host, url: `http://${reachable(host)}:${taken}` }
}

/** A service on loopback is this machine's own, unless a public URL says that something stands in front of it. */
export const isOpenToOthers = (host: string | undefined, publicUrl: string | undefined): boolean =>
  host !== undefined &&
  (!isLoopback(host) || (publicUrl !== undefined && !isLoopback(new URL(publicUrl).hostname)))

/** The host as part of a URL; one that means every address of this machine is no address to connect to. */
function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

function cannotListen(host: string, port: number, error: unknown): RushesError {
  const code = (error as NodeJS.ErrnoException).code ?? String(error)
  if (code === 'EADDRINUSE')
    return usageError(
      `Port ${port} on ${host} is in use.`,
      'Choose another with --port, or let the system choose with --port 0.',
    )
  return usageError(
    `The service cannot listen on ${host}, port ${port}: ${code}.`,
    'Choose another address with --host and --port.',
  )
}
