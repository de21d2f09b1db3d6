/** `plan_batch` and `run_batch`: run the command `rushes batch`, and return its rows and its summary. */
import { dirname, join } from 'node:path'
import { usageError } from '../../errors.js'
import { isObject } from '../../protocol/parse.js'
import { printableJson } from '../../protocol/text.js'
import type { BatchFlags } from '../batch/options.js'
import type { CostLimit } from '../models/cost-limit.js'
import { type Answer, leftJson, type ResultFile } from './answers.js'
import { fileIn } from './call-paths.js'
import type { Call, Job, McpSession } from './session.js'

/** Maximum number of rows in an answer: more would fill an agent's context. */
const MAX_ROWS = 100
const MAX_LINKS = 20

export async function planBatch(session: McpSession, call: Call): Promise<Answer> {
  const limit = await session.limit()
  const job = startBatch(session, call, limit, { dryRun: true }, {})
  await session.finish([job], call)
  const { errors, warnings } = job
  const { rows, summary } = resultsOf(job)
  if (summary === undefined) return { errors, warnings }
  const open = rows.filter(({ action }) => action !== 'up_to_date' && action !== 'skip')
  const structured = { create: summary.create, ...leftJson(limit), summary, ...limited(open) }
  return { structured, errors, warnings }
}

export async function runBatch(session: McpSession, call: Call): Promise<Answer> {
  const { batches } = session
  const limit = await session.limit()
  const manifest = manifestOf(session, call)
  const asked = JSON.stringify(call.args)
  const earlier = batches.get(manifest)
  const isSame = earlier?.isStopped === false && earlier.options.asked === asked
  if (earlier?.isStopped === false && !isSame && !earlier.isDone)
    throw usageError(
      'A batch of this manifest is still running with other arguments.',
      'Call run_batch with the arguments of that call to wait for it.',
    )
  const isOld = isSame && earlier.isDone
  const flags = { overwrite: call.args.overwrite === true }
  const job = isSame ? earlier : startBatch(session, call, limit, flags, { asked, after: earlier })
  batches.set(manifest, job)
  const isDone = await session.wait([job], call)
  // Another call may have started the next batch.
  if (isDone && batches.get(manifest) === job) batches.delete(manifest)
  const { errors, warnings } = job
  const { rows, summary = null } = resultsOf(job)
  if (summary === null && rows.length === 0 && errors.length > 0) return { errors, warnings }
  const folder = dirname(manifest)
  const { rows: shown, rows_left_out } = limited(rows)
  const found = shown.map((row) =>
    typeof row.file === 'string' ? { ...row, file: join(folder, row.file) } : row,
  )
  const structured = { is_running: !isDone, ...leftJson(limit), summary, rows: found, rows_left_out }
  const next = isOld ? RESULT_OF_EARLIER : isDone ? [] : STILL_RUNNING
  return {
    lines: [...next, printableJson(structured)],
    structured,
    warnings,
    errors: isDone ? errors : [],
    files: filesOf(found),
  }
}

const STILL_RUNNING = [
  'The batch is still running. Call run_batch again with the same arguments to continue waiting. Nothing is paid twice.',
]
const RESULT_OF_EARLIER = [
  'This is the result of the batch that an earlier call started. Call run_batch again, without force, to continue.',
]

const manifestOf = ({ options }: McpSession, { args }: Call): string =>
  fileIn(options, String(args.manifest), 'manifest')

function startBatch(
  session: McpSession,
  call: Call,
  limit: CostLimit,
  flags: BatchFlags,
  options: { readonly asked?: string; readonly after?: Job | undefined },
): Job {
  const { only, force } = call.args
  const request = {
    manifest: manifestOf(session, call),
    limit,
    flags: {
      ...flags,
      ...(Array.isArray(only) && { only }),
      force: force === true,
      allowOutside: session.options.allowOutside,
    },
    // A manifest must not send a file that the agent could not name itself.
    onMedia: (path: string, parameter: string) => void fileIn(session.options, path, parameter),
  }
  return session.start(options, (job) => session.commands.batch(job.ctx, { ...request, observer: job }))
}

type Row = Readonly<Record<string, unknown>>

function resultsOf({ objects }: Job): { readonly rows: readonly Row[]; readonly summary: Row | undefined } {
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

const filesOf = (rows: readonly Row[]): readonly ResultFile[] =>
  rows
    .flatMap(({ file, bytes, content_type }) =>
      typeof file === 'string' && typeof bytes === 'number' && typeof content_type === 'string'
        ? [{ path: file, bytes, content_type }]
        : [],
    )
    .slice(0, MAX_LINKS)
