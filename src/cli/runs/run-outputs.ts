/** `-i run:<id>` and `run:<id>#2`: outputs of earlier runs as reference images. */
import type { ApiClient } from '../../client/index.js'
import { usageError } from '../../errors.js'
import type { ModelInput } from '../../protocol/models.js'
import { shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { plural } from '../terminal/format.js'
import { resumeCommand } from './resume.js'
import { livesElsewhere } from './where.js'

const RUN_OUTPUT = /^run:(.+?)(?:#(\d+))?$/s

export const isRunOutput = (source: string): boolean => RUN_OUTPUT.test(source)

/**
 * Returns the input with `run:` references replaced by URLs. Sends a status request for each reference, since the URL
 * in the journal may have expired. Throws `usage` if the run was not created on this machine and at this address, has
 * not succeeded, or has no output with this number.
 */
export async function withRunOutputs(
  ctx: Context,
  client: Pick<ApiClient, 'get'>,
  input: ModelInput,
): Promise<ModelInput> {
  const { image_urls: sources } = input
  if (!Array.isArray(sources) || !sources.some((each) => typeof each === 'string' && isRunOutput(each)))
    return input
  const urls: unknown[] = []
  for (const source of sources)
    urls.push(typeof source === 'string' && isRunOutput(source) ? await urlOf(ctx, client, source) : source)
  return { ...input, image_urls: urls }
}

async function urlOf(ctx: Context, client: Pick<ApiClient, 'get'>, source: string): Promise<string> {
  const [, id = '', number = '1'] = RUN_OUTPUT.exec(source) ?? []
  const journal = await ctx.journal()
  if (journal.find(await ctx.address(), id) === undefined) {
    const [elsewhere] = journal.findAtEveryAddress(id)
    if (elsewhere !== undefined) {
      const error = await livesElsewhere(ctx, id, elsewhere)
      throw error.with({ hint: `${error.hint} Or give the URL or the file of the output.` })
    }
    throw usageError(
      `${shortened(source)}: this run was not created on this machine. Nothing was sent.`,
      '`rushes list` shows the runs of this machine. The URL or the file of the output works too.',
    )
  }
  const state = await client.get(id, ctx.interrupts.first)
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
  const url = state.urls[Number(number) - 1]
  if (url !== undefined) return url
  throw usageError(
    `${shortened(source)}: this run has ${plural(state.urls.length, 'output')}, counted from 1. Nothing was created.`,
  )
}
