/** The runs of an account, as the console shows them. Without HTTP. */
import type { RunDetails, RunsPage, RunsUpdate } from '../../protocol/console.js'
import { priceOf } from '../../protocol/local-prices.js'
import { KINDS } from '../../protocol/models.js'
import { LOCAL_STATUSES } from '../../protocol/run-state.js'
import { choiceIn, cursorIn, numberIn, type Query, textIn } from '../rules/query.js'
import { Refusal, refusalSaying } from '../rules/refusal.js'
import type { ConsoleStore, FoundRuns } from '../store/console-store.js'
import type { Store } from '../store/contract.js'
import { aspectRatioOf, promptOf } from '../store/run-columns.js'
import type { StoredRun } from '../stored-run.js'
import { runDetails, runSummary, type ShownBy } from './run-shapes.js'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 100
const MAX_SEARCH_LENGTH = 1_000
const MAX_IDS = 100
const MAX_IDS_LENGTH = 6_000

/** The queries are those of requests. All throw `Refusal`: 400, 404. */
export interface ConsoleRuns {
  list(accountId: number, query: Query): Promise<RunsPage>
  updates(accountId: number, query: Query): Promise<RunsUpdate>
  find(accountId: number, id: string): Promise<RunDetails>
  /** Of a run that was created here. Without a read that could fail: the run is paid, and its id must arrive. */
  created(run: StoredRun): RunDetails
}

export interface ConsoleRunsOptions {
  readonly store: Pick<Store, 'findRun'> &
    Pick<ConsoleStore, 'listRuns' | 'findRuns' | 'latestRun' | 'listLostAttempts' | 'findAccount'>
  shownBy(): ShownBy
}

export function createConsoleRuns({ store, shownBy }: ConsoleRunsOptions): ConsoleRuns {
  return {
    async list(accountId, query) {
      const limit = numberIn(query, 'limit', 1, MAX_LIMIT) ?? DEFAULT_LIMIT
      const filter = {
        accountId,
        before: cursorIn(query, 'before'),
        status: choiceIn(query, 'status', LOCAL_STATUSES),
        kind: choiceIn(query, 'kind', KINDS),
        model: textIn(query, 'model'),
        key: keyIn(query),
        search: textIn(query, 'search', MAX_SEARCH_LENGTH),
      }
      // Before the list: a run that is created meanwhile is then shown twice to the page, and not never.
      const latest = await store.latestRun(accountId)
      const { runs, next } = await store.listRuns({ ...filter, limit })
      return {
        runs: runs.map((run) => runSummary(run, shownBy())),
        next: cursorOf(next),
        latest: String(latest),
      }
    },

    async updates(accountId, query) {
      const ids = textIn(query, 'ids', MAX_IDS_LENGTH)?.split(',') ?? []
      if (ids.length > MAX_IDS) throw refusalSaying('invalid_input', `ids has more than ${MAX_IDS} runs.`)
      const latest = await store.latestRun(accountId)
      const after = cursorIn(query, 'after') ?? latest
      const [changed, found, account] = await Promise.all([
        ids.length === 0 ? [] : store.findRuns(ids, accountId),
        after >= latest ? NO_RUNS : store.listRuns({ accountId, after, limit: MAX_LIMIT }),
        store.findAccount(accountId),
      ])
      if (account === undefined) throw new Refusal('not_found')
      return {
        changed: changed.map((run) => runSummary(run, shownBy())),
        added: found.runs.map((run) => runSummary(run, shownBy())),
        next: cursorOf(found.next),
        latest: String(Math.max(latest, found.runs[0]?.sequence ?? 0)),
        balance: account.balance,
      }
    },

    async find(accountId, id) {
      const [listed] = await store.findRuns([id], accountId)
      const run = await store.findRun(id, accountId)
      if (listed === undefined || run === undefined) throw new Refusal('run_not_found')
      return runDetails({ ...listed, ...run }, await store.listLostAttempts(id), shownBy())
    },

    created(run) {
      const columns = {
        prompt: promptOf(run.input) ?? undefined,
        aspectRatio: aspectRatioOf(run.input) ?? undefined,
        key: undefined,
        price: priceOf(run.kind, run.input),
      }
      return runDetails({ ...run, ...columns }, [], shownBy())
    },
  }
}

const NO_RUNS: FoundRuns = { runs: [], next: undefined }

const cursorOf = (next: number | undefined): string | null => (next === undefined ? null : String(next))

/** `console`: runs without a key. */
const keyIn = (query: Query): number | 'console' | undefined =>
  query.key === 'console' ? 'console' : numberIn(query, 'key', 1, Number.MAX_SAFE_INTEGER)
