/** `plan_batch` and `run_batch`: run the command `rushes batch`, and return its rows and its summary. */
import { dirname, join } from 'node:path'
import { isObject } from '../../protocol/parse.js'
import type { BatchFlags } from '../batch/options.js'
import { type Answer, type Json, leftJson, type ResultFile } from './answers.js'
import { fileIn } from './call-paths.js'
import type { Call, Job, McpSession } from './session.js'

/** Maximum number of rows in an answer: more would fill an agent's context. */
const MAX_ROWS = 100

export async function planBatch(session: McpSession, call: Call): Promise<Answer> {
  const job = await session.finish(call, (own) => batch(session, call, own, { dryRun: true }))
  return answerOf(session, call, job)
}

export async function runBatch(session: McpSession, call: Call): Promise<Answer> {
  const job = session.join(`manifest ${manifestOf(session, call)}`, JSON.stringify(call.args), (own) =>
    batch(session, call, own, { overwrite: call.args.overwrite === true }),
  )
  const isOld = job.isDone
  await session.wait([job], call)
  const next = isOld ? [RESULT_OF_EARLIER] : job.isDone ? [] : [STILL_RUNNING]
  return { ...(await answerOf(session, call, job)), next }
}

const STILL_RUNNING =
  'The batch is still running. Call run_batch again with the same arguments to continue waiting. Nothing is paid twice.'
const RESULT_OF_EARLIER =
  'This is the result of the batch that an earlier call started. Call run_batch again, without force, to continue.'

const manifestOf = ({ options }: McpSession, { args }: Call): string =>
  fileIn(options, String(args.manifest), 'manifest')

async function batch(session: McpSession, call: Call, { ctx }: Job, flags: BatchFlags): Promise<number> {
  const { options, commands } = session
  const { only, force } = call.args
  return commands.batch(ctx, {
    manifest: manifestOf(session, call),
    limit: await session.limit(),
    flags: {
      ...flags,
      ...(Array.isArray(only) && { only }),
      force: force === true,
      allowOutside: options.allowOutside,
    },
    // A manifest must not send a file that the agent could not name itself.
    onMedia: (path, parameter) => void fileIn(options, path, parameter),
  })
}

/** Answers with the summary, and with the rows that are not up to date. */
async function answerOf(session: McpSession, call: Call, job: Job): Promise<Answer> {
  const { isDone, errors, warnings } = job
  const folder = dirname(manifestOf(session, call))
  const lines = job.objects.filter(isObject)
  const last = lines.find(({ summary }) => isObject(summary))
  const rows = lines
    .filter((line) => line !== last && line.action !== 'up_to_date' && line.action !== 'skip')
    .map(({ file, ...row }): Json => ({ ...row, file: typeof file === 'string' ? join(folder, file) : null }))
  if (last === undefined && rows.length === 0 && errors.length > 0) return { errors, warnings }
  const shown = rows.slice(0, MAX_ROWS)
  return {
    structured: {
      is_running: !isDone,
      ...leftJson(await session.limit()),
      summary: last?.summary ?? null,
      rows: shown,
      rows_left_out: rows.length - shown.length,
    },
    warnings,
    errors: isDone ? errors : [],
    files: shown.flatMap(filesOf),
  }
}

const filesOf = ({ file: path, bytes, content_type }: Json): readonly ResultFile[] =>
  typeof path === 'string' && typeof bytes === 'number' && typeof content_type === 'string'
    ? [{ path, bytes, content_type }]
    : []
