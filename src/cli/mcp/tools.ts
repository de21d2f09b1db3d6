/** Tools for runs that exist, and for what this machine knows: each runs a command and returns its `--json`. */
import { usageError } from '../../errors.js'
import { writeJson } from '../../protocol/json.js'
import { isObject } from '../../protocol/parse.js'
import { printable, shortened } from '../../protocol/text.js'
import { labelsOf } from '../flags/values.js'
import { selectNamed } from '../runs/journal-rows.js'
import { revisit } from '../runs/revisit.js'
import { type Answer, answerWith, type Json, leftJson, runsAnswer } from './answers.js'
import { outputIn } from './call-paths.js'
import type { Call, McpSession } from './session.js'

export async function waitRuns(session: McpSession, call: Call): Promise<Answer> {
  const { ctx, options } = session
  const { output, overwrite } = call.args
  const { ids } = await selectNamed(ctx, call.args.ids as readonly string[])
  const named = outputIn(options, output)
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
async function outputsOfCreates({ ctx, options }: McpSession): Promise<(id: string) => string | undefined> {
  const journal = await ctx.openJournal()
  const address = await ctx.findAddress()
  return (id) => {
    const run = address === undefined ? undefined : journal.tryRead(() => journal.find(address, id))
    if (run?.output === undefined) return undefined
    try {
      return outputIn(options, run.output)
    } catch {
      return undefined
    }
  }
}

/** Sends one request to cancel for each run. */
export async function cancelRuns(session: McpSession, call: Call): Promise<Answer> {
  const ids = call.args.ids as readonly string[]
  return runsAnswer([await session.finish(call, ({ ctx }) => session.commands.cancel(ctx, ids))])
}

export async function listRuns(session: McpSession, call: Call): Promise<Answer> {
  const { limit = 20, everywhere, labels = [], ...filters } = call.args
  const options = {
    ...filters,
    limit: String(limit),
    here: everywhere !== true,
    label: labelsOf(labels as readonly string[], 'labels'),
  }
  const job = await session.finish(call, ({ ctx }) => session.commands.list(ctx, options))
  return answerWith(job, (runs) => ({ runs: runs.map(briefOf) }))
}

/** Maximum length of a prompt in a list, in characters. */
const MAX_PROMPT = 120

/** A list of whole inputs and answers would fill an agent's context. */
function briefOf({ service: _service, answer: _answer, output: _output, input, ...run }: Json): Json {
  const prompt = isObject(input) && typeof input.prompt === 'string' ? input.prompt : writeJson(input ?? null)
  return { ...run, prompt: shortened(printable(prompt), MAX_PROMPT) }
}

export async function showRun(session: McpSession, call: Call): Promise<Answer> {
  const name = String(call.args.id)
  const job = await session.finish(call, ({ ctx }) => session.commands.show(ctx, name))
  return answerWith(job, ([run]) => ({ run }))
}

export async function listModels(session: McpSession, call: Call): Promise<Answer> {
  const name = typeof call.args.model === 'string' ? call.args.model : undefined
  const left = leftJson(await session.limit())
  const job = await session.finish(call, ({ ctx }) => session.commands.models(ctx, name))
  return answerWith(job, ([found = {}]) => {
    if (name !== undefined) return { model: found, ...left }
    const models = Array.isArray(found.models) ? found.models.filter(isObject) : []
    return { models: models.map(withoutOtherInput), ...left }
  })
}

/** The parameters of models that are not the default would fill an agent's context. */
const withoutOtherInput = ({ input, ...model }: Json): Json =>
  model.default === true || model.source === 'built-in' ? { ...model, input } : model
