/** Tools for runs that exist, for what this machine knows, and for batches: each runs a command and returns its `--json`. */
import { dirname, join } from 'node:path'
import { lockFileOf } from '../../batch/lock/file.js'
import { usageError } from '../../errors.js'
import { writeJson } from '../../protocol/json.js'
import { isObject } from '../../protocol/parse.js'
import { shortened } from '../../protocol/text.js'
import type { BatchFlags } from '../batch/options.js'
import { runManifest } from '../commands/batch.js'
import { listCommand, showCommand } from '../commands/list.js'
import { modelsCommand } from '../commands/models.js'
import { cancelCommand } from '../commands/status.js'
import { revisit } from '../runs/carry-out.js'
import { selectNamed } from '../runs/journal-rows.js'
import { type Answer, answerWith, type Json, type ResultFile, runsAnswer } from './answers.js'
import type { Call, Job, McpSession } from './session.js'

export async function waitRuns(session: McpSession, call: Call): Promise<Answer> {
  const { output, overwrite } = call.args
  const { ids } = await selectNamed(session.ctx, call.args.ids as readonly string[])
  const named = session.outputIn(output)
  if (ids.length > 1 && !/[\\/]$/.test(named) && !named.includes('{id}'))
    throw usageError(
      `output: ${output} names one file, but ${ids.length} runs were given.`,
      'Use a folder ("assets/") or {id} in the file name ("assets/{id}.{ext}").',
    )
  const outputOf = output === undefined ? await outputsOfCreates(session) : () => undefined
  const jobs = ids.map((id) => {
    const place = outputOf(id) ?? named
    const active = [...session.jobs].find(({ run, isStopped }) => run?.id === id && !isStopped)
    if (active !== undefined && output === undefined) return active
    return session.join(
      `run ${id} for ${place}${overwrite === true ? ', replacing' : ''}`,
      '',
      async (job) => {
        job.follows = id
        await active?.done
        const delivery = { download: true, output: place, overwrite: overwrite === true }
        await revisit(job.ctx, [id], delivery, { observer: job })
      },
    )
  })
  await session.wait(jobs, call)
  return runsAnswer(jobs)
}

/** Returns a function that finds the path of a run's create, unless it is outside the folder of this server. */
async function outputsOfCreates(session: McpSession): Promise<(id: string) => string | undefined> {
  const journal = await session.ctx.openJournal()
  const address = await session.ctx.findAddress()
  return (id) => {
    const run = address === undefined ? undefined : journal.tryRead(() => journal.find(address, id))
    if (run?.output === undefined) return undefined
    try {
      return session.outputIn(run.output)
    } catch {
      return undefined
    }
  }
}

/** Sends one request to cancel for each run. */
export async function cancelRuns(session: McpSession, call: Call): Promise<Answer> {
  const ids = call.args.ids as readonly string[]
  return runsAnswer([await session.finish(call, ({ ctx }) => cancelCommand(ctx, {}, ids))])
}

export async function listRuns(session: McpSession, call: Call): Promise<Answer> {
  const { limit = 20, everywhere, ...filter } = call.args
  const options = { ...filter, limit: String(limit), here: everywhere !== true }
  const job = await session.finish(call, ({ ctx }) => listCommand(ctx, options))
  return answerWith(job, (runs) => ({ runs: runs.map(briefOf) }))
}

/** Maximum length of a prompt in a list, in characters. */
const MAX_PROMPT = 120

/** A list of whole inputs and answers would fill an agent's context. */
function briefOf({ service: _service, answer: _answer, output: _output, input, ...run }: Json): Json {
  const prompt = isObject(input) && typeof input.prompt === 'string' ? input.prompt : writeJson(input ?? null)
  return { ...run, prompt: shortened(prompt, MAX_PROMPT) }
}

export async function showRun(session: McpSession, call: Call): Promise<Answer> {
  const name = String(call.args.id)
  const job = await session.finish(call, ({ ctx }) => showCommand(ctx, {}, name))
  return answerWith(job, ([run]) => ({ run }))
}

export async function listModels(session: McpSession, call: Call): Promise<Answer> {
  const name = typeof call.args.model === 'string' ? call.args.model : undefined
  const job = await session.finish(call, ({ ctx }) => modelsCommand(ctx, {}, name))
  return answerWith(job, ([found = {}]) => {
    if (name !== undefined) return { model: found }
    const models = Array.isArray(found.models) ? found.models.filter(isObject) : []
    return { models: models.map(withoutOtherInput) }
  })
}

/** The parameters of models that are not the default would fill an agent's context. */
const withoutOtherInput = ({ input, ...model }: Json): Json =>
  model.default === true || model.source === 'built-in' ? { ...model, input } : model

/** Maximum number of rows in an answer: more would fill an agent's context. */
const MAX_ROWS = 100

export async function planBatch(session: McpSession, call: Call): Promise<Answer> {
  const job = await session.finish(call, (own) => batch(session, call, own, { dryRun: true }))
  return batchAnswer(session, call, job)
}

export async function runBatch(session: McpSession, call: Call): Promise<Answer> {
  const job = session.join(`manifest ${manifestOf(session, call)}`, JSON.stringify(call.args), (own) =>
    batch(session, call, own, { overwrite: call.args.overwrite === true }),
  )
  const isOld = job.isDone
  await session.wait([job], call)
  const next = isOld ? [RESULT_OF_EARLIER] : job.isDone ? [] : [STILL_RUNNING]
  return { ...(await batchAnswer(session, call, job)), next }
}

const STILL_RUNNING =
  'The batch is still running. Call run_batch again with the same arguments to continue waiting. Nothing is paid twice.'
const RESULT_OF_EARLIER =
  'This is the result of the batch that an earlier call started. Call run_batch again to continue.'

const manifestOf = (session: McpSession, { args }: Call): string =>
  session.fileIn(String(args.manifest), 'manifest')

async function batch(session: McpSession, call: Call, { ctx }: Job, flags: BatchFlags): Promise<number> {
  const { only } = call.args
  const manifest = manifestOf(session, call)
  // It may be a link, and is written.
  session.fileIn(lockFileOf(manifest), 'lock file')
  return runManifest(ctx, {
    manifest,
    limit: await session.limit(),
    flags: {
      ...flags,
      ...(Array.isArray(only) && { only }),
    },
    // A manifest must not send a file that the agent could not name itself.
    onMedia: (path, parameter) => void session.fileIn(path, parameter),
  })
}

/** Answers with the summary, and with the rows that are not up to date. */
async function batchAnswer(session: McpSession, call: Call, job: Job): Promise<Answer> {
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
