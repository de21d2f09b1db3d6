/** Tools for runs that exist, and for what this machine knows: each runs a command and returns its `--json`. */
import { usageError } from '../../errors.js'
import { writeJson } from '../../protocol/json.js'
import { isObject } from '../../protocol/parse.js'
import { printable, shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { labelsOf } from '../flags/labels.js'
import { idsNamed, selectIds } from '../runs/journal-rows.js'
import { revisit } from '../runs/revisit.js'
import { type Answer, leftJson, runsAnswer } from './answers.js'
import { outputIn } from './call-paths.js'
import type { Call, Delivery, Job, McpSession } from './session.js'

const idsOf = ({ ctx }: McpSession, { args }: Call): Promise<readonly string[]> =>
  idsNamed(ctx, args.ids as readonly string[])

export async function waitRuns(session: McpSession, call: Call): Promise<Answer> {
  const ids = await idsOf(session, call)
  const { output, overwrite } = call.args
  const place = outputIn(session.options, output)
  if (ids.length > 1 && !/[\\/]$/.test(place) && !place.includes('{id}'))
    throw usageError(
      `output: ${output} names one file, but ${ids.length} runs were given.`,
      'Use a folder ("assets/") or {id} in the file name ("assets/{id}.{ext}").',
    )
  const jobs = ids.map((id) => {
    const saved = output === undefined ? session.deliveries.get(id) : undefined
    return followRun(session, id, {
      output: saved?.output ?? place,
      overwrite: overwrite === true || saved?.overwrite === true,
    })
  })
  await session.wait(jobs, call)
  return runsAnswer(jobs)
}

/** Returns the job that already follows the run. One with another output ends first. */
function followRun(session: McpSession, id: string, delivery: Delivery): Job {
  const active = [...session.jobs].find((job) => job.ids[0] === id && job.options.delivery !== undefined)
  const { output, overwrite } = active?.options.delivery ?? {}
  const isSame = output === delivery.output && overwrite === delivery.overwrite
  if (active !== undefined && isSame && !active.isStopped) return active
  return session.start({ id, delivery, after: active }, async (job) => {
    const { ctx } = await selectIds(job.ctx, [id])
    await revisit(ctx, [id], { ...delivery, download: true }, { observer: job })
  })
}

/** Sends one request to cancel for each run. */
export async function cancelRuns(session: McpSession, call: Call): Promise<Answer> {
  const jobs = (await idsOf(session, call)).map((id) =>
    session.start({ id }, (job) => session.commands.cancel(job.ctx, id, job.onState)),
  )
  await session.finish(jobs, call)
  return runsAnswer(jobs)
}

/** Runs a command, and returns the objects that it printed. */
async function printed(session: McpSession, call: Call, work: (ctx: Context) => Promise<unknown>) {
  const job = session.start({}, ({ ctx }) => work(ctx))
  await session.finish([job], call)
  return { objects: job.objects.filter(isObject), errors: job.errors, warnings: job.warnings }
}

export async function listRuns(session: McpSession, call: Call): Promise<Answer> {
  const { limit = 20, everywhere, labels = [], ...filters } = call.args
  const options = {
    ...filters,
    limit: String(limit),
    here: everywhere !== true,
    label: labelsOf(labels as readonly string[], 'labels'),
  }
  const { objects, ...others } = await printed(session, call, (ctx) => session.commands.list(ctx, options))
  return others.errors.length > 0 ? others : { structured: { runs: objects.map(briefOf) }, ...others }
}

const BRIEF = 'id key request_id status kind model created_at address estimate currency labels'.split(' ')
/** Maximum length of a prompt in a list, in characters. */
const MAX_PROMPT = 120

const briefOf = (line: Readonly<Record<string, unknown>>) => ({
  ...Object.fromEntries(BRIEF.map((key) => [key, line[key]])),
  prompt: shortened(promptIn(line.input), MAX_PROMPT),
  files: Array.isArray(line.files) ? line.files.map(({ path }) => path) : [],
})

const promptIn = (input: unknown): string =>
  printable(isObject(input) && typeof input.prompt === 'string' ? input.prompt : writeJson(input ?? null))

export async function showRun(session: McpSession, call: Call): Promise<Answer> {
  const id = String(call.args.id)
  const { objects, ...others } = await printed(session, call, (ctx) => session.commands.show(ctx, id))
  const [run] = objects
  return run === undefined ? others : { structured: { run }, ...others }
}

/** Maximum number of models in a list. */
const MAX_MODELS = 200

export async function listModels(session: McpSession, call: Call): Promise<Answer> {
  const name = typeof call.args.model === 'string' ? call.args.model : undefined
  const { objects, ...others } = await printed(session, call, (ctx) => session.commands.models(ctx, name))
  const [found] = objects
  if (found === undefined) return others
  const left = leftJson(await session.limit())
  if (name !== undefined) return { structured: { model: found, ...left }, ...others }
  const all = (Array.isArray(found.models) ? found.models : []).filter(isObject)
  const models = all
    .slice(0, MAX_MODELS)
    .map(({ input, ...model }) =>
      model.default === true || model.source === 'built-in' ? { ...model, input } : model,
    )
  return { structured: { models, ...left }, ...others }
}
