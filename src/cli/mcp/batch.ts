/** `plan_batch` and `run_batch`: run the command `rushes batch`, and return its rows. */
import { dirname, join } from 'node:path'
import { usageError } from '../../errors.js'
import { sha256OfFile } from '../../host/files.js'
import { isObject } from '../../protocol/parse.js'
import { amountText, inMillionths } from '../../protocol/price.js'
import { plural } from '../terminal/format.js'
import { type Answer, errorAnswer, leftJson, leftText, type ResultFile, shownPath } from './answers.js'
import { fileIn } from './call-paths.js'
import type { Call, Job, McpSession } from './session.js'
import type { Commands } from './tools.js'

/** Maximum number of rows in an answer: more would fill an agent's context. */
const MAX_ROWS = 100
const MAX_LINKS = 20

/** Returns the path of the manifest and the flags that both tools have. */
function requestOf({ options }: McpSession, { args }: Call) {
  return {
    manifest: fileIn(options, String(args.manifest), 'manifest'),
    flags: {
      ...(Array.isArray(args.only) && args.only.length > 0 && { only: args.only as readonly string[] }),
      force: args.force === true,
      allowOutside: options.allowOutside,
    },
    // A manifest must not send a file that the agent could not name itself.
    onMedia: (path: string, parameter: string) => void fileIn(options, path, parameter),
  }
}

export async function planBatch(session: McpSession, call: Call, { batch }: Commands): Promise<Answer> {
  const request = requestOf(session, call)
  const limit = await session.limit()
  const job = session.start({}, (ctx) =>
    batch(ctx, { ...request, flags: { ...request.flags, dryRun: true }, limit }),
  )
  if ((await session.wait(job.done, call, [job])) === 'late') {
    job.stop('SIGTERM')
    throw usageError(
      'The plan is not ready after 45 s. Nothing was sent.',
      'Call plan_batch for some of the runs, with `only`.',
    )
  }
  const { rows, summary } = partsOf(job)
  if (summary === undefined) return errorAnswer(job)
  const create = Number(summary.create ?? 0)
  const open = limited(rows.filter(({ action }) => action !== 'up_to_date' && action !== 'skip'))
  return {
    lines: [
      `${create} of ${Number(summary.total ?? 0)} runs would be created${estimateOf(summary)}; ${leftText(limit)}.`,
      ...open.rows.map(({ action, name, file, reason }) =>
        [action, name, shownFile(file), reason ?? ''].join(' | '),
      ),
      ...(open.rows_left_out > 0 ? [`and ${open.rows_left_out} more runs`] : []),
    ],
    structured: { create, ...leftJson(limit), summary, ...open },
    errors: job.errors,
    warnings: job.warnings,
  }
}

interface StartedBatch {
  readonly job: Job
  /** Hash of the manifest, as it was when the batch started. */
  readonly content: string
}

/**
 * Batches by manifest, until a call has received their result. Another batch would pay again for rows that failed.
 */
export type StartedBatches = Map<string, StartedBatch>

export async function runBatch(
  session: McpSession,
  started: StartedBatches,
  call: Call,
  { batch }: Commands,
): Promise<Answer> {
  const request = requestOf(session, call)
  const { manifest, flags } = request
  const { max_runs, concurrency, fail_fast, overwrite } = call.args
  const limit = await session.limit()
  const asked = JSON.stringify([flags, max_runs, concurrency, fail_fast, overwrite])
  await untilStopped(session, started, manifest, call)
  // The batch reports a manifest that cannot be read.
  const content = await sha256OfFile(manifest).catch(() => '')
  const earlier = earlierBatch(started.get(manifest), asked)
  const isOld = earlier?.job.isDone === true
  const { runs: left = 0 } = limit.left
  const own = earlier ?? {
    content,
    job: session.start({ asked }, (ctx, observer) =>
      batch(ctx, {
        ...request,
        ...{ limit, observer },
        flags: {
          ...flags,
          maxRuns: String(typeof max_runs === 'number' ? Math.min(max_runs, left) : left),
          failFast: fail_fast === true,
          overwrite: overwrite === true,
          ...(typeof concurrency === 'number' && { concurrency: String(concurrency) }),
        },
      }),
    ),
  }
  started.set(manifest, own)
  const { job } = own
  const isDone = (await session.wait(job.done, call, [job])) === 'done'
  // Another call may have started the next batch.
  if (isDone && started.get(manifest) === own) started.delete(manifest)
  const again = flags.force ? 'run_batch again without force, which would pay again,' : 'run_batch again'
  const { rows, summary } = partsOf(job)
  const listed = limited(
    rows.map((row) =>
      typeof row.file === 'string' ? { ...row, file: join(dirname(manifest), row.file) } : row,
    ),
  )
  if (summary === undefined && rows.length === 0 && job.errors.length > 0) return errorAnswer(job)
  return {
    lines: [
      ...(isOld
        ? [`This is the result of the batch that an earlier call started. Call ${again} to continue.`]
        : []),
      isDone
        ? `${countsOf(summary)}${estimateOf(summary)}; ${leftText(limit)}`
        : `The batch is still running; ${plural(rows.length, 'run')} finished. Call run_batch again with the same ` +
          'arguments to continue waiting. Nothing is paid twice.',
      ...listed.rows.map(({ result, name, file, run }) =>
        [result, name, shownFile(file), run ?? ''].join(' | '),
      ),
    ],
    structured: { is_running: !isDone, ...leftJson(limit), summary: summary ?? null, ...listed },
    warnings: own.content === content ? job.warnings : [...job.warnings, changedWarning(again)],
    errors: isDone ? job.errors : [],
    files: filesOf(listed.rows),
  }
}

