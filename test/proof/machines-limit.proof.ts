/**
 * The limit of 20 requests in 10 s between machines, in real time, against the service that counts: four commands on one key
 * and one Redis server, which is killed, started again empty, and stopped for a while.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createPlace, rushes, serve } from '../support/binary.js'
import { createRelay, type Passed } from '../support/kill-points.js'
import { describeRedis, type RedisServer, startRedis } from '../support/redis.js'
import { until } from '../support/until.js'

const LIMIT = 20
const WINDOW_MS = 10_000
const COMMANDS = 4
const RUNS = 7

/** The most requests that any ten seconds held, each counted when it went on to the service. */
function mostInAWindow(passed: readonly Passed[]): number {
  const instants = passed.map(({ atMs }) => atMs).sort((a, b) => a - b)
  const within = (from: number) => instants.filter((at) => at >= from && at < from + WINDOW_MS).length
  return Math.max(0, ...instants.map(within))
}

interface Case {
  readonly machines: number
  readonly isShared?: boolean
  /** Done when the first window is full. Resolves when the server is back. */
  disturb?(redis: RedisServer): Promise<void>
}

async function measure(name: string, { machines, isShared = true, disturb }: Case) {
  let target = ''
  const relay = await createRelay(() => target)
  const redis = await startRedis()
  try {
    const service = await serve(createPlace(), ['--public-url', relay.url])
    target = service.url
    const places = Array.from({ length: machines }, () => createPlace())
    const startedAtMs = performance.now()
    const commands = Array.from({ length: COMMANDS }, (_, at) => {
      const place = places[at % machines] ?? service
      const env = {
        RUSHES_BASE_URL: relay.url,
        RUSHES_STATE_DIR: place.home,
        RUSHES_LIMITS_URL: isShared ? redis.url : undefined,
      }
      return rushes(service.with(env), ['run', 'image', 'a fox', '-n', `${RUNS}`])
    })
    await until('the first window is full', () => relay.passed.length >= LIMIT - 2)
    await disturb?.(redis)
    const backAtMs = performance.now()
    const ended = await Promise.all(commands)
    const figures = {
      codes: [...new Set(ended.map(({ code }) => code))],
      urls: ended.flatMap(({ stdout }) => stdout.trim().split('\n')).length,
      warnings: Math.max(...ended.map(({ stderr }) => stderr.split('warning: Redis').length - 1)),
      refused: relay.passed.filter(({ status }) => status === 429).length,
      most: mostInAWindow(relay.passed),
      // The last of what was granted without the server counts for one window after its return.
      mostAfterwards: mostInAWindow(relay.passed.filter(({ atMs }) => atMs >= backAtMs + WINDOW_MS)),
    }
    process.stdout.write(
      `${name}: ${relay.passed.length} requests, ${figures.refused} refused, at most ${figures.most} in 10 s ` +
        `(${figures.mostAfterwards} after the return), ${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s\n`,
    )
    return figures
  } finally {
    relay.close()
    await redis.kill()
  }
}

const WHOLE = { codes: [0], urls: COMMANDS * RUNS }

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

describeRedis('four commands, one key', () => {
  it('on four machines without the setting: the service refuses requests', async () => {
    const { refused } = await measure('four machines, not shared', { machines: 4, isShared: false })
    expect(refused).toBeGreaterThan(0)
  })

  it.each<[string, Case]>([
    ['four machines', { machines: 4 }],
    ['one machine, killed and started again empty', { machines: 1, disturb: killed }],
    ['one machine, stopped for 2 s', { machines: 1, disturb: stopped }],
    ['one machine, killed', { machines: 1, disturb: (redis) => redis.kill() }],
  ])('%s: never more than 20 in 10 s, and nothing is refused', async (name, how) => {
    const { most, refused, warnings, ...rest } = await measure(name, how)
    expect(rest).toMatchObject(WHOLE)
    expect(refused).toBe(0)
    expect(most).toBeLessThanOrEqual(LIMIT)
    expect(warnings).toBe(how.disturb === undefined ? 0 : 1)
  })

  it.each<[string, Case]>([
    ['four machines, killed and started again empty', { machines: 4, disturb: killed }],
    ['four machines, stopped for 2 s', { machines: 4, disturb: stopped }],
  ])('%s: 20 for each machine while it is away, and 20 together afterwards', async (name, how) => {
    const { most, mostAfterwards, warnings, ...rest } = await measure(name, how)
    expect(rest).toMatchObject(WHOLE)
    expect(most).toBeLessThanOrEqual(4 * LIMIT)
    expect(mostAfterwards).toBeLessThanOrEqual(LIMIT)
    expect(warnings).toBe(1)
  })
})
