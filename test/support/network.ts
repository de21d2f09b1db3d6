/** Real connections on loopback, which close with the test, or with the file if `beforeAll` opened them. */
import { once } from 'node:events'
import type { AddressInfo, Server, Socket } from 'node:net'
import { createNetwork, type NetworkOptions } from '../../src/host/undici.js'
import { whenOver } from './after-file.js'
import { createManualClock } from './clock.js'

/** Opens the network of the program, by default without a proxy and with a clock that stands still. */
export function openNetwork(options: Partial<NetworkOptions> = {}) {
  const network = createNetwork({ env: {}, clock: createManualClock(), ...options })
  whenOver(() => network.close())
  return network
}

/** Lets a server listen, also one of HTTP. Returns its port, which is free. */
export async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket)).listen(0, '127.0.0.1')
  whenOver(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
