/** Random graphs of rows, with a service of a few functions: order, blocking, and what is paid. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLockKeeper } from '../../src/batch/lock/file.js'
import { type Lock, NO_LOCK } from '../../src/batch/lock/lock.js'
import type { Manifest } from '../../src/batch/manifest/index.js'
import { makePlan, type PlanStep } from '../../src/batch/plan/index.js'
import type { RowResult } from '../../src/batch/results/rows.js'
import type { DownloadedFile } from '../../src/download/index.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import { identityOf } from '../../src/journal/identity.js'
import type { RunState } from '../../src/protocol/run-state.js'
import { type BatchRunOptions, type BatchService, carryOutPlan } from '../../src/runs/batch.js'
import { folderWith, read } from '../batch/folder.js'
import { createManualClock } from '../support/clock.js'

interface Rows {
  /** For each row the rows that it uses, as numbers below its own. */
  readonly graph: readonly (readonly number[])[]
  /** Rows whose run fails. */
  readonly failing?: readonly number[]
  /** Rows with another prompt; their output is the same if their number is even. */
  readonly edited?: readonly number[]
  readonly claim?: BatchRunOptions['claim']
  /** Each version of the lock file, and the rows that were created. Filled during the batch. */
  readonly saved?: Lock[]
  readonly created?: string[]
}

const HELD: BatchRunOptions['claim'] = {
  check: async () => {},
  lost: new AbortController().signal,
  release: async () => {},
}

async function batch(
  { graph, failing = [], edited = [], claim = HELD, saved = [], created = [] }: Rows,
  lock: Lock,
  folder: string,
) {
  const text = graph.map((uses, at) =>
    JSON.stringify({
      name: `r${at}`,
      kind: 'image',
      prompt: `${at}${edited.includes(at) ? ' edited' : ''}`,
      ...(uses.length > 0 && { image_urls: uses.map((each) => `row:r${each}`) }),
    }),
  )
  const result = await read(text.join('\n'), { name: 'shots.jsonl', folder })
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  const manifest: Manifest = result.manifest
  const plan = await makePlan({
    manifest,
    lock,
    // No file exists: rows whose run is known are downloaded.
    flags: { force: false, forcePending: false, overwrite: false, resubmitUnconfirmed: false },
    models: { image: 'acme/still-1' },
    identity: identityOf,
    allowOutside: false,
    selects: () => true,
  })
  const clock = createManualClock()
  const tokens: (string | undefined)[] = []
  const results = new Map<string, RowResult>()
  const keeper = createLockKeeper({
    base: lock,
    lock: plan.lock,
    read: () => undefined,
    async write(next) {
      saved.push(next)
      return true
    },
    onChanged() {},
  })
  const entryOf = (id: string) => plan.steps.find(({ entry }) => id === `run_${entry.name}`)
  const service: BatchService = {
    address: 'https://api.example',
    isLocal: false,
    client: {
      async create(body, options) {
        await options?.beforeSend?.()
        const { input } = JSON.parse(Buffer.from(body as Uint8Array).toString())
        const { entry, hash } = plan.steps[Number.parseInt(input.prompt, 10)] as PlanStep
        for (const each of entry.references)
          if (each.from === 'row' && keeper.entry(each.source)?.made === undefined)
            throw new Error(`${entry.name} was created before ${each.source}`)
        if (hash !== undefined) expect(keeper.entry(entry.name)?.pending).toMatchObject({ hash })
        const pending = keeper.entry(entry.name)?.pending
        expect(pending).toMatchObject({ state: 'unconfirmed', token: expect.any(String) })
        expect(tokens).toContain(pending?.state === 'unconfirmed' && pending.token)
        created.push(entry.name)
        return { id: `run_${entry.name}`, body: {} }
      },
      follow: (id) => ({
        async poll() {
          const isFailed = failing.includes(Number(id.slice('run_r'.length)))
          const state = {
            id,
            status: isFailed ? 'failed' : 'succeeded',
            phase: isFailed ? 'failed' : 'succeeded',
            urls: [`https://cdn.example/${id}`],
          } as unknown as RunState
          return { is: 'ended', state, durationMs: undefined }
        },
        errorAtLimit: (limit) => limit,
      }),
      get: () => expect.unreachable(),
      load: () => 0,
    },
    recorder: {
      note: ({ requestId }) => {
        tokens.push(requestId)
        return { sending() {}, unsent() {}, answered() {}, accepted() {}, unknown: () => undefined }
      },
      prepare() {},
      find: () => undefined,
      filesOf: () => [],
      recordFiles() {},
      recordStatus() {},
      recordNotFound() {},
      durations: () => [],
    },
    downloader: {
      async download([output], { namer, beforeMove }) {
        if (output === undefined) throw new Error('a run has an output')
        const { entry } = entryOf(output.runId) as PlanStep
        // The bytes come from the meaning, but for the word that changes nothing in even rows.
        const isSame = Number(entry.name.slice(1)) % 2 === 0 && entry.references.length === 0
        const hash = keeper.entry(entry.name)?.pending?.hash ?? keeper.entry(entry.name)?.made?.hash ?? ''
        const [name = ''] = namer?.name([output]) ?? []
        const file: DownloadedFile = {
          path: name.replace('{ext}', 'png'),
          url: output.url,
          sha256: identityOf('', isSame ? entry.name : hash),
          bytes: 1,
          content_type: 'image/png',
        }
        await beforeMove?.(file, output)
        return [{ ok: true, file, warnings: [] }]
      },
    },
  }
  await clock.runUntil(
    carryOutPlan({
      plan,
      keeper,
      folder,
      service,
      clock,
      random: () => 0.5,
      identity: identityOf,
      manifest: undefined,
      claim,
      continuation: '',
      payAgain: () => '',
      inputOf: async ({ entry }) => entry.input,
      estimateOf: () => undefined,
      concurrency: undefined,
      timeoutMs: undefined,
      interrupts: createInterrupts(),
      signal: claim.lost,
      isChanged: () => false,
      stopsCreating: () => false,
      onGrace() {},
      onSending() {},
      onDownloaded() {},
      onSent() {},
      onStatus() {},
      onResult(result) {
        expect(results.has(result.step.entry.name)).toBe(false)
        results.set(result.step.entry.name, result)
      },
    }),
  )
  return { plan, created, results, lock: saved.at(-1) ?? lock }
}

