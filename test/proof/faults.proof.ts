/**
 * A service whose disk is full, or whose database another process has locked: afterwards every run that was answered
 * with 201 ends, charged once. With `faults-processes.proof.ts`: `npm run proof -- faults`, or one case with `-t locked`.
 */
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { createPlace } from '../support/binary.js'
import { built } from '../support/built.js'
import { ask, endOf, IMAGE_OF_A_FOX, makePicture, RUNS, VIDEO_OF_A_FOX } from '../support/proof/clients.js'
import { tableOfFigures } from '../support/proof/figures.js'
import { probeHealth } from '../support/proof/processes.js'
import { audit, copiedData, lockDatabase, prepareData } from '../support/proof/service-data.js'
import {
  countOf,
  createSteadily,
  createsAt,
  endsOf,
  isReady,
  noEngineLeft,
  rendering,
  serveWords,
  startService,
  stop,
  urlOf,
} from '../support/proof/service-runs.js'
import { canMount, mountSmallDisk } from '../support/proof/small-disk.js'
import { until } from '../support/until.js'

const CASE_LIMIT_MS = 300_000
const MAX_HEALTH_MS = 250
const isLinux = process.platform === 'linux'

let probeScript: string
const record = tableOfFigures()

/** Data with twelve keys, which each case copies. */
let prepared: string
let keys: readonly string[] = []

beforeAll(async () => {
  const place = createPlace()
  prepared = join(place.home, 'prepared')
  ;[keys = []] = await prepareData(place, prepared, [12])
  probeScript = await built(new URL('../support/abuse/health-probe.ts', import.meta.url))
})

describe.skipIf(!canMount)('a full disk', () => {
  async function onSmallDisk(mebibytes: number) {
    const place = createPlace()
    const disk = await mountSmallDisk(place, mebibytes)
    // SQLite cannot open a file by its path outside of the namespace, so the data is copied in and out.
    const after = join(place.home, 'after')
    cpSync(prepared, join(disk.outside, 'data'), { recursive: true })
    const startOn = () => disk.start(place, serveWords(join(disk.path, 'data'), 0))
    const check = (accepted: readonly string[]) => {
      cpSync(join(disk.outside, 'data'), after, { recursive: true })
      return audit(place, after, accepted)
    }
    return { place, disk, startOn, check }
  }

  it('at the start', { timeout: CASE_LIMIT_MS }, async () => {
    const { place, disk, startOn, check } = await onSmallDisk(8)
    disk.fill()
    const service = startOn()
    await service.prints('stderr', /disk of .* is full/)
    await sleep(3_000)
    expect(service.printed.stdout).toBe('')
    disk.free()
    const freedAt = performance.now()
    const url = await urlOf(service)
    await until('ready', () => isReady(url))
    const recoveredMs = Math.round(performance.now() - freedAt)
    await makePicture({ url, apiKey: keys[0] ?? '' })
    await stop(service, place)
    await check([])
    record('full disk at the start', { 'ready again after ms': recoveredMs })
  })

  it('during creates', { timeout: CASE_LIMIT_MS }, async () => {
    const { place, disk, startOn, check } = await onSmallDisk(24)
    const service = startOn()
    const url = await urlOf(service)
    const order = { model: IMAGE_OF_A_FOX.model, input: { prompt: 'a fox '.repeat(10_000) } }
    const created = createSteadily(url, keys, 100, order)
    await until('accepted runs', () => created.accepted.length >= 5)
    disk.fill()
    await until('a refusal', () => created.outcomes.some((outcome) => outcome.startsWith('503')))
    const readyWhenFull = await isReady(url)
    await sleep(3_000)
    disk.free()
    const count = created.accepted.length
    await until('accepted runs again', () => created.accepted.length > count + 5)
    await until('ready again', () => isReady(url))
    await created.stop()
    const ends = await endsOf(created)
    await stop(service, place)
    const { orphanFolders, refunds } = await check(created.accepted.map(({ id }) => id))
    record('full disk during creates', {
      creates: countOf(created.outcomes),
      runs: countOf(ends),
      refunds,
      orphanFolders,
    })
    expect(readyWhenFull).toBe(false)
    expect(created.outcomes.filter((outcome) => !/^(201|503 not_ready)$/.test(outcome))).toEqual([])
    expect(service.printed.stderr).not.toMatch(/^\s+at /m)
  })

  it.each([
    ['an image', IMAGE_OF_A_FOX, 4, 8],
    ['a video', VIDEO_OF_A_FOX, 2, 24],
  ] as const)(
    'during the render of %s',
    { timeout: CASE_LIMIT_MS },
    async (what, order, count, mebibytes) => {
      const { place, disk, startOn, check } = await onSmallDisk(mebibytes)
      const service = startOn()
      const url = await urlOf(service)
      const client = { url, apiKey: keys[0] ?? '' }
      const created = createsAt(url, keys)
      for (let number = 0; number < count; number++) created.send(order)
      await created.settled()
      const first = created.accepted[0]?.id ?? ''
      await rendering(client, first)
      disk.fill()
      // Until the first render has met the full disk.
      await until(
        'the end of a render',
        async () => {
          // Within the rate limit.
          await sleep(1_000)
          return ['succeeded', 'failed'].includes((await ask(client, `${RUNS}/${first}`)).body.status)
        },
        90_000,
      ).catch(() => {})
      disk.free()
      const freedAt = performance.now()
      await until('ready again', () => isReady(url))
      const ends = await endsOf(created)
      const endedMs = Math.round(performance.now() - freedAt)
      await makePicture(client)
      await stop(service, place)
      const { orphanFolders, refunds } = await check(created.accepted.map(({ id }) => id))
      record(`full disk during the render of ${what}`, {
        runs: countOf(ends),
        refunds,
        orphanFolders,
        'all ended after ms': endedMs,
      })
      expect(readdirSync(join(disk.outside, 'data/work'))).toEqual([])
    },
  )
})

