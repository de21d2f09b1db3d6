/** Random graphs of rows, carried out by a service that is a few functions: order, blocking, and what is paid. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RowResult } from '../../src/batch/carry-out/rows.js'
import { createLockKeeper } from '../../src/batch/lock/file.js'
import { type Lock, NO_LOCK } from '../../src/batch/lock/lock.js'
import type { Manifest } from '../../src/batch/manifest/index.js'
import { makePlan } from '../../src/batch/plan/index.js'
import { carryOutPlan } from '../../src/cli/batch/carry-out.js'
import type { BatchService } from '../../src/cli/batch/service.js'
import { identityOf } from '../../src/journal/identity.js'
import type { RunState } from '../../src/protocol/run-state.js'
import { folderWith, read } from '../batch/folder.js'
import { createManualClock } from '../support/clock.js'

interface Rows {
  /** For each row the rows that it uses, as numbers below its own. */
  readonly graph: readonly (readonly number[])[]
  /** Rows whose run fails. */
  readonly failing?: readonly number[]
  /** Rows with another prompt; their output is the same if their number is even. */
  readonly edited?: readonly number[]
}

async function batch({ graph, failing = [], edited = [] }: Rows, lock: Lock, folder: string) {
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
  const created: string[] = []
  const results = new Map<string, RowResult>()
  let saved = lock
  const keeper = createLockKeeper({
    base: lock,
    lock: plan.lock,
    read: () => undefined,
    async write(next) {
      saved = next
      return true
    },
    onChanged() {},
  })
  const service: BatchService = {
    address: 'https://api.example',
    async submit({ entry, hash }, token, beforeSend) {
      await beforeSend()
      for (const each of entry.references)
        if (each.from === 'row' && keeper.entry(each.source)?.made === undefined)
          throw new Error(`${entry.name} was created before ${each.source}`)
      expect(keeper.entry(entry.name)?.pending).toMatchObject({ state: 'unconfirmed', hash, token })
      created.push(entry.name)
      const nowMs = clock.monotonic()
      return { is: 'created', id: `run_${entry.name}`, sentAtMs: nowMs, answeredAtMs: nowMs }
    },
    runs: {
      client: {
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
      recorder: { recordStatus() {}, recordNotFound() {}, durations: () => [] },
    },
    continuation: '',
    isWithoutUrls: () => false,
    explain: (_step, error) => error,
    async download({ entry, hash = '' }, { urls: [url = ''] }, [place]) {
      // The bytes come from the meaning, but for the word that changes nothing in even rows.
      const isEven = Number(entry.name.slice(1)) % 2 === 0
      const same = isEven && entry.references.length === 0
      const sha256 = identityOf('', same ? entry.name : hash)
      const path = (place?.path ?? '').replace('{ext}', 'png')
      const file = { path, url, sha256, bytes: 1, content_type: 'image/png' }
      return { files: [file], warnings: [] }
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
      concurrency: undefined,
      timeoutMs: undefined,
      signal: new AbortController().signal,
      mayCreate: () => true,
      stopsCreating: () => false,
      onSending() {},
      onSent() {},
      onStatus() {},
      onResult(result) {
        expect(results.has(result.step.entry.name)).toBe(false)
        results.set(result.step.entry.name, result)
      },
    }),
  )
  return { plan, created, results, lock: saved }
}

const resultOf = (results: ReadonlyMap<string, RowResult>) => (at: number) => results.get(`r${at}`)?.result

const graphs = fc
  .array(fc.array(fc.nat(1_000), { maxLength: 3 }), { minLength: 1, maxLength: 20 })
  .map((rows) => rows.map((uses, at) => (at === 0 ? [] : [...new Set(uses.map((each) => each % at))])))

describe('rows that use each other', () => {
  it('are created once, after those that they use; those of a failed row are blocked', async () => {
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

  it('are created again only where the bytes that they use are others', async () => {
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
