/** `plan_batch` and `run_batch`: run the command `rushes batch`, and return its rows. */
import { dirname, join } from 'node:path'
import { usageError } from '../../errors.js'
import { sha256OfFile } from '../../host/files.js'
import { isObject } from '../../protocol/parse.js'
import type { BatchFlags } from '../batch/options.js'
import { batchCommand } from '../commands/batch.js'
import { plural } from '../terminal/format.js'
import { type Allowance, createShare, leftJson, leftText } from './allowance.js'
import { errorAnswer, errorResult, notReady } from './answers.js'
import { type CollectedOutput, interrupt, type JobOutcome } from './job.js'
import { type JobKey, type McpSession, moneyOf, type SessionTask, startTask, waitFor } from './session.js'
import { type Answer, type Call, type ResultFile, shownPath } from './tool.js'

/** Maximum number of rows in an answer: more would fill an agent's context. */
const MAX_ROWS = 100
const MAX_ERRORS = 5
const MAX_LINKS = 20

interface ManifestCall {
  readonly path: string
  readonly flags: BatchFlags
}

function manifestOf({ state: { paths, options } }: McpSession, { args }: Call): ManifestCall {
  const only = Array.isArray(args.only) && args.only.length > 0 ? { only: args.only } : {}
  return {
    path: paths.file(String(args.manifest), 'manifest'),
    flags: { ...only, force: args.force === true, allowOutside: options.allowOutside },
  }
}

/**
 * Refuses media outside the folder of the server: a manifest must not send a file that the agent could not name
 * itself.
 */
const onMediaIn =
  ({ state: { paths } }: McpSession) =>
  (path: string, parameter: string): void =>
    void paths.file(path, parameter)

export async function planBatch(session: McpSession, call: Call): Promise<Answer> {
  const { path, flags } = manifestOf(session, call)
  const { allowance } = await moneyOf(session)
  const [dryRun, onMedia] = [{ ...flags, dryRun: true }, onMediaIn(session)]
  const { job } = startTask(session, {}, (ctx) =>
    batchCommand(ctx, { manifest: path, flags: dryRun, onMedia, allowance: createShare(allowance) }),
  )
  const describe = () => 'reading the manifest'
  const waited = await waitFor(session, job.done, { call, jobs: [job], describe })
  if (waited !== 'done') {
    interrupt(job, 'SIGTERM')
    throw notReady('The plan', 'Call plan_batch for some of the rows, with `only`.')
  }
  const { errors, warnings, objects } = await job.done
  const { rows, summary } = partsOf(objects)
  const [error] = errors
  if (error !== undefined && summary === undefined) return errorAnswer(error, warnings)
  const create = Number(summary?.create ?? 0)
  const open = rows.filter(({ action }) => action !== 'up_to_date' && action !== 'skip')
  const listed = limitedRows(open)
  return {
    text: [
      `${create} of ${Number(summary?.total ?? 0)} runs would be created${estimateOf(summary)}; ${leftText(allowance)}.`,
      ...listed.rows.map(({ action, name, file, reason }) =>
        [action, name, shownFile(file), reason ?? ''].join(' | '),
      ),
      ...(listed.rows_left_out > 0 ? [`and ${listed.rows_left_out} more rows`] : []),
      ...(error === undefined ? [] : [JSON.stringify({ error: errorResult(error) })]),
      ...warnings.map((warning) => `warning: ${warning}`),
    ].join('\n'),
    structured: {
      create,
      ...leftJson(allowance),
      summary: summary ?? {},
      ...listed,
      warnings,
      ...(error === undefined ? {} : { error: errorResult(error) }),
    },
    isError: error !== undefined,
  }
}

/** Returns the hash of the manifest. Empty if the file cannot be read, which the batch reports. */
const contentOf = (manifest: string): Promise<string> => sha256OfFile(manifest).catch(() => '')

/** Results that no call has received yet. They are kept because another batch would pay again for rows that failed. */
export type Finished = Map<string, StartedTask>

