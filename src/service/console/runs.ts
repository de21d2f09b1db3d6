/** The runs of an account, as the console shows them. Without HTTP. */
import type { RunDetails, RunsPage, RunsUpdate } from '../../protocol/console.js'
import { KINDS } from '../../protocol/models.js'
import { LOCAL_STATUSES } from '../../protocol/run-state.js'
import { choiceIn, cursorIn, numberIn, type Query, textIn } from '../rules/query.js'
import { Refusal, refusalSaying } from '../rules/refusal.js'
import type { ConsoleStore } from '../store/console-store.js'
import { runDetails, runSummary, type ShownBy } from './run-shapes.js'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200
const MAX_SEARCH_LENGTH = 1_000
/** A URL of 16 KiB has room for more. */
const MAX_IDS = 300
const MAX_IDS_LENGTH = 12_000

/** The queries are those of requests. All throw `Refusal`: 400, 404. */
export interface ConsoleRuns {
  list(accountId: number, query: Query): Promise<RunsPage>
  updates(accountId: number, query: Query): Promise<RunsUpdate>
  find(accountId: number, id: string): Promise<RunDetails>
}

export interface ConsoleRunsOptions {
  readonly store: Pick<
    ConsoleStore,
    'listRuns' | 'findRuns' | 'latestRun' | 'listLostAttempts' | 'findAccount'
  >
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
      // One more tells whether there is another page.
      const found = await store.listRuns({ ...filter, limit: limit + 1 })
      const runs = found.slice(0, limit)
      return {
        runs: runs.map((run) => runSummary(run, shownBy())),
        next: found.length > limit ? String(runs.at(-1)?.sequence) : null,
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
        after >= latest ? [] : store.listRuns({ accountId, after, limit: MAX_LIMIT + 1 }),
        store.findAccount(accountId),
      ])
      if (account === undefined) throw new Refusal('not_found')
      const added = found.slice(0, MAX_LIMIT)
      return {
        changed: changed.map((run) => runSummary(run, shownBy())),
        added: added.map((run) => runSummary(run, shownBy())),
        next: found.length > MAX_LIMIT ? String(added.at(-1)?.sequence) : null,
        latest: String(Math.max(latest, added[0]?.sequence ?? 0)),
        balance: account.balance,
      }
    },

    async find(accountId, id) {
      const [run] = await store.findRuns([id], accountId)
      if (run === undefined) throw new Refusal('run_not_found')
      return runDetails(run, await store.listLostAttempts(run.id), shownBy())
    },
  }
}

/** `console`: runs without a key. */
const keyIn = (query: Query): number | 'console' | undefined =>
  query.key === 'console' ? 'console' : numberIn(query, 'key', 1, Number.MAX_SAFE_INTEGER)
