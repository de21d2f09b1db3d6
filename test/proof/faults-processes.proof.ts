/**
 * Processes that are killed with -9, stand still, or whose clock jumps, while runs are created: every run that was
 * answered with 201 ends, charged once. With `faults.proof.ts`: `npm run proof -- faults`, or one case with `-t kill`.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { createPlace } from '../support/binary.js'
import { ask, endOf, IMAGE_OF_A_FOX, makePicture, RUNS, VIDEO_OF_A_FOX } from '../support/proof/clients.js'
import { tableOfFigures } from '../support/proof/figures.js'
import { audit, copiedData, prepareData, query } from '../support/proof/service-data.js'
import {
  countOf,
  createsAt,
  endsOf,
  enginesOf,
  killProcess,
  noEngineLeft,
  serveWords,
  startService,
  stop,
} from '../support/proof/service-runs.js'
import { until } from '../support/until.js'

const CASE_LIMIT_MS = 300_000
const isLinux = process.platform === 'linux'

const record = tableOfFigures()

/** Data with twelve keys, which each case copies. */
let prepared: string
let keys: readonly string[] = []

beforeAll(async () => {
  const place = createPlace()
  prepared = join(place.home, 'prepared')
  ;[keys = []] = await prepareData(place, prepared, [12])
})

/** Leaves its output in two steps, with a process of its own as an encoder would be. */
const ENGINE =
  'read -r input; echo "$RUSHES_RUN_ID" >> "$STARTS"; (sleep 0.2; echo half > "$RUSHES_OUTPUT_DIR/film.txt"; sleep 0.2); echo "$RUSHES_RUN_ID" > "$RUSHES_OUTPUT_DIR/film.txt"'

type Victim = 'service' | 'renderer' | 'service and renderers'

describe.skipIf(!isLinux)('kill -9', () => {
  it.each([
    [
      'of an engine command and its service',
      ['--engine', `video=${ENGINE}`],
      [VIDEO_OF_A_FOX, VIDEO_OF_A_FOX, IMAGE_OF_A_FOX],
      24,
    ],
    ['of the built-in renderer of videos and its service', [], [VIDEO_OF_A_FOX], 8],
  ] as const)('%s', { timeout: 2 * CASE_LIMIT_MS }, async (what, more, orders, count) => {
    const { place: home, data } = copiedData(prepared)
    const place = home.with({ STARTS: join(home.home, 'starts') })
    let { service, url } = await startService(place, serveWords(data, 0, ...more))
    const { port } = new URL(url)
    const created = createsAt(url, keys)
    const victims: readonly Victim[] = ['service', 'renderer', 'service and renderers']
    const killed = { service: 0, renderers: 0 }
    const restarts: number[] = []
    for (let instant = 0; instant < count; instant++) {
      for (const order of orders) created.send(order)
      await until('a renderer', () => enginesOf(place).length > 0)
      // A different moment of a render each time, and of a create.
      await sleep((instant * 97) % 1_000)
      created.send(IMAGE_OF_A_FOX)
      await sleep(instant % 10)
      const victim = victims[instant % victims.length]
      const renderers = enginesOf(place)
      if (victim !== 'service') killed.renderers += renderers.filter(killProcess).length
      if (victim === 'renderer') continue
      service.kill('SIGKILL')
      killed.service++
      await service.ended
      await until('the end of its renderers', () => renderers.every((pid) => !existsSync(`/proc/${pid}`)))
      const startedAt = performance.now()
      service = (await startService(place, serveWords(data, port, ...more))).service
      restarts.push(Math.round(performance.now() - startedAt))
    }
    await created.settled()
    const ends = await endsOf(created)
    await stop(service, place)
    const { orphanFolders, charges, refunds } = await audit(
      place,
      data,
      created.accepted.map(({ id }) => id),
    )
    record(`kill -9 ${what}`, {
      'services killed': killed.service,
      'renderers killed': killed.renderers,
      creates: countOf(created.outcomes),
      runs: countOf(ends),
      charges,
      refunds,
      'output folders without a run, left to --retain': orphanFolders,
      'slowest restart, ms': Math.max(...restarts),
    })
    expect(killed.service + killed.renderers).toBeGreaterThanOrEqual(count)
    expect(created.outcomes.filter((outcome) => !/^(201|no response|503 not_ready)$/.test(outcome))).toEqual(
      [],
    )
    expect(ends.filter((end) => !/^(succeeded|failed renderer_crashed)$/.test(end))).toEqual([])
    expect(orphanFolders).toBeLessThanOrEqual(killed.service)
    expect(readdirSync(join(data, 'work'))).toEqual([])
  })
})