interface StartedTask {
  readonly arguments: string
  readonly task: SessionTask
  /** Hash of the manifest, as it was when the batch started. */
  readonly content: string
}

export async function runBatch(session: McpSession, finished: Finished, call: Call): Promise<Answer> {
  const { path, flags } = manifestOf(session, call)
  const { max_runs, concurrency, fail_fast, overwrite } = call.args
  const { allowance } = await moneyOf(session)
  const key = {
    name: `batch ${path}`,
    arguments: JSON.stringify([flags, max_runs, concurrency, fail_fast, overwrite]),
  }
  await untilStopped(session, finished, key, call)
  const content = await contentOf(path)
  const earlier = continued(finished, key)
  const isOld = earlier?.task.job.isDone === true
  const started = earlier ?? { arguments: key.arguments, task: startBatch(), content }
  const { task } = started
  const { job } = task
  finished.set(key.name, started)
  const waited = await waitFor(session, job.done, {
    call,
    jobs: [job],
    describe: () =>
      `${plural(partsOf(job.collected.objects).rows.length, 'row')} finished, ${plural(job.created.length, 'run')} created`,
  })
  if (waited === 'done') forget(finished, key, task)
  return batchAnswer(job.isDone ? await job.done : undefined, {
    collected: job.collected,
    folder: dirname(path),
    isOld,
    isChanged: started.content !== content,
    again: flags.force ? 'run_batch again without force, which would pay again,' : 'run_batch again',
    allowance,
  })

  function startBatch(): SessionTask {
    const { runs } = allowance.left
    const most = typeof max_runs === 'number' ? Math.min(max_runs, runs) : runs
    const share = createShare(allowance)
    return startTask(session, { key }, (ctx, observer) =>
      batchCommand(ctx, {
        allowance: share,
        observer,
        manifest: path,
        flags: {
          ...flags,
          maxRuns: String(most),
          failFast: fail_fast === true,
          overwrite: overwrite === true,
          ...(typeof concurrency === 'number' && { concurrency: String(concurrency) }),
        },
        onMedia: onMediaIn(session),
      }).finally(share.release),
    )
  }
}

/**
 * Waits until a cancelled batch has ended: it finishes its last creates, and holds the claim on the manifest until
 * then.
 */
async function untilStopped(session: McpSession, finished: Finished, key: JobKey, call: Call) {
  const task = finished.get(key.name)?.task
  if (task === undefined || !task.job.isStopped) return
  const describe = () => 'waiting until the cancelled batch has ended'
  const waited = await waitFor(session, task.job.done, { call, jobs: [], describe })
  if (waited !== 'done')
    throw usageError(
      'The batch of this manifest that was cancelled has not ended yet. Nothing was sent.',
      'Call run_batch again in a few seconds.',
    )
  forget(finished, key, task)
}

/** Removes the entry, unless another call has already started the next batch. */
function forget(finished: Finished, { name }: JobKey, task: SessionTask): void {
  if (finished.get(name)?.task === task) finished.delete(name)
}

/** Returns the batch of an earlier call. Throws `usage` if a batch with other arguments is still running. */
function continued(finished: Finished, key: JobKey): StartedTask | undefined {
  const earlier = finished.get(key.name)
  if (earlier === undefined || earlier.arguments === key.arguments) return earlier
  if (earlier.task.job.isDone) return undefined
  throw usageError(
    'A batch of this manifest is still running with other arguments.',
    'Call run_batch with the arguments of that call to wait for it.',
  )
}

interface BatchLines {
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  readonly summary: Readonly<Record<string, unknown>> | undefined
}

function partsOf(objects: readonly unknown[]): BatchLines {
  const lines = objects.filter(isObject)
  const last = lines.find((line) => isObject(line.summary))
  return {
    rows: lines.filter((line) => line !== last),
    summary: isObject(last?.summary) ? last.summary : undefined,
  }
}

const limitedRows = (rows: BatchLines['rows']) => ({
  rows: rows.slice(0, MAX_ROWS),
  rows_left_out: Math.max(0, rows.length - MAX_ROWS),
})

