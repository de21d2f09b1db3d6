/** The runs of an account, as the console lists and shows them. Without HTTP. */
import {
  CONSOLE_PATHS,
  type RunDetails,
  type RunOutput,
  type RunSummary,
  type RunsPage,
} from '../../protocol/console.js'
import { mediaTypeOf } from '../../protocol/media.js'
import { KINDS, type ModelDocument } from '../../protocol/models.js'
import { isSentImage } from '../../protocol/parameters.js'
import { defaultsOf } from '../../protocol/price.js'
import { LOCAL_STATUSES } from '../../protocol/run-state.js'
import { choiceIn, cursorIn, numberIn, type Query, textIn } from '../rules/console-requests.js'
import { invalidInput, Refusal, refusalSaying } from '../rules/refusal.js'
import { isoOrNull } from '../rules/times.js'
import type { ListedRun } from '../store/console-store.js'
import type { ServiceStore } from '../store/contract.js'
import { aspectRatioOf, promptOf } from '../store/rows.js'
import {
  inputKey,
  outputUrl,
  type RenderState,
  runObject,
  type StoredFile,
  type StoredInput,
  type StoredOutput,
  type StoredRun,
} from '../stored-run.js'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 100
const MAX_SEARCH_LENGTH = 1_000
const MAX_IDS = 100
const MAX_IDS_LENGTH = 6_000
const MAX_PROMPT_CHARACTERS = 500

/** Queries and ids are unchecked values of requests. All functions throw `Refusal`: 400, 404. */
export interface ConsoleRuns {
  list(accountId: number, query: Query): Promise<RunsPage>
  find(accountId: number, id: string): Promise<RunDetails>
  /** Returns an image that was sent with the run. `position` is its index in `image_urls`. */
  findReference(accountId: number, id: string, position: string): Promise<StoredFile>
  /**
   * Details of a run that was just created. Reads nothing from the store, since a read could fail: the run is paid, and
   * the user must get its id.
   */
  created(run: StoredRun, price: number): RunDetails
}

interface ConsoleRunsOptions {
  readonly store: ServiceStore
  readonly models: readonly ModelDocument[]
  readonly hasThumbnails: boolean
  /** Returns the progress of a run that this process renders, if it reports any. */
  renderStateOf(id: string): RenderState | undefined
  baseUrl(): string
}

export function createConsoleRuns(options: ConsoleRunsOptions): ConsoleRuns {
  const { store, models, hasThumbnails, renderStateOf, baseUrl } = options
  const ratios = new Map(models.map((document) => [document.name, aspectRatioOf(defaultsOf(document.input))]))
  const summary = (run: RunColumns): RunSummary => {
    const aspectRatio = run.aspectRatio ?? ratios.get(run.model) ?? undefined
    const state = run.status === 'processing' ? renderStateOf(run.id) : undefined
    return {
      ...runSummary({ ...run, aspectRatio }, baseUrl(), hasThumbnails),
      progress: state?.progress ?? null,
      queue_position: state?.queue_position ?? null,
    }
  }

  const details = (run: RunColumns & { readonly input: StoredInput }): RunDetails => ({
    ...summary(run),
    input: run.input,
    crashes: run.crashes,
    service: runObject(run, baseUrl()),
  })

  return {
    async list(accountId, query) {
      const filter = {
        accountId,
        limit: numberIn(query, 'limit', 1, MAX_LIMIT) ?? DEFAULT_LIMIT,
        before: cursorIn(query, 'before'),
        status: choiceIn(query, 'status', LOCAL_STATUSES),
        kind: choiceIn(query, 'kind', KINDS),
        model: textIn(query, 'model'),
        key: keyIn(query),
        search: textIn(query, 'search', MAX_SEARCH_LENGTH),
      }
      const ids = textIn(query, 'ids', MAX_IDS_LENGTH)?.split(',') ?? []
      if (ids.length > MAX_IDS) throw invalidInput(`ids has more than ${MAX_IDS} runs.`)
      const [{ runs, next }, changed, account] = await Promise.all([
        store.listRuns(filter),
        ids.length === 0 ? [] : store.findRuns(ids, accountId),
        store.findAccount(accountId),
      ])
      if (account === undefined) throw new Refusal('not_found')
      return {
        runs: runs.map(summary),
        next: next === undefined ? null : String(next),
        changed: changed.map(summary),
        balance: account.balance,
      }
    },

    async find(accountId, id) {
      const [listed] = await store.findRuns([id], accountId)
      const run = await store.findRun(id, accountId)
      if (listed === undefined || run === undefined) throw new Refusal('run_not_found')
      return details({ ...listed, ...run })
    },

    async findReference(accountId, id, position) {
      const run = await store.findRun(id, accountId)
      if (run === undefined) throw new Refusal('run_not_found')
      const { image_urls: sources } = run.input
      const image: unknown = Array.isArray(sources) ? sources[Number(position)] : undefined
      if (!isSentImage(image)) throw refusalSaying('not_found', 'The run was sent no image with this number.')
      const { sha256, bytes, content_type: contentType } = image
      return {
        key: inputKey(id, sha256),
        contentType,
        bytes,
        sha256,
        name: `reference-${Number(position) + 1}`,
      }
    },

    created(run, price) {
      const columns = {
        prompt: promptOf(run.input) ?? undefined,
        aspectRatio: aspectRatioOf(run.input) ?? undefined,
        key: undefined,
        price,
        isRefunded: false,
        crashes: 0,
      }
      return details({ ...run, ...columns })
    },
  }
}