const resultOf = (results: ReadonlyMap<string, RowResult>) => (at: number) => results.get(`r${at}`)?.result

const graphs = fc
  .array(fc.array(fc.nat(1_000), { maxLength: 3 }), { minLength: 1, maxLength: 20 })
  .map((rows) => rows.map((uses, at) => (at === 0 ? [] : [...new Set(uses.map((each) => each % at))])))

describe('rows that use each other', () => {
  it('creates each row once, after those that it uses, and blocks the users of a failed row', async () => {
    const folder = folderWith()
    await fc.assert(
      fc.asyncProperty(graphs, fc.array(fc.nat(19), { maxLength: 3 }), async (graph, failing) => {
        const { created, results } = await batch({ graph, failing }, NO_LOCK, folder)
        const result = resultOf(results)
        const lost = new Set<number>()
        for (const [at, uses] of graph.entries()) {
          const isBlocked = uses.some((each) => lost.has(each))
          const fails = failing.includes(at)
          if (isBlocked || fails) lost.add(at)
          expect(result(at)).toBe(isBlocked ? 'blocked' : fails ? 'failed' : 'created')
        }
        expect(new Set(created).size).toBe(created.length)
        expect(created.length).toBe([...results.values()].filter((each) => each.result !== 'blocked').length)
        for (const { blockedBy } of results.values())
          if (blockedBy !== undefined) expect(failing).toContain(Number(blockedBy.slice(1)))
      }),
      { numRuns: 60 },
    )
  })

  it('creates a row again only when the bytes that it uses have changed', async () => {
    const folder = folderWith()
    await fc.assert(
      fc.asyncProperty(graphs, fc.array(fc.nat(19), { maxLength: 3 }), async (graph, edited) => {
        const first = await batch({ graph }, NO_LOCK, folder)
        const { created, results } = await batch({ graph, edited }, first.lock, folder)
        const changed = new Set<number>()
        const expected: string[] = []
        for (const [at, uses] of graph.entries()) {
          const isCreated = edited.includes(at) || uses.some((each) => changed.has(each))
          if (isCreated) expected.push(`r${at}`)
          if (isCreated && !(at % 2 === 0 && uses.length === 0)) changed.add(at)
        }
        expect([...created].sort()).toEqual(expected.sort())
        // Files that are gone are downloaded without paying.
        for (const { result } of results.values()) expect(['created', 'downloaded']).toContain(result)
      }),
      { numRuns: 40 },
    )
  })

  it('may be a chain of thousands, which is blocked without an overflow', async () => {
    const graph = Array.from({ length: 3_000 }, (_, at) => (at === 0 ? [] : [at - 1]))
    const { results, created } = await batch({ graph, failing: [0] }, NO_LOCK, folderWith())
    expect(created).toEqual(['r0'])
    expect([...results.values()].filter(({ result }) => result === 'blocked')).toHaveLength(2_999)
  })
})

it('a claim that is lost after the lock file has recorded a create keeps the create back', async () => {
  const folder = folderWith()
  const lost = new AbortController()
  const claim = {
    async check() {
      lost.abort(new Error('taken over'))
      throw lost.signal.reason
    },
    lost: lost.signal,
    release: async () => {},
  }
  const saved: Lock[] = []
  const created: string[] = []
  await expect(batch({ graph: [[]], claim, saved, created }, NO_LOCK, folder)).rejects.toThrow('taken over')
  expect(saved[0]?.entries.get('r0')?.pending?.state).toBe('unconfirmed')
  expect(saved.at(-1)?.entries.size).toBe(0)
  expect(created).toEqual([])
})