/** Waits until a cancelled batch has ended: it finishes its last creates, and holds the claim on the manifest until then. */
async function untilStopped(session: McpSession, started: StartedBatches, manifest: string, call: Call) {
  const earlier = started.get(manifest)
  if (earlier === undefined || !earlier.job.isStopped) return
  if ((await session.wait(earlier.job.done, call, [])) === 'late')
    throw usageError(
      'The canceled batch of this manifest has not ended yet. Nothing was sent.',
      'Call run_batch again in a few seconds.',
    )
  if (started.get(manifest) === earlier) started.delete(manifest)
}

/** Throws `usage` if a batch with other arguments is still running. */
function earlierBatch(earlier: StartedBatch | undefined, asked: string): StartedBatch | undefined {
  if (earlier === undefined || earlier.job.options.asked === asked) return earlier
  if (earlier.job.isDone) return undefined
  throw usageError(
    'A batch of this manifest is still running with other arguments.',
    'Call run_batch with the arguments of that call to wait for it.',
  )
}

type Row = Readonly<Record<string, unknown>>

function partsOf({ objects }: Job): { readonly rows: readonly Row[]; readonly summary: Row | undefined } {
  const lines = objects.filter(isObject)
  const last = lines.find((line) => isObject(line.summary))
  return {
    rows: lines.filter((line) => line !== last),
    summary: isObject(last?.summary) ? last.summary : undefined,
  }
}

const limited = (rows: readonly Row[]) => ({
  rows: rows.slice(0, MAX_ROWS),
  rows_left_out: Math.max(0, rows.length - MAX_ROWS),
})

const changedWarning = (again: string): string =>
  'The manifest has changed since this batch started, and the batch does not see the change. ' +
  `When it has ended, call ${again} for the change.`

const shownFile = (file: unknown): string => (typeof file === 'string' ? shownPath(file) : 'no file')

const countsOf = (summary: Row = {}): string =>
  Object.entries(summary)
    .filter(([name, value]) => typeof value === 'number' && value !== 0 && !NO_COUNTS.includes(name))
    .map(([name, value]) => `${name.replaceAll('_', ' ')}: ${value}`)
    .join(', ')

const NO_COUNTS: readonly string[] = ['elapsed_ms', 'estimate', 'without_price']

/** `, estimate 1.2 USD (2 runs without a price)` */
function estimateOf({ estimate, currency, without_price, estimates }: Row = {}): string {
  const byModel = isObject(estimates) ? Object.values(estimates) : []
  if (byModel.length === 0) return ''
  const sum = byModel.every((each) => each === null)
    ? 'no estimate'
    : `estimate ${amountText(inMillionths(Number(estimate)), String(currency))}`
  return `, ${sum}${without_price === 0 ? '' : ` (${plural(Number(without_price), 'run')} without a price)`}`
}

const filesOf = (rows: readonly Row[]): readonly ResultFile[] =>
  rows
    .flatMap(({ file, bytes, content_type }) =>
      typeof file === 'string' && typeof bytes === 'number' && typeof content_type === 'string'
        ? [{ path: file, bytes, content_type }]
        : [],
    )
    .slice(0, MAX_LINKS)