interface BatchAnswerOptions {
  readonly collected: CollectedOutput
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  /** Whether the batch had ended before this call. */
  readonly isOld: boolean
  /** Whether the manifest has changed since the batch started. */
  readonly isChanged: boolean
  /** The call that continues the batch and pays for no run again. */
  readonly again: string
  readonly allowance: Allowance
}

function batchAnswer(
  outcome: JobOutcome | undefined,
  { collected, folder, isOld, isChanged, again, allowance }: BatchAnswerOptions,
): Answer {
  const { objects } = collected
  const warnings = [...collected.warnings, ...(isChanged ? [changedWarning(again)] : [])]
  const { rows, summary } = partsOf(objects)
  const errors = outcome?.errors ?? []
  const [error] = errors
  if (error !== undefined && summary === undefined && rows.length === 0) return errorAnswer(error, warnings)
  const isRunning = outcome === undefined
  const listed = limitedRows(rows.map((row) => inFolder(row, folder)))
  return {
    text: [
      ...(isOld
        ? [`This is the result of the batch that an earlier call started. Call ${again} to continue.`]
        : []),
      isRunning
        ? `The batch is still running; ${plural(rows.length, 'row')} finished. Call run_batch again with the ` +
          `same arguments to continue waiting. Nothing is paid twice.`
        : `${countsOf(summary)}${estimateOf(summary)}; ${leftText(allowance)}`,
      ...listed.rows.map(({ result, name, file, run }) =>
        [result, name, shownFile(file), run ?? ''].join(' | '),
      ),
      ...errors.slice(0, MAX_ERRORS).map((each) => JSON.stringify({ error: errorResult(each) })),
      ...(errors.length > MAX_ERRORS ? [`and ${errors.length - MAX_ERRORS} more errors`] : []),
      ...warnings.map((warning) => `warning: ${warning}`),
    ].join('\n'),
    structured: {
      is_running: isRunning,
      ...leftJson(allowance),
      summary: summary ?? null,
      ...listed,
      warnings,
      ...(error === undefined ? {} : { error: errorResult(error) }),
    },
    files: filesOf(listed.rows),
    isError: error !== undefined,
  }
}

const changedWarning = (again: string): string =>
  'The manifest has changed since this batch started, and the batch does not see the change. ' +
  `When it has ended, call ${again} for the change.`

const shownFile = (file: unknown): string => (typeof file === 'string' ? shownPath(file) : 'no file')

const countsOf = (summary: BatchLines['summary']): string =>
  Object.entries(summary ?? {})
    .filter(([name, value]) => typeof value === 'number' && value !== 0 && !NO_COUNTS.includes(name))
    .map(([name, value]) => `${name.replaceAll('_', ' ')}: ${value}`)
    .join(', ')

const NO_COUNTS: readonly string[] = ['elapsed_ms', 'estimate', 'without_price']

/** `, estimate 1.2 USD (2 runs without a price)` */
function estimateOf(summary: BatchLines['summary'] = {}): string {
  const { estimate, currency, without_price, estimates } = summary
  const byModel = isObject(estimates) ? Object.values(estimates) : []
  if (byModel.length === 0) return ''
  const sum = byModel.every((each) => each === null) ? 'no estimate' : `estimate ${estimate} ${currency}`
  return `, ${sum}${without_price === 0 ? '' : ` (${plural(Number(without_price), 'run')} without a price)`}`
}

/** Returns the row with the absolute path of its file. */
const inFolder = (row: BatchLines['rows'][number], folder: string): BatchLines['rows'][number] =>
  typeof row.file === 'string' ? { ...row, file: join(folder, row.file) } : row

const filesOf = (rows: BatchLines['rows']): readonly ResultFile[] =>
  rows
    .flatMap(({ file, bytes, content_type }) =>
      typeof file === 'string' && typeof bytes === 'number' && typeof content_type === 'string'
        ? [{ path: file, bytes, content_type }]
        : [],
    )
    .slice(0, MAX_LINKS)
