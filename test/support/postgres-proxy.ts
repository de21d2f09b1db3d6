/** A proxy in front of PostgreSQL that breaks connections where a test asks for it. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface PostgresProxy {
  /** The same database, through the proxy. */
  readonly url: string
  /**
   * The next message with this text reaches the server, and the answer to it is lost with the connection. `false`: the message
   * itself is lost.
   */
  breakAt(text: string, reachesServer: boolean): void
  /** From the next break on there are no connections, until `comeBack`. */
  stayAway(): void
  comeBack(): void
  /** How many times it broke. */
  readonly broken: number
  /** Existing connections stay open and carry nothing; new ones work. */
  freeze(): void
  close(): Promise<void>
}

export async function createPostgresProxy(url: string): Promise<PostgresProxy> {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  let fault: { readonly text: string; readonly reachesServer: boolean } | undefined
  let broken = 0
  let away: 'no' | 'soon' | 'yes' = 'no'
  let frozen = new Set<Socket>()

  const server = createServer((client) => {
    if (away === 'yes') return void client.destroy()
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
    client.on('data', (data) => {
      if (frozen.has(client)) return
      if (fault === undefined || !data.includes(fault.text)) return void upstream.write(data)
      const { reachesServer } = fault
      fault = undefined
      broken++
      if (away === 'soon') away = 'yes'
      if (!reachesServer) return void client.destroy()
      // The server answers the end of the stream when it has done everything before it.
      frozen.add(client)
      upstream.end(data)
      upstream.once('close', () => {
        frozen.delete(client)
        client.destroy()
        if (away === 'yes') for (const socket of sockets) socket.destroy()
      })
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  return {
    url: Object.assign(new URL(url), { host: `127.0.0.1:${port}` }).href,
    breakAt(text, reachesServer) {
      fault = { text, reachesServer }
    },
    stayAway() {
      away = 'soon'
    },
    comeBack() {
      away = 'no'
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
