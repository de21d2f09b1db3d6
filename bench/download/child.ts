/** A process that downloads one URL into a folder and nothing else, so that its memory is the download's. */
import { readFileSync } from 'node:fs'
import { createDownloader } from '../../src/download/index.js'
import { systemClock } from '../../src/host/clock.js'
import { createNetwork } from '../../src/host/undici.js'

const [, , url = '', folder = ''] = process.argv
const network = createNetwork({ env: {}, clock: systemClock })
const downloader = createDownloader({
  fetch: network.fetch,
  clock: systemClock,
})
const startKiB = peakKiB()
const startedMs = performance.now()
const [result] = await downloader.download([{ url, runId: 'big' }], {
  target: { kind: 'folder', folder },
})
const elapsedMs = performance.now() - startedMs
await network.close()
const message = result?.ok === false ? result.error.message : undefined
const peakMiB = peakKiB() / 1_024
const grownMiB = peakMiB - startKiB / 1_024
process.stdout.write(JSON.stringify({ ok: result?.ok, message, elapsedMs, peakMiB, grownMiB }))

/** On Linux a child's `maxRSS` begins with the size of the process that made it; VmHWM begins with the program. */
function peakKiB(): number {
  try {
    return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1])
  } catch {
    return process.resourceUsage().maxRSS
  }
}