const LIBFAKETIME = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`)
  .find(existsSync)
if (LIBFAKETIME === undefined) process.stdout.write('faketime is not installed: clock jumps are skipped\n')

const SLOW_ENGINE =
  'read -r input; echo "$RUSHES_RUN_ID" >> "$STARTS"; sleep 3; echo "$RUSHES_RUN_ID" > "$RUSHES_OUTPUT_DIR/film.txt"'

/** Two services on one folder, with an engine that takes 3 s and notes what it starts. */
async function startTwo(more: Readonly<Record<string, string>> = {}) {
  const { place: home, data } = copiedData(prepared)
  const starts = join(home.home, 'starts')
  writeFileSync(starts, '')
  const place = home.with({ STARTS: starts, ...more })
  const words = serveWords(data, 0, '--engine', `video=${SLOW_ENGINE}`)
  const [one, two] = [await startService(place, words), await startService(place, words)]
  return {
    place,
    data,
    one,
    two,
    startsOf: (id: string) => readFileSync(starts, 'utf8').split(id).length - 1,
  }
}

describe.skipIf(!isLinux)('two services on one folder', () => {
  it('of which one stands still for 40 s', { timeout: CASE_LIMIT_MS }, async () => {
    const { place, data, one, two, startsOf } = await startTwo()
    const client = (url: string) => ({ url, apiKey: keys[0] ?? '' })
    const { body } = await ask(client(one.url), RUNS, VIDEO_OF_A_FOX)
    await until('a render', () => startsOf(body.id) === 1)
    one.service.kill('SIGSTOP')
    const stoppedAt = performance.now()
    const run = await endOf(client(two.url), body.id)
    const endedMs = Math.round(performance.now() - stoppedAt)
    await sleep(Math.max(0, 40_000 - endedMs))
    one.service.kill('SIGCONT')
    await makePicture(client(one.url))
    await sleep(4_000)
    for (const { url } of [one, two]) {
      const seen = (await ask(client(url), `${RUNS}/${body.id}`)).body
      // The output URL begins with the address of the service that is asked.
      expect(new URL(seen.output.urls[0]).pathname).toBe(new URL(run.output?.urls[0] ?? '').pathname)
    }
    for (const { service } of [one, two]) await stop(service, place).catch(() => noEngineLeft(place))
    const { charges, orphanFolders } = await audit(place, data, [body.id])
    record('a service stopped for 40 s beside another', {
      'ended after ms': endedMs,
      renders: startsOf(body.id),
      charges,
      orphanFolders,
    })
    expect({ status: run.status, charges, orphanFolders }).toEqual({
      status: 'succeeded',
      charges: 2,
      orphanFolders: 0,
    })
  })

  it.skipIf(LIBFAKETIME === undefined)(
    'while the clock jumps by an hour',
    { timeout: CASE_LIMIT_MS },
    async () => {
      const clock = join(createPlace().home, 'clock')
      writeFileSync(clock, '+0')
      const { place, data, one, two, startsOf } = await startTwo({
        LD_PRELOAD: LIBFAKETIME ?? '',
        FAKETIME_TIMESTAMP_FILE: clock,
        FAKETIME_NO_CACHE: '1',
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
      })
      const ids: string[] = []
      for (const offset of ['+3600', '+0', '-3600', '+0']) {
        const bodies = await Promise.all(
          [one, two].map(
            async ({ url }) => (await ask({ url, apiKey: keys[0] ?? '' }, RUNS, VIDEO_OF_A_FOX)).body,
          ),
        )
        ids.push(...bodies.map(({ id }) => id))
        await until('both renders', () => bodies.every(({ id }) => startsOf(id) === 1))
        writeFileSync(clock, offset)
        for (const { id } of bodies)
          expect((await endOf({ url: one.url, apiKey: keys[0] ?? '' }, id)).error).toBeNull()
      }
      const attempts = query<{ attempts: number }>(data, 'SELECT attempts FROM runs').map(
        (run) => run.attempts,
      )
      const workers = query(data, 'SELECT id FROM workers').length
      for (const { service } of [one, two]) await stop(service, place).catch(() => noEngineLeft(place))
      const { charges, orphanFolders } = await audit(place, data, ids)
      record('the clock jumps by an hour, four times', {
        runs: ids.length,
        renders: ids.reduce((sum, id) => sum + startsOf(id), 0),
        crashes: Math.max(...attempts),
        charges,
      })
      expect({ crashes: Math.max(...attempts), workers, charges, orphanFolders }).toEqual({
        crashes: 0,
        workers: 2,
        charges: 8,
        orphanFolders: 0,
      })
      expect(ids.map(startsOf)).toEqual(ids.map(() => 1))
    },
  )
})
