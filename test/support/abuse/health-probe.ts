/**
 * Polls `/healthz` every 50 ms over a separate connection, in a separate process, so that neither the load nor the test
 * delays the measurement. At the same times it polls an empty server in a third process: the maximum of those response
 * times is the noise of the machine. `health-probe <url>`. The message `reset` starts a measurement, `report` ends it.
 */
import { fork } from 'node:child_process'
import { Agent, createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const INTERVAL_MS = 50
const TIMEOUT_MS = 60_000

/** Response times in milliseconds. */
export interface ProbeReport {
  readonly count: number
  readonly failed: number
  readonly maxMs: number
  readonly p99Ms: number
  readonly bareMaxMs: number
}

interface Watched {
  times: number[]
  failed: number
  sinceMs: number
}

function watch(url: string): Watched {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const watched: Watched = { times: [], failed: 0, sinceMs: performance.now() }
  const ask = () =>
    new Promise<boolean>((resolve) => {
      const request = get(url, { agent, timeout: TIMEOUT_MS }, (response) => {
        response.resume()
        response.once('end', () => resolve(response.statusCode === 200))
        response.once('error', () => resolve(false))
      })
      request.once('timeout', () => request.destroy())
      request.once('error', () => resolve(false))
    })
  void (async () => {
    for (;;) {
      watched.sinceMs = performance.now()
      if (!(await ask())) watched.failed++
      const ms = performance.now() - watched.sinceMs
      watched.times.push(ms)
      await sleep(Math.max(0, INTERVAL_MS - ms))
    }
  })()
  return watched
}

/** A request without a response counts with its waiting time so far. */
const timesOf = ({ times, sinceMs }: Watched): number[] => {
  const waitedMs = performance.now() - sinceMs
  return waitedMs > INTERVAL_MS * 2 ? [...times, waitedMs] : times
}

function serveBare(): void {
  const server = createServer((_request, response) => response.end('{"status":"ok"}'))
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
  process.once('disconnect', () => process.exit())
}

function measure(url: string): void {
  const bareServer = fork(process.argv[1] ?? '', ['bare'])
  process.once('disconnect', () => process.exit())
  bareServer.once('message', (port) => {
    const service = watch(url)
    const bare = watch(`http://127.0.0.1:${port}/`)
    process.on('message', (message) => {
      if (message === 'report') {
        const sorted = timesOf(service).sort((a, b) => a - b)
        const report: ProbeReport = {
          count: sorted.length,
          failed: service.failed,
          maxMs: sorted.at(-1) ?? Number.NaN,
          p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
          bareMaxMs: Math.max(...timesOf(bare)),
        }
        process.send?.(report)
      }
      for (const each of [service, bare]) {
        each.times = []
        each.failed = 0
      }
    })
    process.send?.('ready')
  })
}

const [, , target = ''] = process.argv
if (target === 'bare') serveBare()
else measure(target)
