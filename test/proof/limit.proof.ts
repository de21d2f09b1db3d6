/**
 * The limit of 20 requests in 10 s in real time, over several windows, against the service that counts: commands on one key in one
 * state folder, on a line whose delay changes from request to request, and on several machines with one Redis server, which
 * is killed, started again empty, and stopped for a while.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createPlace, rushes, serve } from '../support/binary.js'
import { createRelay, type Passed, type RelayOptions } from '../support/kill-points.js'
import { describeRedis, type RedisServer, startRedis } from '../support/redis.js'
import { until } from '../support/until.js'

const LIMIT = 20
const WINDOW_MS = 10_000

/** The most requests that any ten seconds held, each counted when it went on to the service. */
function mostInAWindow(passed: readonly Passed[]): number {
  const instants = passed.map(({ atMs }) => atMs).sort((a, b) => a - b)
  const within = (from: number) => instants.filter((at) => at >= from && at < from + WINDOW_MS).length
  return Math.max(0, ...instants.map(within))
}

interface Case {
  /** At once, on one key. */
  readonly commands: number
  /** Of each command. */
  readonly runs: number
  /** Each has a state folder of its own. */
  readonly machines?: number
  readonly relay?: RelayOptions
  readonly redis?: RedisServer
  /** Called when the first window is full. Resolves when Redis is back. */
  disturb?(redis: RedisServer): Promise<void>
}

async function measure(name: string, { commands, runs, machines = 1, relay: options, redis, disturb }: Case) {
  let target = ''
  const relay = await createRelay(() => target, options)
  try {
    const service = await serve(createPlace(), ['--public-url', relay.url])
    target = service.url
    const places = Array.from({ length: machines }, () => createPlace())
    const startedAtMs = performance.now()
    const running = Array.from({ length: commands }, (_, at) => {
      const env = {
        RUSHES_BASE_URL: relay.url,
        RUSHES_STATE_DIR: (places[at % machines] ?? service).home,
        RUSHES_LIMITS_URL: redis?.url,
      }
      return rushes(service.with(env), ['run', 'image', 'a fox', '-n', `${runs}`])
    })
    if (redis !== undefined) {
      await until('the first window is full', () => relay.passed.length >= LIMIT - 2)
      await disturb?.(redis)
    }
    const backAtMs = performance.now()
    const ended = await Promise.all(running)
    const seconds = (performance.now() - startedAtMs) / 1_000
    const requests = relay.passed.length
    const floorSeconds = (Math.ceil(requests / LIMIT) - 1) * (WINDOW_MS / 1_000)
    const figures = {
      requests,
      codes: [...new Set(ended.map(({ code }) => code))],
      urls: ended.flatMap(({ stdout }) => stdout.trim().split('\n')).length,
      warnings: Math.max(...ended.map(({ stderr }) => stderr.split('warning: Redis').length - 1)),
      refused: relay.passed.filter(({ status }) => status === 429).length,
      most: mostInAWindow(relay.passed),
      // The last of what was granted without Redis counts for one window after its return.
      mostAfterwards: mostInAWindow(relay.passed.filter(({ atMs }) => atMs >= backAtMs + WINDOW_MS)),
    }
    process.stdout.write(
      `${name}, ${commands * runs} runs: ${requests} requests, ${figures.refused} refused, at most ${figures.most} in 10 s ` +
        `(${figures.mostAfterwards} after the return of Redis), ${seconds.toFixed(1)} s (these requests take ${floorSeconds} s at least)\n`,
    )
    return figures
  } finally {
    relay.close()
  }
}

describe('one machine', () => {
  it.each<[string, Case]>([
    ['one command', { commands: 1, runs: 30 }],
    ['eight commands', { commands: 8, runs: 6 }],
    [
      'eight commands, 0 to 500 ms of delay',
      { commands: 8, runs: 6, relay: { delayMs: () => Math.random() * 500 } },
    ],
  ])('%s: no request is refused', async (name, how) => {
    const { requests, most, ...rest } = await measure(name, how)
    const urls = how.commands * how.runs
    expect(rest).toMatchObject({ codes: [0], urls, refused: 0 })
    expect(requests).toBeGreaterThanOrEqual(2 * urls)
    expect(most).toBeLessThanOrEqual(LIMIT)
  })
})

const FOUR = { commands: 4, runs: 7 }
const WHOLE = { codes: [0], urls: 28 }

const killed = async (redis: RedisServer): Promise<void> => {
  await redis.kill()
  await sleep(4_000)
  await redis.restart()
}
const stopped = async (redis: RedisServer): Promise<void> => {
  redis.signal('SIGSTOP')
  await sleep(2_000)
  redis.signal('SIGCONT')
}

it('four machines without the setting: the service refuses requests', async () => {
  const { refused } = await measure('four machines, not shared', { ...FOUR, machines: 4 })
  expect(refused).toBeGreaterThan(0)
})

describeRedis('four commands, one key, one Redis server', () => {
  async function measureShared(name: string, how: Pick<Case, 'machines' | 'disturb'>) {
    const redis = await startRedis()
    return await measure(name, { ...FOUR, ...how, redis }).finally(() => redis.kill())
  }

  it.each<[string, Pick<Case, 'machines' | 'disturb'>]>([
    ['four machines', { machines: 4 }],
    ['one machine, killed and started again empty', { disturb: killed }],
    ['one machine, stopped for 2 s', { disturb: stopped }],
    ['one machine, killed', { disturb: (redis) => redis.kill() }],
  ])('%s: never more than 20 in 10 s, and nothing is refused', async (name, how) => {
    const { most, refused, warnings, ...rest } = await measureShared(name, how)
    expect(rest).toMatchObject(WHOLE)
    expect(refused).toBe(0)
    expect(most).toBeLessThanOrEqual(LIMIT)
    expect(warnings).toBe(how.disturb === undefined ? 0 : 1)
  })

  it.each<[string, Pick<Case, 'machines' | 'disturb'>]>([
    ['four machines, killed and started again empty', { machines: 4, disturb: killed }],
    ['four machines, stopped for 2 s', { machines: 4, disturb: stopped }],
  ])('%s: 20 for each machine while it is away, and 20 together afterwards', async (name, how) => {
    const { most, mostAfterwards, warnings, ...rest } = await measureShared(name, how)
    expect(rest).toMatchObject(WHOLE)
    expect(most).toBeLessThanOrEqual(4 * LIMIT)
    expect(mostAfterwards).toBeLessThanOrEqual(LIMIT)
    expect(warnings).toBe(1)
  })
})
