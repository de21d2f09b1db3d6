/** A way to a database that a test can cut, while others still reach the database. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

export interface DatabaseRelay {
  /** Of the same database, through the relay. */
  readonly url: string
  /** Ends all connections and refuses further ones. */
  cut(): void
}

/** Call within a test. */
export async function createDatabaseRelay(url: string): Promise<DatabaseRelay> {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one)
      one.pipe(other)
      one.on('error', () => {})
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  })
  const cut = () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  onTestFinished(cut)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const own = (server.address() as AddressInfo).port
  return { url: Object.assign(new URL(url), { port: String(own) }).href, cut }
}
