import { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** Requests of one connection that wait for an earlier one; clients send one at a time, benchmarks ten. */
const MAX_WAITING = 100

interface Line {
  waiting: number
  /** Resolves when the last request that arrived is answered. */
  last: Promise<void>
}

/**
 * Answers the requests of a connection one after the other, so that a client that sends thousands ahead gets no more turns
 * than any other, and closes the connection when too many wait. Register it before every other hook.
 */
export function limitPipelining(app: FastifyInstance): void {
  const lines = new WeakMap<Socket, Line>()
  app.addHook('onRequest', (request, reply, goOn) => {
    const { socket } = request.raw
    if (!(socket instanceof Socket)) return goOn()
    const line = lines.get(socket) ?? { waiting: 0, last: Promise.resolve() }
    lines.set(socket, line)
    const isFirst = line.waiting === 0
    const before = line.last
    line.waiting++
    line.last = new Promise((resolve) =>
      reply.raw.once('close', () => {
        line.waiting--
        resolve()
      }),
    )
    if (isFirst) return goOn()
    if (line.waiting > MAX_WAITING || socket.destroyed) {
      reply.hijack()
      return void socket.destroy()
    }
    void before.then(() => goOn())
  })
}