describe.skipIf(!isLinux)('a database that another process has locked', () => {
  it.each([3, 12, 25])('for %i s', { timeout: CASE_LIMIT_MS }, async (seconds) => {
    const { place, data } = copiedData(prepared)
    const { service, url } = await startService(place, serveWords(data, 0))
    const probe = await probeHealth(probeScript, url)
    const created = createSteadily(url, keys.slice(1), 500)
    await until('a render', () => created.accepted.length > 0)
    const known = { url, apiKey: keys[0] ?? '' }
    const { body } = await ask(known, RUNS, VIDEO_OF_A_FOX)
    await rendering(known, body.id)
    const unlock = lockDatabase(data)
    const looks: { readonly status: number; readonly ms: number }[] = []
    const endAt = performance.now() + seconds * 1_000
    let readyWhenLocked: boolean | undefined
    while (performance.now() < endAt) {
      const askedAt = performance.now()
      const { status } = await ask(known, `${RUNS}/${body.id}`)
      looks.push({ status, ms: Math.round(performance.now() - askedAt) })
      readyWhenLocked ??= await isReady(url)
      await sleep(600)
    }
    unlock()
    await until('ready again', () => isReady(url))
    await sleep(1_000)
    await created.stop()
    const ends = await endsOf({ accepted: [...created.accepted, { id: body.id, client: known }] })
    const health = await probe.report()
    await stop(service, place)
    const { refunds, orphanFolders } = await audit(
      place,
      data,
      created.accepted.map(({ id }) => id),
    )
    record(`database locked for ${seconds} s`, {
      'slowest /healthz, ms': Math.round(health.maxMs),
      'slowest status, ms': Math.max(...looks.map(({ ms }) => ms)),
      creates: countOf(created.outcomes),
      runs: countOf(ends),
    })
    expect(readyWhenLocked).toBe(false)
    expect(health.failed).toBe(0)
    expect(health.maxMs).toBeLessThan(MAX_HEALTH_MS + health.bareMaxMs)
    expect(looks.filter(({ status, ms }) => status !== 200 || ms > 1_000)).toEqual([])
    expect(created.outcomes.filter((outcome) => !/^(201|503 not_ready)$/.test(outcome))).toEqual([])
    expect(ends.filter((end) => end !== 'succeeded')).toEqual([])
    expect({ refunds, orphanFolders }).toEqual({ refunds: 0, orphanFolders: 0 })
  })

  it('at SIGTERM', { timeout: CASE_LIMIT_MS }, async () => {
    const { place, data } = copiedData(prepared)
    const { service, url } = await startService(place, serveWords(data, 0))
    const client = { url, apiKey: keys[0] ?? '' }
    const first = await ask(client, RUNS, VIDEO_OF_A_FOX)
    await rendering(client, first.body.id)
    const unlock = lockDatabase(data)
    const waiting = Promise.all(Array.from({ length: 3 }, () => ask(client, RUNS, IMAGE_OF_A_FOX)))
    await sleep(500)
    const stoppedAt = performance.now()
    service.kill('SIGTERM')
    const answers = await waiting.catch(() => [])
    const answeredMs = Math.round(performance.now() - stoppedAt)
    const { code, stderr } = await service.ended
    const endedMs = Math.round(performance.now() - stoppedAt)
    unlock()
    await noEngineLeft(place)
    const next = await startService(place, serveWords(data, 0))
    expect((await endOf({ url: next.url, apiKey: client.apiKey }, first.body.id)).status).toBe('succeeded')
    await stop(next.service, place)
    await audit(place, data, [first.body.id])
    record('database locked at SIGTERM', {
      creates: countOf(answers.map(({ status, body }) => `${status} ${body.error?.code}`)),
      'answered after ms': answeredMs,
      'ended after ms': endedMs,
    })
    expect(answers.map(({ status, body }) => [status, body.error?.code])).toEqual(
      Array(3).fill([503, 'not_ready']),
    )
    expect(code).toBe(0)
    expect(endedMs).toBeLessThan(5_000)
    expect(stderr).not.toMatch(/^\s+at |stack/m)
  })
})
