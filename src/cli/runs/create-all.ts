/** The creates of one `run`, and what becomes of them: reused, followed to their end, or printed and left. */
import { withoutData } from '../../journal/identity.js'
import type { ModelInput } from '../../protocol/models.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import { encodeRequest } from './request.js'
import { findReusable } from './reuse.js'
import { withRunOutputs } from './run-outputs.js'
import { openSession } from './session.js'
import { submit } from './submit.js'

export interface CreateAll {
  readonly connection: Connection
  readonly delivery: Delivery
  readonly count: number
  readonly kind: string | undefined
  readonly model: string
  readonly input: ModelInput
  readonly wait: boolean
  readonly reuse: boolean
}

/** The exit code of the command. Throws what comes before the first create. */
export async function createAll(ctx: Context, options: CreateAll): Promise<number> {
  const { out, clock, interrupts } = ctx
  const { connection, delivery, count, kind, model, wait } = options
  const { client } = connection
  const recorder = await ctx.recorder()
  const reused = options.reuse
    ? await findReusable(ctx, client, { model, meaning: options.input, count })
    : []
  const input = await withRunOutputs(ctx, client, options.input)
  const body = encodeRequest(model, input)
  const session = await openSession({ ctx, connection, delivery, runs: count, isFollowed: wait })

  let hasSaidGrace = false
  const onGrace = () => {
    if (!hasSaidGrace)
      out.note(
        'Waiting up to 10 s for the answer to the create, so that the run is not lost; once more ends at once.',
      )
    hasSaidGrace = true
  }
  const asked = { kind, model, input: withoutData(input) }
  const create = async () => {
    const note = recorder.note({ kind, model, input, meaning: options.input })
    const { id, body: service, ...times } = await submit({ client, body, clock, interrupts, note, onGrace })
    return { ...asked, id, service, ...times, createdAt: new Date(clock.now()).toISOString() }
  }

  for (const [index, known] of reused.entries()) {
    out.note(`run ${known.id} made the same before: it is used again, and nothing is paid.`)
    session.follow(index, known)
  }
  const missing = count - reused.length
  for (let index = reused.length; index < count; index++) session.create(index, model, create)
  if (missing > 0) session.progress.activity('creating the run')
  const { begun, exitCode } = await session.carryOut()
  if (begun < missing && !interrupts.second.aborted)
    out.note(`${missing - begun} of ${count} runs were not created.`)
  return exitCode
}
