/** `-i run:<id>` and `run:<id>#2`: outputs of earlier runs as reference images. */
import type { Client } from '../../client/index.js'
import { usageError } from '../../errors.js'
import type { ModelInput } from '../../protocol/models.js'
import { shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'

const RUN_OUTPUT = /^run:(.+?)(?:#(\d+))?$/s

export const isRunOutput = (source: string): boolean => RUN_OUTPUT.test(source)

/**
 * The input with `run:` references replaced by URLs. The service is asked for each URL, since the one in the journal may
 * have expired. Throws `usage` for a run that this machine did not create at this address,
 * that has not succeeded, or that has no such output.
 */
export async function withRunOutputs(
  ctx: Context,
  client: Pick<Client, 'get'>,
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

async function urlOf(ctx: Context, client: Pick<Client, 'get'>, source: string): Promise<string> {
  const [, id = '', number = '1'] = RUN_OUTPUT.exec(source) ?? []
  const address = await ctx.address()
  if ((await ctx.journal()).find(address, id) === undefined)
    throw usageError(
      `The reference image ${shortened(source)}: no run of that id was created here at ${address}; nothing was sent.`,
      'The runs of this machine: rushes list. Or give the URL or the file of the output.',
    )
  const state = await client.get(id, ctx.interrupts.first)
  if (state.phase !== 'succeeded')
    throw usageError(
      `The reference image ${shortened(source)}: that run has not succeeded (${state.status}); no run was created.`,
      state.phase === 'going' ? `Wait for it first: rushes wait ${id}` : undefined,
    )
  const url = state.urls[Number(number) - 1]
  if (url !== undefined) return url
  throw usageError(
    `The reference image ${shortened(source)}: that run has ${state.urls.length} outputs, counted from 1; no run was created.`,
  )
}
