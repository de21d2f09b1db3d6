/**
 * Peak memory of the built service and of its renderers, while four runs with fourteen references of 63 MiB each are rendered at once:
 * `npm run bench:references -- service`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import sharp from 'sharp'
import { childrenOf, peakMiB } from '../test/support/process-memory.js'

const RUNS = 4
const REFERENCES = 14
const MEBIBYTE = 1_048_576
/** A key may send 20 requests in 10 s. */
const POLL_MS = 3_000

/** A small picture, and zeros behind it. */
async function serveImages(): Promise<{ readonly base: string; close(): void }> {
  const color = { r: 200, g: 80, b: 20 }
  const picture = await sharp({ create: { width: 800, height: 600, channels: 3, background: color } })
    .png()
    .toBuffer()
  const zeros = Buffer.alloc(MEBIBYTE)
  const chunks = [picture, ...Array.from({ length: 62 }, () => zeros)]
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'image/png' })
    // A service that has enough closes the connection.
    pipeline(Readable.from(chunks), response).catch(() => {})
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    base: `http://127.0.0.1:${port}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

export async function measureService(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-reference-memory-'))
  const images = await serveImages()
  const words = ['serve', '--json', '--port', '0', '--data', join(folder, 'data'), '--concurrency', `${RUNS}`]
  const service = spawn(process.execPath, ['bin/rushes.cjs', ...words], {
    env: { ...process.env, HOME: folder, RUSHES_STATE_DIR: join(folder, 'state') },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const [line] = await once(createInterface({ input: service.stdout }), 'line')
    const { url, api_key: key, models } = JSON.parse(line)
    const request = async (path: string, body?: object) => {
      const response = await fetch(`${url}/api/v1/runs${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      return (await response.json()) as { id: string; status: string }
    }
    const pid = service.pid ?? 0
    const before = peakMiB(pid)
    const startedAt = performance.now()
    const ids: string[] = []
    for (let run = 0; run < RUNS; run++) {
      const image_urls = Array.from({ length: REFERENCES }, (_, index) => `${images.base}/${run}/${index}`)
      const { id } = await request('', { model: models.image, input: { prompt: 'a fox', image_urls } })
      ids.push(id)
    }
    const peaks = new Map<number, number>()
    for (let running = ids; running.length > 0; await sleep(POLL_MS)) {
      for (const child of childrenOf(pid)) peaks.set(child, Math.max(peaks.get(child) ?? 0, peakMiB(child)))
      const states = await Promise.all(running.map((id) => request(`/${id}`)))
      running = states.filter(({ status }) => !/^(succeeded|failed)$/.test(status)).map(({ id }) => id)
    }
    const ends = await Promise.all(ids.map((id) => request(`/${id}`)))
    console.log(
      '| service before, peak MiB | service, peak MiB | largest renderer, peak MiB | seconds | ends |',
    )
    console.log('|--:|--:|--:|--:|---|')
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    const states = ends.map(({ status }) => status).join(', ')
    console.log(
      `| ${before} | ${peakMiB(pid)} | ${Math.max(0, ...peaks.values())} | ${seconds} | ${states} |`,
    )
  } finally {
    service.kill('SIGTERM')
    await once(service, 'exit')
    images.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