/** Filter by key. `console` selects runs without a key. */
const keyIn = (query: Query): number | 'console' | undefined =>
  query.key === 'console' ? 'console' : numberIn(query, 'key', 1, Number.MAX_SAFE_INTEGER)

type RunColumns = Omit<ListedRun, 'sequence'>

function runSummary(
  run: RunColumns,
  baseUrl: string,
  hasThumbnails: boolean,
): Omit<RunSummary, 'progress' | 'queue_position'> {
  return {
    id: run.id,
    kind: run.kind,
    model: run.model,
    status: run.status,
    prompt: beginning(run.prompt ?? ''),
    aspect_ratio: run.aspectRatio ?? null,
    key: run.key ?? null,
    price: run.price,
    is_refunded: run.isRefunded,
    outputs: run.status === 'succeeded' ? run.outputs.map((output) => outputBody(output, baseUrl)) : [],
    thumbnail: hasThumbnails && canHaveThumbnail(run.outputs) ? thumbnailPath(run.id) : null,
    error: run.failure ?? null,
    created_at: new Date(run.createdAtMs).toISOString(),
    started_at: isoOrNull(run.startedAtMs),
    finished_at: isoOrNull(run.finishedAtMs),
  }
}

/** The output that the thumbnail shows. */
export const pictureOf = (outputs: readonly StoredOutput[]): StoredOutput | undefined =>
  outputs.find(({ contentType }) => mediaTypeOf(contentType) === 'image')

/** Whether the service can read the picture. It reads the formats of reference images, which do not include BMP. */
function canHaveThumbnail(outputs: readonly StoredOutput[]): boolean {
  const picture = pictureOf(outputs)
  return picture !== undefined && !/^image\/bmp\b/i.test(picture.contentType)
}

const thumbnailPath = (id: string): string => CONSOLE_PATHS.thumbnail.slice(1).replace(':id', id)

/** Start of a prompt. Does not split a surrogate pair. */
const beginning = (text: string): string =>
  [...text.slice(0, 2 * MAX_PROMPT_CHARACTERS)].slice(0, MAX_PROMPT_CHARACTERS).join('')

const outputBody = (output: StoredOutput, baseUrl: string): RunOutput => ({
  url: outputUrl(baseUrl, output),
  path: outputUrl('', output).slice(1),
  name: output.name,
  content_type: output.contentType,
  bytes: output.bytes,
  sha256: output.sha256,
})
