/** A proxy for PostgreSQL that breaks connections when a test requests it. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

interface PostgresProxy {
  /** URL of the same database, through the proxy. */
  readonly url: string
  /**
   * Breaks the connection at the next message with this text. The message reaches the server and only its response is
   * lost, unless `reachesServer` is false. With `after`, only once the connection has sent that text.
   */
  breakAt(text: string, reachesServer: boolean, after?: string): void
  /** From the next break on, refuses connections until `comeBack`. */
  stayAway(): void
  comeBack(): void
  /** Number of broken connections. */
  readonly broken: number
  /** Keeps existing connections open without transferring anything. New connections work. */
  freeze(): void
  close(): Promise<void>
}

export async function createPostgresProxy(url: string): Promise<PostgresProxy> {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  let fault: { readonly text: string; readonly reachesServer: boolean; readonly after: string } | undefined
  let broken = 0
  let refusing: 'no' | 'soon' | 'yes' = 'no'
  let frozen = new Set<Socket>()

  const server = createServer((client) => {
    if (refusing === 'yes') return void client.destroy()
    const upstream = connect({ host: target.hostname, port: Number(target.port), noDelay: true })
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        if (!frozen.has(socket)) other.destroy()
      })
    }
    upstream.on('data', (data) => void (frozen.has(client) || client.destroyed || client.write(data)))
    let reached: typeof fault
    client.on('data', (data) => {
      if (frozen.has(client)) return
      if (fault !== undefined && data.includes(fault.after)) reached = fault
      if (fault === undefined || reached !== fault || !data.includes(fault.text))
        return void upstream.write(data)
      const { reachesServer } = fault
      fault = undefined
      broken++
      if (refusing === 'soon') refusing = 'yes'
      if (!reachesServer) return void client.destroy()
      // The server responds to the end of the stream after it has processed everything before it.
      frozen.add(client)
      upstream.end(data)
      upstream.once('close', () => {
        frozen.delete(client)
        client.destroy()
        if (refusing === 'yes') for (const socket of sockets) socket.destroy()
      })
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  return {
    url: Object.assign(new URL(url), { host: `127.0.0.1:${port}` }).href,
    breakAt(text, reachesServer, after = '') {
      fault = { text, reachesServer, after }
    },
    stayAway() {
      refusing = 'soon'
    },
    comeBack() {
      refusing = 'no'
    },
    get broken() {
      return broken
    },
    freeze() {
      frozen = new Set(sockets)
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
