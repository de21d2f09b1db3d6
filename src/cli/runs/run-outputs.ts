/** `-i run:<id>` and `run:<id>#2`: outputs of earlier runs as media of others. */
import type { ApiClient } from '../../client/index.js'
import { RushesError, usageError } from '../../errors.js'
import type { Fetch } from '../../host/http.js'
import type { JournalRun } from '../../journal/index.js'
import { type DownloadedFile, sourceFormOf } from '../../protocol/media.js'
import { type MediaSource, mediaSources, withMedia } from '../../protocol/media-parameters.js'
import type { ModelInput } from '../../protocol/models.js'
import { shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { plural } from '../terminal/format.js'
import { findRun, livesElsewhere } from './journal-rows.js'
import { fileAsUrl, isAvailable } from './output-files.js'
import { resumeCommand } from './resume.js'

const RUN_OUTPUT = /^run:(.+?)(?:#(\d+))?$/s

const isRunOutput = (source: unknown): source is string =>
  typeof source === 'string' && sourceFormOf(source) === 'run'

/** The parts of a `Connection` that find an output. */
interface Source {
  readonly client: ApiClient
  /** Fetch without the API key. */
  readonly fetch: Fetch
}

/**
 * Returns the input with `run:` references in its media parameters replaced by URLs, or by the downloaded file where the service no longer has
 * the output. Sends a status request for each reference, since the URL in the journal may have expired. Throws `usage`
 * if the run was not created on this machine and at this address, has not succeeded, or has no output with this number.
 */
export async function withRunOutputs(
  ctx: Context,
  service: Source,
  input: ModelInput,
  media: readonly string[],
): Promise<ModelInput> {
  const changes: MediaSource[] = []
  for (const source of mediaSources(input, media))
    if (isRunOutput(source.value)) changes.push({ ...source, value: await urlOf(ctx, service, source.value) })
  return changes.length === 0 ? input : withMedia(input, changes)
}

async function urlOf(ctx: Context, { client, fetch }: Source, source: string): Promise<string> {
  const [, name = '', number = '1'] = RUN_OUTPUT.exec(source) ?? []
  const journal = await ctx.journal()
  const run = await findRun(ctx, journal, name)
  if (run?.id === undefined || run.address !== (await ctx.address())) throw await unknownRun(ctx, source, run)
  const { id } = run
  const urls = await urlsOf(ctx, client, { source, id, run })
  const at = Number(number) - 1
  const url = urls[at]
  if (url === undefined)
    throw usageError(
      `${shortened(source)}: this run has ${plural(urls.length, 'output')}, counted from 1. Nothing was created.`,
    )
  const { clock, interrupts } = ctx
  if (await isAvailable(url, { fetch, clock, signal: interrupts.first })) return url
  let why = 'it was not downloaded'
  for (const file of filesOfOutput(journal.filesOf(run), [url, run.urls[at]], urls.length)) {
    const onDisk = await fileAsUrl({ ...file, file: file.path, reference: source })
    if ('url' in onDisk) return onDisk.url
    ;({ why } = onDisk)
  }
  throw usageError(
    `${shortened(source)}: the service does not have this output any more, and ${why}. Nothing was created.`,
    'Give another URL or file, or create the run again.',
  )
}

interface Reference {
  readonly source: string
  readonly id: string
  readonly run: JournalRun
}

/** The URLs of the run's outputs; those of the journal if the service no longer knows the run. */
async function urlsOf(
  ctx: Context,
  client: ApiClient,
  { source, id, run }: Reference,
): Promise<readonly string[]> {
  const state = await client.get(id, ctx.interrupts.first).catch((error: unknown) => {
    if (error instanceof RushesError && error.code === 'run_not_found' && run.urls.length > 0)
      return undefined
    throw error
  })
  if (state === undefined) return run.urls
  if (state.phase !== 'succeeded')
    throw usageError(
      `${shortened(source)}: this run has not succeeded (${state.status}). Nothing was created.`,
      state.phase === 'running'
        ? `Wait for it first with \`${resumeCommand({ globals: ctx.globals, delivery: [] }, 'wait', [id])}\`.`
        : undefined,
    )
  if (state.withoutUrls !== undefined)
    throw usageError(
      `${shortened(source)}: this run ended without a file: ${state.withoutUrls}. Nothing was created.`,
    )
  return state.urls
}

async function unknownRun(
  ctx: Context,
  source: string,
  elsewhere: JournalRun | undefined,
): Promise<RushesError> {
  if (elsewhere?.id !== undefined) {
    const error = await livesElsewhere(ctx, elsewhere.id, elsewhere)
    return error.with({ hint: `${error.hint} Or give the URL or the file of the output.` })
  }
  return usageError(
    `${shortened(source)}: this run was not created on this machine. Nothing was sent.`,
    '`rushes list` shows the runs of this machine. The URL or the file of the output works too.',
  )
}

/**
 * Returns the downloads of one output, newest first. `urls`: its links. The only output of a run has all files of the
 * run; of several, a file whose link is not known could be another output.
 */
const filesOfOutput = (
  files: readonly DownloadedFile[],
  urls: readonly (string | undefined)[],
  outputs: number,
): readonly DownloadedFile[] => files.filter((file) => outputs === 1 || urls.includes(file.url)).reverse()
