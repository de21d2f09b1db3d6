/**
 * The limit of 20 requests in 10 s in real time, over several windows, against the service that counts: one process,
 * then eight on one key, then eight on a line whose delay changes from request to request.
 */
import { expect, it } from 'vitest'
import { createPlace, rushes, serve } from '../support/binary.js'
import { createRelay, type Passed, type RelayOptions } from '../support/kill-points.js'

const LIMIT = 20
const WINDOW_MS = 10_000

/** The most requests that any ten seconds held, each counted when it went on to the service. */
function mostInAWindow(passed: readonly Passed[]): number {
  const instants = passed.map(({ atMs }) => atMs).sort((a, b) => a - b)
  const within = (from: number) => instants.filter((at) => at >= from && at < from + WINDOW_MS).length
  return Math.max(...instants.map(within))
}

/** `processes` commands at once on one key, each with so many runs. */
async function measure(processes: number, runs: number, options?: RelayOptions) {
  let target = ''
  const relay = await createRelay(() => target, options)
  try {
    const service = await serve(createPlace(), ['--public-url', relay.url])
    target = service.url
    const place = service.with({ RUSHES_BASE_URL: relay.url })
    const began = performance.now()
    const ended = await Promise.all(
      Array.from({ length: processes }, () => rushes(place, ['run', 'image', 'a fox', '-n', `${runs}`])),
    )
    return {
      codes: new Set(ended.map(({ code }) => code)),
      urls: ended.flatMap(({ stdout }) => stdout.trim().split('\n')).length,
      requests: relay.passed.length,
      turnedAway: relay.passed.filter(({ status }) => status === 429).length,
      most: mostInAWindow(relay.passed),
      seconds: (performance.now() - began) / 1_000,
    }
  } finally {
    relay.close()
  }
}

it.each<[string, number, number, RelayOptions | undefined]>([
  ['one process', 1, 30, undefined],
  ['eight processes', 8, 6, undefined],
  ['eight processes, 0 to 500 ms of delay', 8, 6, { delayMs: () => Math.random() * 500 }],
])('%s: no request is turned away', async (name, processes, runs, options) => {
  const { codes, urls, requests, turnedAway, most, seconds } = await measure(processes, runs, options)
  const floor = (Math.ceil(requests / LIMIT) - 1) * (WINDOW_MS / 1_000)
  process.stdout.write(
    `${name}, ${processes * runs} runs: ${requests} requests, ${turnedAway} turned away, at most ${most} in 10 s, ` +
      `${seconds.toFixed(1)} s (these requests take ${floor} s at least)\n`,
  )
  expect({ codes: [...codes], urls, turnedAway }).toEqual({
    codes: [0],
    urls: processes * runs,
    turnedAway: 0,
  })
  expect(requests).toBeGreaterThanOrEqual(2 * processes * runs)
  expect(most).toBeLessThanOrEqual(LIMIT)
})
