/**
 * What one client can send, against the real service on a real port: each case with `/healthz` asked every 50 ms from a
 * process of its own. The figures are its slowest response and the largest memory of the service; afterwards a normal
 * client makes a run and gets its picture. `npm run proof -- abuse`, or one case: `npm run proof -- abuse -t AVIF`.
 */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { ProbeReport } from '../support/abuse/health-probe.js'
import type { LoadName } from '../support/abuse/load.js'
import type { Figures, Target } from '../support/abuse/requests.js'
import { createPlace, type Service, serve } from '../support/binary.js'
import { built } from '../support/built.js'
import { childrenOf, peakMiB, resetPeak } from '../support/process-memory.js'
import { ask, makePicture } from '../support/proof/clients.js'
import { forked, messageOf, probeHealth } from '../support/proof/processes.js'
import { prepareData } from '../support/proof/service-data.js'

/** CONTRACT: `/healthz` answers within this, whatever one client sends; more only by what the machine itself took. */
const MAX_HEALTH_MS = 250
/** The budget of docs/operations.md, "Limits". */
const MAX_PEAK_MIB = 1_024
/** It is ended above 2 GiB, and allocates on until then. */
const MAX_RENDERER_MIB = 2_304
const CASE_LIMIT_MS = 150_000
/** Refused connections that hold every place are closed by then. */
const LOCK_OUT_MS = 3_000

interface Case {
  readonly name: string
  readonly load: LoadName
  /** Of `rushes serve`. */
  readonly flags?: readonly string[]
  /** What may come back, beside figures without a status. */
  readonly outcomes: RegExp
  readonly most?: Readonly<Record<string, number>>
  readonly least?: Readonly<Record<string, number>>
}

const REFUSED = /^(400 invalid_(input|json)|429 RATE_LIMITED|503 overloaded|ECONNRESET|EPIPE)$/

const CASES: readonly Case[] = [
  { name: '64 MB of [', load: 'openingBrackets', outcomes: REFUSED },
  { name: '60 MB of [],', load: 'emptyLists', outcomes: REFUSED },
  { name: '60 MB of {}, in the input', load: 'emptyObjects', outcomes: REFUSED },
  {
    name: 'many values, deep nesting',
    load: 'manyValues',
    outcomes: /^(201|status 200|400 invalid_input|400 invalid_json)$/,
    least: { '201': 16, 'status 200': 16 },
  },
  {
    name: 'twenty bodies of 62 MiB at 1.7 kB/s',
    load: 'slowBodies',
    outcomes: /^(503 overloaded|open, no response|closed, no response)$/,
    most: { 'open, no response': 4 },
  },
  {
    name: 'twenty bodies of 62 MiB at full speed',
    load: 'fastBodies',
    outcomes: /^(400 \w+|429 RATE_LIMITED|503 overloaded|ECONNRESET|EPIPE)$/,
  },
  {
    name: 'nine data: URLs of 62 MiB',
    load: 'largeImages',
    outcomes: /^(201|429 RATE_LIMITED|503 overloaded|ECONNRESET|EPIPE)$/,
    least: { '201': 2 },
  },
  {
    name: '200,000 image_urls, and 14',
    load: 'manyReferences',
    outcomes: /^(201|400 invalid_input|succeeded)$/,
    most: { 'requests for refused creates': 0, 'requests for 2 creates of 14': 28 },
    least: { '400 invalid_input': 4, succeeded: 2 },
  },
  {
    name: '1,000 connections that send on after 401',
    load: 'refusedConnections',
    outcomes: /^(401 \w+|closed, no response)$/,
    most: { 'still open': 0, 'all closed after s': 3 },
    least: { 'all closed after s': 1 },
  },
  {
    name: 'sending on after 401 and 413',
    load: 'sendAfterRefusal',
    outcomes: /^(401 \w+|413 payload_too_large)$/,
    most: { 'closed after ms': 2_000 },
  },
  {
    name: '900 connections with slow headers',
    load: 'slowHeaders',
    outcomes: /^408 request_timeout$/,
    most: { 'still open': 0 },
  },
  {
    name: '10,000 status requests of unknown runs',
    load: 'unknownRuns',
    outcomes: /^(404 run_not_found|429 RATE_LIMITED)$/,
  },
  {
    name: 'pipelined requests',
    load: 'pipelined',
    outcomes: /^$/,
    least: { 'responses that were read': 900 },
  },
  {
    name: 'AVIF of 8192 x 8192 in one color',
    load: 'avifBombs',
    outcomes: /^succeeded$/,
    least: { succeeded: 3 },
  },
  {
    name: 'fourteen interlaced 16-bit PNGs',
    load: 'interlacedPngs',
    outcomes: /^succeeded$/,
    least: { succeeded: 1 },
  },
  {
    name: 'huge numbers',
    load: 'hugeNumbers',
    outcomes: /^400 invalid_input$/,
    least: { '400 invalid_input': 6 },
  },
  {
    name: 'fifty sign-ins at once, three times',
    load: 'signIns',
    flags: ['--trust-proxy', '127.0.0.1'],
    outcomes: /^401 invalid_credentials$/,
    least: { '401 invalid_credentials': 150 },
  },
]

