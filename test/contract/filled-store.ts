/** A store of a contract test, with an account and its key. */
import type { Store } from '../../src/service/store/index.js'
import type { NewKey } from '../../src/service/store/keys.js'
import type { CrashLimit, NewRun } from '../../src/service/store/run.js'
import { newRun, storedOutput } from '../support/runs.js'

/** Gives an empty store. It is called within a test. */
export type OpenStore = () => Store | Promise<Store>

/** Like `OpenStore`, with a way to change the tables behind the store's back. */
export type OpenDatabase = () => OpenedDatabase | Promise<OpenedDatabase>

interface OpenedDatabase {
  readonly store: Store
  run(sql: string): Promise<void>
}

/** The table `numbers` of a statement. Its `n` is from 1 to this number. */
export const numbers = (count: number): string =>
  `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})`

export const OUTPUT = storedOutput()
export const FAILURE = { code: 'render_failed', message: 'no' }
export const CRASHED = { code: 'renderer_crashed', message: 'gave up' }
export const crashLimit = (crashes: number): CrashLimit => ({ crashes, failure: CRASHED })

/** The account is `acme`, with these credits. */
export async function fillStore(open: OpenStore, credits = 100) {
  const store = await open()
  const accountId = await store.ensureAccount({ name: 'acme', credits, nowMs: 0 })
  let added = 0
  const addKey = (key: Partial<NewKey> = {}) =>
    store.addKey({ accountId, hash: `h${++added}`, prefix: 'rk_ci', name: 'ci', nowMs: 0, ...key })
  const keyId = await addKey()
  /** Adds a run, which is free and has no key unless it says so. Returns its id. */
  const add = async (run: Partial<NewRun> = {}): Promise<string> => {
    const { id = `run_${++added}` } = run
    await store.addRun(newRun({ accountId, createdAtMs: added, ...run, id }))
    return id
  }
  const runOf = (id: string) => store.findRun(id, accountId)
  const statusOf = async (id: string) => (await runOf(id))?.status
  const balance = async () => (await store.findAccount(accountId))?.balance
  const key = async (id = keyId) => (await store.listKeys()).find((each) => each.id === id)
  const problems = async () => (await store.verify()).problems
  return { store, accountId, addKey, keyId, add, runOf, statusOf, balance, key, problems }
}
