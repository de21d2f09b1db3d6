/** Runs as the console's endpoints send them. Pure. */
import {
  CONSOLE_PATHS,
  type RunAttempt,
  type RunDetails,
  type RunOutput,
  type RunSummary,
} from '../../protocol/console.js'
import { LOCAL_DEFAULTS } from '../../protocol/local-prices.js'
import { mediaTypeOf } from '../../protocol/output-media.js'
import { isoOrNull } from '../rules/times.js'
import type { ListedRun, LostAttempt } from '../store/console-store.js'
import { outputUrl, runObject, type StoredInput, type StoredOutput, type StoredRun } from '../stored-run.js'

const MAX_PROMPT_CHARACTERS = 500

/** Of the service. */
export interface ShownBy {
  readonly baseUrl: string
  readonly hasThumbnails: boolean
}

type ShownRun = Omit<ListedRun, 'sequence'>

export function runSummary(run: ShownRun, { baseUrl, hasThumbnails }: ShownBy): RunSummary {
  return {
    id: run.id,
    kind: run.kind,
    model: run.model,
    status: run.status,
    prompt: beginning(run.prompt ?? ''),
    aspect_ratio: run.aspectRatio ?? String(LOCAL_DEFAULTS[run.kind].aspect_ratio),
    key: run.key ?? null,
    price: run.price,
    outputs: run.status === 'succeeded' ? run.outputs.map((output) => outputBody(output, baseUrl)) : [],
    thumbnail: hasThumbnails && canHaveThumbnail(run) ? thumbnailPath(run) : null,
    error: run.failure ?? null,
    created_at: new Date(run.createdAtMs).toISOString(),
    started_at: isoOrNull(run.startedAtMs),
    finished_at: isoOrNull(run.finishedAtMs),
  }
}

/** The output that the thumbnail is made of. */
export const pictureOf = ({ outputs }: Pick<StoredRun, 'outputs'>): StoredOutput | undefined =>
  outputs.find(({ contentType }) => mediaTypeOf(contentType) === 'image')

/** The service reads the formats of reference images, and BMP is none of them. */
function canHaveThumbnail(run: Pick<StoredRun, 'outputs'>): boolean {
  const picture = pictureOf(run)
  return picture !== undefined && !/^image\/bmp\b/i.test(picture.contentType)
}

const thumbnailPath = ({ id }: Pick<StoredRun, 'id'>): string =>
  CONSOLE_PATHS.thumbnail.slice(1).replace(':id', id)

/** One run, with its input. */
export type WholeRun = ShownRun & { readonly input: StoredInput }

export const runDetails = (run: WholeRun, lost: readonly LostAttempt[], shownBy: ShownBy): RunDetails => ({
  ...runSummary(run, shownBy),
  input: run.input,
  attempts: attemptsOf(run, lost),
  service: runObject(run, shownBy.baseUrl),
})

/** Not within a pair of surrogates. */
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

/** The lost starts, then the one that finished the run or is in progress. */
export function attemptsOf(
  { status, startedAtMs, finishedAtMs }: Pick<StoredRun, 'status' | 'startedAtMs' | 'finishedAtMs'>,
  lost: readonly LostAttempt[],
): readonly RunAttempt[] {
  const before = lost.map((each) => ({
    started_at: new Date(each.startedAtMs).toISOString(),
    ended_at: isoOrNull(each.endedAtMs),
    result: each.result,
  }))
  if (startedAtMs === undefined || status === 'queued') return before
  const last: RunAttempt = {
    started_at: new Date(startedAtMs).toISOString(),
    ended_at: isoOrNull(finishedAtMs),
    result: status === 'processing' ? null : status,
  }
  return [...before, last]
}