let data: string
let goodKey = ''
let visitorKey = ''
let keys: readonly string[] = []
let others: readonly string[] = []
let probeScript: string
let loadScript: string
const rows: string[] = []

beforeAll(async () => {
  probeScript = await built(new URL('../support/abuse/health-probe.ts', import.meta.url))
  loadScript = await built(new URL('../support/abuse/load.ts', import.meta.url))
  const place = createPlace()
  data = join(place.home, 'data')
  const [good = [], one = [], two = []] = await prepareData(place, data, [2, 3, 2])
  ;[goodKey = '', visitorKey = ''] = good
  keys = one
  others = two
})

afterAll(() => {
  const head =
    '| case | what came back | `/healthz`, slowest ms | p99 ms | bare server, slowest ms | peak MiB | renderer, peak MiB |'
  process.stdout.write(`${[head, '|---|---|--:|--:|--:|--:|--:|', ...rows].join('\n')}\n`)
})

describe.skipIf(process.platform !== 'linux')('one client cannot stop the others', () => {
  it.each(CASES)('$name', { timeout: CASE_LIMIT_MS }, async (tried) => {
    const service = await startService(tried.flags)
    const target: Target = { url: service.url, keys, others }
    await makePicture(service)
    const probe = await probeHealth(probeScript, service.url)
    const watched = watchMemory(service.process.pid)
    const visits = visit(service)

    const load = forked(loadScript, tried.load, JSON.stringify(target))
    const figures = (await messageOf(load)) as Figures
    const visited = await visits.stop()
    await makePicture(service)

    const health = await probe.report()
    const peaks = watched.stop()
    rows.push(rowOf(tried, figures, health, peaks))
    expect.soft(health.failed, 'failed requests of /healthz').toBe(0)
    expect.soft(health.maxMs, 'slowest /healthz').toBeLessThan(MAX_HEALTH_MS + health.bareMaxMs)
    expect.soft(peaks.service, 'peak memory in MiB').toBeLessThan(MAX_PEAK_MIB)
    expect.soft(peaks.renderer, 'peak memory of a renderer in MiB').toBeLessThan(MAX_RENDERER_MIB)
    expect.soft(visited.failedAfter, 'failed requests of another client').toEqual([])
    const outcomes = Object.keys(figures).filter((name) =>
      /^(status )?(\d{3}\b|E[A-Z]|open|closed, |failed|succ)/.test(name),
    )
    expect
      .soft(
        outcomes.filter((outcome) => !tried.outcomes.test(outcome)),
        'other outcomes',
      )
      .toEqual([])
    for (const [name, most] of Object.entries(tried.most ?? {}))
      expect.soft(figures[name] ?? 0, name).toBeLessThanOrEqual(most)
    for (const [name, least] of Object.entries(tried.least ?? {}))
      expect.soft(figures[name] ?? 0, name).toBeGreaterThanOrEqual(least)
    expect.soft(service.process.printed.stderr, 'the log').not.toMatch(/internal error|^\s+at /m)
    service.process.kill('SIGTERM')
    expect((await service.process.ended).code).toBe(0)
  })
})

/** A service of its own for each case, so that none measures what another left in memory. */
async function startService(flags: readonly string[] = []): Promise<Service> {
  const place = createPlace()
  cpSync(data, join(place.home, 'data'), { recursive: true })
  const service = await serve(place, ['--data', join(place.home, 'data'), ...flags])
  return { ...service, apiKey: goodKey }
}

/** Another client with a new connection each second; when it failed later than a lock-out by refused connections lasts. */
function visit(service: Service) {
  const startedAt = performance.now()
  const failures: number[] = []
  let going = true
  const all = (async () => {
    while (going) {
      const atMs = performance.now() - startedAt
      const outcome = await ask({ ...service, apiKey: visitorKey }, '/api/v1/runs/run_unknown').catch(
        () => undefined,
      )
      if (outcome?.status !== 404) failures.push(Math.round(atMs))
      await sleep(1_000)
    }
  })()
  return {
    async stop() {
      going = false
      await all
      const [first = 0] = failures
      return { failedAfter: failures.filter((ms) => ms - first > LOCK_OUT_MS) }
    },
  }
}

function watchMemory(pid: number) {
  resetPeak(pid)
  const renderers = new Map<number, number>()
  const timer = setInterval(() => {
    for (const child of childrenOf(pid))
      renderers.set(child, Math.max(renderers.get(child) ?? 0, peakMiB(child)))
  }, 100)
  onTestFinished(() => clearInterval(timer))
  return {
    stop() {
      clearInterval(timer)
      return { service: peakMiB(pid), renderer: Math.max(0, ...renderers.values()) }
    },
  }
}

function rowOf(
  tried: Case,
  figures: Figures,
  health: ProbeReport,
  peaks: ReturnType<ReturnType<typeof watchMemory>['stop']>,
) {
  const said = Object.entries(figures).map(([name, count]) => `${name}: ${count.toLocaleString('en')}`)
  const [slowest, p99, bare] = [health.maxMs, health.p99Ms, health.bareMaxMs].map(Math.round)
  return `| ${tried.name} | ${said.join('; ')} | ${slowest} | ${p99} | ${bare} | ${peaks.service} | ${peaks.renderer} |`
}
