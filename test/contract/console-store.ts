/** What every database keeps to about what the console reads. */
import { describe, expect, test } from 'vitest'
import { OUTCOME_UNKNOWN } from '../../src/protocol/run-state.js'
import type { EntryFilter, RunFilter } from '../../src/service/store/lists.js'
import type { NewRun } from '../../src/service/store/run.js'
import { claimRun, held } from '../support/runs.js'
import { FAILURE, fillStore, numbers, type OpenDatabase, OUTPUT } from './filled-store.js'

const DAY_MS = 86_400_000

export function consoleContract(open: OpenDatabase): void {
  async function fill() {
    const database = await open()
    const filled = await fillStore(() => database.store, 1_000)
    const { store, accountId, keyId } = filled
    const otherId = await store.ensureAccount({ name: 'other', credits: 1_000, nowMs: 0 })
    const add = (id: string, run: Partial<NewRun> = {}, prompt = 'a fox') =>
      filled.add({ id, keyId, model: 'acme/small', price: 2, createdAtMs: 1, input: { prompt }, ...run })
    const fail = async (id: string, failure = FAILURE, nowMs = 9) => {
      await claimRun(store, 'me', { only: [id] })
      await store.failRun(held(id, 'me', nowMs), failure)
    }
    const list = (filter: Partial<RunFilter> = {}) => store.listRuns({ accountId, limit: 100, ...filter })
    const theirs = { accountId: otherId, keyId: undefined }
    return { ...filled, run: database.run, theirs, add, fail, list }
  }

  describe('the runs of an account', () => {
    test('have what the pages show, without their input', async () => {
      const { store, accountId, theirs, keyId, add, list } = await fill()
      await add('one')
      await claimRun(store, 'me')
      const outputs = ['a.png', 'b.png'].map((name) => ({ ...OUTPUT, name }))
      await store.finishRun(held('one'), outputs)
      await add('theirs', theirs)
      const { runs, next } = await list()
      expect(next).toBeUndefined()
      expect(runs).toEqual([
        {
          id: 'one',
          sequence: expect.any(Number),
          accountId,
          account: 'acme',
          key: { id: keyId, name: 'ci' },
          model: 'acme/small',
          kind: 'image',
          prompt: 'a fox',
          aspectRatio: undefined,
          price: 2,
          isRefunded: false,
          status: 'succeeded',
          outputs,
          failure: undefined,
          isRemoved: false,
          createdAtMs: 1,
          startedAtMs: 5,
          finishedAtMs: 9,
        },
      ])
      expect(await store.findRuns(['one', 'theirs', 'none', 'o\0'], accountId)).toEqual(runs)
    })

    test('show 1,000 characters of the prompt, none cut in half, and the aspect ratio that was sent', async () => {
      const { add, list, runOf } = await fill()
      const prompt = `${'🦊'.repeat(999)}ab`
      await add('long', { input: { prompt, aspect_ratio: '16:9', image_urls: [] } })
      await add('odd', { input: { prompt: 7, aspect_ratio: 16 } })
      expect((await list()).runs.map(({ prompt, aspectRatio }) => [prompt, aspectRatio])).toEqual([
        [undefined, undefined],
        [`${'🦊'.repeat(999)}a`, '16:9'],
      ])
      expect(await runOf('long')).toMatchObject({ input: { prompt } })
    })

    test('a page of a search reads 2,000 runs, and returns where to continue even without a match', async () => {
      const { run, theirs, add, list } = await fill()
      const addMany = (count: number) =>
        run(`INSERT INTO runs (id, account_id, model, kind, input, price, status, turn, created_at)
          ${numbers(count)} SELECT 'run ${count} ' || n, 1, 'm', 'image', '{}', 0, 'succeeded', 0, 1 FROM numbers`)
      await add('first', {}, 'a grey heron')
      await addMany(1_000)
      await add('theirs', { ...theirs, price: 0 }, 'a heron')
      await add('middle', {}, 'a heron')
      await addMany(1_500)
      const page = async (search: string, before?: number, limit = 100) => {
        const { runs, next } = await list({ before, limit, search })
        return { ids: runs.map(({ id }) => id), next }
      }
      for (const [search, ids] of [
        ['heron', ['middle']],
        ['grey', []],
      ] as const) {
        const newest = await page(search)
        expect(newest).toEqual({ ids, next: expect.any(Number) })
        expect(await page(search, newest.next)).toEqual({ ids: ['first'], next: undefined })
      }
      // A full page continues after its last run.
      const full = await page('heron', undefined, 1)
      expect(full).toEqual({ ids: ['middle'], next: expect.any(Number) })
      expect((await page('heron', full.next, 1)).ids).toEqual(['first'])
    })

    test('a search finds a part of the prompt, in any case', async () => {
      const { add, list } = await fill()
      const count = async (search: string) => (await list({ search })).runs.length
      const prompt = `a quick "brown" _fox 🦊 at 100 % in C:\\temp\\n, it's İstanbul,\nline\nbreak, Straße`
      await add('found', {}, prompt)
      for (const search of [
        ...['Quick "brown"', 'QUICK', '100 %', '%', '_fox', 'C:\\temp\\n', '\\', "it's", '🦊', 'İstanbul'],
        ...['line\nbreak', 'straße', 'STRAßE', ''],
      ])
        expect(await count(search), search).toBe(1)
      for (const search of ['100_%', 'fox_', '\\"', 'prompt']) expect(await count(search), search).toBe(0)
    })
  })

  test('a run and its error say that it was refunded, after a failure or by an operator', async () => {
    const { store, add, fail, list, runOf } = await fill()
    const ends = { failed: 'render_failed', unknown: OUTCOME_UNKNOWN }
    for (const [id, code] of Object.entries(ends)) {
      await add(id)
      await fail(id, { code, message: 'It failed.' })
    }
    const seen = async () =>
      await Promise.all(
        (await list()).runs.map(async ({ id, isRefunded }) => [
          isRefunded,
          (await runOf(id))?.failure?.message,
        ]),
      )
    const refunded = [true, 'It failed. Its price was refunded.']
    const kept = 'It failed. Its price was not refunded, because the provider may have charged for it.'
    expect(await seen()).toEqual([[false, kept], refunded])
    await store.decideUnknown('unknown', { nowMs: 9 })
    expect(await seen()).toEqual([refunded, refunded])
  })

  describe('the ledger of an account', () => {
    test('can be listed newest first, and paged', async () => {
      const { store, accountId, keyId, add, fail } = await fill()
      const entries = async (filter: Partial<EntryFilter> = {}) =>
        (await store.listAccountEntries({ accountId, limit: 100, ...filter })).entries
      await add('one', { createdAtMs: 10 })
      await fail('one')
      await store.addCredits({ account: 'acme', amount: -7, nowMs: 30 }, () => {})
      const all = await entries()
      const key = { id: keyId, name: 'ci' }
      expect(all.map(({ kind, amount, runId, key }) => [kind, amount, runId, key])).toEqual([
        ['added', -7, undefined, undefined],
        ['refund', 2, 'one', key],
        ['charge', -2, 'one', key],
        ['added', 1_000, undefined, undefined],
      ])
      expect(all[1]).toMatchObject({ account: 'acme', createdAtMs: 9, keyId })
      expect(await entries({ limit: 2, before: all[0]?.sequence })).toEqual(all.slice(1, 3))
    })

    test('gives the net cost and the number of runs of each day in UTC', async () => {
      const { store, accountId, theirs, add, fail } = await fill()
      const day = Date.UTC(2026, 0, 31)
      await add('last', { createdAtMs: day - 1, price: 1 })
      await add('first', { createdAtMs: day, price: 2 })
      await add('late', { createdAtMs: day + DAY_MS - 1, price: 4 })
      await add('free', { createdAtMs: day + 1, price: 0 })
      await add('theirs', { createdAtMs: day, ...theirs })
      await add('next', { createdAtMs: day + 2 * DAY_MS, price: 8 })
      // Refunded on a day without a charge.
      await fail('late', FAILURE, day + 5 * DAY_MS)
      await store.addCredits({ account: 'acme', amount: 5, nowMs: day + 9 * DAY_MS }, () => {})
      const days = [
        { day: '2026-01-30', credits: 1, runs: 1 },
        { day: '2026-01-31', credits: 6, runs: 2 },
        { day: '2026-02-02', credits: 8, runs: 1 },
        { day: '2026-02-05', credits: -4, runs: 0 },
      ]
      expect(await store.spendPerDay(accountId, 0)).toEqual(days)
      expect(await store.spendPerDay(accountId, day)).toEqual(days.slice(1))
    })
  })
}
